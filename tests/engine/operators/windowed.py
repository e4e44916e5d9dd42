"""Programs with windows, made by hand: the plan of a window over packets, and of one over it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from gscope.queries.catalog.aggregate.partial_op import PartialOp
from gscope.queries.expressions.expressions import Column, NamedExpression, PacketField
from gscope.queries.expressions.schema import ColumnSchema, Schema
from gscope.queries.expressions.types import INCREASING, GsqlType
from gscope.queries.plan.program import (
    Aggregate,
    Lfta,
    Partial,
    Program,
    QueryInput,
    StreamInput,
)
from gscope.queries.plan.window_node import Slices, WindowNode
from gscope.queries.plan.windows.columns import SLICE, WINDOW_END, WINDOW_START
from gscope.queries.plan.windows.slicing import Slicing

if TYPE_CHECKING:
    from gscope.queries.plan.windows.window import Window

INT = GsqlType.INT
TIME = PacketField("time", INT, is_nullable=False)
N = Aggregate("n", "count", (), ("p0",), INT, is_nullable=False)


def column(name: str) -> Column:
    return Column(name, INT, is_nullable=False)


EDGES = tuple(
    NamedExpression(name, column(inside))
    for name, inside in (("window_start", WINDOW_START), ("window_end", WINDOW_END))
)
COLUMNS = (*EDGES, NamedExpression("n", column("n")))
SCHEMA = Schema(
    (
        ColumnSchema("window_start", INT, ordering=INCREASING),
        ColumnSchema("window_end", INT, ordering=INCREASING),
        ColumnSchema("n", INT),
    )
)


def over_packets(window: Window, unit_ns: int | None = None) -> tuple[Lfta, WindowNode]:
    """Return the LFTA and the node of ``SELECT window_start, window_end, count(*) AS n``."""
    slicing = Slicing.of([window])
    count = Partial("p0", PartialOp.COUNT, None, INT, is_nullable=False)
    schema = Schema((ColumnSchema(SLICE, INT, ordering=INCREASING), ColumnSchema("p0", INT)))
    keys = (NamedExpression(SLICE, slicing.expression(TIME)),)
    lfta = Lfta("low", "w", "IP", ("a", "b"), None, keys, SLICE, (count,), (), schema)
    merged = Partial("p0", PartialOp.COUNT, column("p0"), INT, is_nullable=False)
    slices = Slices(slicing, column(SLICE), (), (merged,), is_merged=True)
    source = StreamInput("low")
    node = WindowNode(
        "w", source, None, window, None, unit_ns, slices, (), (N,), None, COLUMNS, SCHEMA
    )
    return lfta, node


def over_query(window: Window, query: str) -> WindowNode:
    """Return the node of a window that keeps the rows of ``query``, in the order of its ends."""
    count = Aggregate("n", "count", (), (), INT, is_nullable=False)
    on, source = column("window_end"), QueryInput(query)
    return WindowNode(
        "rows", source, None, window, on, None, None, (), (count,), None, COLUMNS, SCHEMA
    )


def windowed(*windows: Window, unit_ns: int | None = None) -> Program:
    """Return a program of a window over packets and, with two, of one over its answers."""
    lfta, node = over_packets(windows[0], unit_ns)
    nodes = (node, *(over_query(window, "w") for window in windows[1:]))
    results = tuple((each.query, QueryInput(each.query)) for each in nodes)
    schemas = tuple((each.query, each.schema) for each in nodes)
    return Program(("a", "b"), (lfta,), nodes, results, schemas)
