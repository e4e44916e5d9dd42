"""LFTAs, tuples and a plain fold for tests of relays.

Nothing of it is shared with what is tested.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import pyarrow as pa
from hypothesis import strategies as st

from gscope.capture.log.stream_rows import relay_schema
from gscope.queries.catalog.aggregate.partial_op import PartialOp
from gscope.queries.expressions.expressions import Column, NamedExpression
from gscope.queries.expressions.schema import ColumnSchema, Schema
from gscope.queries.expressions.types import (
    DECREASING,
    INCREASING,
    VARYING,
    GsqlType,
)
from gscope.queries.plan.program import Lfta, Partial

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

Row = tuple[Any, ...]

_INTS = st.one_of(
    st.integers(-3, 3), st.sampled_from([2**63 - 1, -(2**63), 2**62]), st.integers(0, 2**33)
)
_FLOATS = st.sampled_from([0.0, 1.5, -2.5, math.inf, -math.inf, math.nan, 1e-300])
VALUES: dict[GsqlType, st.SearchStrategy[Any]] = {
    GsqlType.BOOL: st.booleans(),
    GsqlType.INT: _INTS,
    GsqlType.FLOAT: _FLOATS,
    GsqlType.STRING: st.sampled_from([b"", b"a", b"ab", b"\xff\0"]),
    GsqlType.IP: st.sampled_from([0, 1, 2**127, 2**128 - 1, 2**64, 2**64 - 1, 5 << 64]).map(
        lambda n: n.to_bytes(16, "big")
    ),
    GsqlType.MAC: st.integers(0, 2**48 - 1),
    GsqlType.TIMESTAMP: st.integers(0, 2**62),
    GsqlType.INTERVAL: _INTS,
}

_EXTREMES = (PartialOp.MIN, PartialOp.MAX)
_BITS = (PartialOp.OR, PartialOp.AND, PartialOp.XOR)
FOLDS: list[tuple[PartialOp, GsqlType]] = [
    (PartialOp.COUNT, GsqlType.INT),
    (PartialOp.SUM, GsqlType.INT),
    (PartialOp.SUM, GsqlType.INTERVAL),
    *((op, kind) for op in _EXTREMES for kind in VALUES if kind is not GsqlType.STRING),
    *((op, kind) for op in _BITS for kind in (GsqlType.INT, GsqlType.BOOL, GsqlType.INTERVAL)),
]
"""Every fold of every type that an LFTA has."""


def column(name: str, kind: GsqlType, *, is_nullable: bool) -> NamedExpression:
    return NamedExpression(name, Column(name, kind, is_nullable))


def aggregation(
    keys: Sequence[GsqlType],
    folds: Sequence[tuple[PartialOp, GsqlType]],
    *,
    is_nullable: bool = True,
    is_falling: bool = False,
    has_interface: bool = False,
) -> Lfta:
    """An aggregation by the epoch ``tb``, ``fine`` (ten a ``tb``) and further keys."""
    ordering = DECREASING if is_falling else INCREASING
    named = [column(f"k{n}", kind, is_nullable=is_nullable) for n, kind in enumerate(keys)]
    partials = [
        Partial(
            f"p{n}",
            op,
            None if op is PartialOp.COUNT else Column("x", kind, is_nullable),
            kind,
            is_nullable and op is not PartialOp.COUNT,
        )
        for n, (op, kind) in enumerate(folds)
    ]
    temporal = ("tb", "fine")
    schema = Schema(
        (
            *(ColumnSchema(name, GsqlType.INT, ordering=ordering) for name in temporal),
            *(ColumnSchema(k.name, k.expression.type, is_nullable, VARYING) for k in named),
            *(ColumnSchema(p.name, p.type, p.is_nullable) for p in partials),
        )
    )
    clocks = [column(name, GsqlType.INT, is_nullable=False) for name in temporal]
    return Lfta(
        "flow",
        "q",
        "TCP",
        ("eth0",),
        None,
        (*clocks, *named),
        "tb",
        tuple(partials),
        (),
        schema,
        has_interface,
    )


def selection(*, is_falling: bool = False) -> Lfta:
    """A selection of ``time``, which may be NULL nowhere, and ``value``, which may."""
    ordering = DECREASING if is_falling else INCREASING
    columns = (
        column("time", GsqlType.INT, is_nullable=False),
        column("value", GsqlType.INT, is_nullable=True),
    )
    schema = Schema(
        (
            ColumnSchema("time", GsqlType.INT, ordering=ordering),
            ColumnSchema("value", GsqlType.INT, is_nullable=True),
        )
    )
    return Lfta("flow", "q", "TCP", ("eth0",), None, (), None, (), columns, schema)


def table(lfta: Lfta, rows: Iterable[Row]) -> pa.Table:
    """Rows as a relay has them."""
    schema = relay_schema(lfta)
    columns = list(zip(*rows, strict=True)) or [()] * len(schema)
    arrays = [pa.array(list(c), f.type) for c, f in zip(columns, schema, strict=True)]
    return pa.Table.from_arrays(arrays, schema=schema)


def rows_of(found: pa.Table) -> list[Row]:
    return list(zip(*(column.to_pylist() for column in found.columns), strict=True))


def folded(lfta: Lfta, rows: Iterable[Row]) -> dict[Row, Row]:
    """The groups of partial tuples by a plain loop; NaN is a text, so that it equals itself."""
    width = len(lfta.keys)
    groups: dict[Row, list[Any]] = {}
    for row in rows:
        name = (row[-1],) if lfta.has_interface_column else ()
        key = (*map(_plain, row[:width]), *name)
        values = row[width : width + len(lfta.partials)]
        state = groups.setdefault(key, [None] * len(values))
        for n, (partial, value) in enumerate(zip(lfta.partials, values, strict=True)):
            state[n] = _fold(partial, state[n], value)
    return {key: tuple(map(_plain, state)) for key, state in groups.items()}


def _plain(value: Any) -> Any:
    return "NaN" if isinstance(value, float) and math.isnan(value) else value


def _fold(partial: Partial, state: Any, value: Any) -> Any:
    if state is None or value is None:
        return value if state is None else state
    match partial.op:
        case PartialOp.MIN | PartialOp.MAX:
            pick = min if partial.op is PartialOp.MIN else max
            return pick(state, value, key=lambda v: (math.isnan(v), v) if type(v) is float else v)
        case PartialOp.OR:
            return state | value
        case PartialOp.AND:
            return state & value
        case PartialOp.XOR:
            return state ^ value
    return (state + value + 2**63) % 2**64 - 2**63
