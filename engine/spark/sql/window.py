"""Windows over kept rows as Spark SQL text: a row is put into each window that holds it.

The rows of all windows are then grouped as those of any aggregation, whose epoch is the window's
end. What partial aggregates cannot compute needs this; for all else it is an oracle, which shares
no code with the assembly of slices. Li, Maier et al.: Semantics and Evaluation Techniques for
Window Aggregates in Data Streams (SIGMOD 2005), call it window-ids.
"""

from __future__ import annotations

import math
from itertools import accumulate, pairwise
from typing import TYPE_CHECKING

from gscope.engine.spark.sql import aggregation, slices
from gscope.engine.spark.sql.expressions import column_leaf, quote, to_sql
from gscope.engine.spark.sql.inputs import Sources
from gscope.queries.catalog.evaluate import call
from gscope.queries.expressions.expressions import Literal
from gscope.queries.expressions.types import GsqlType
from gscope.queries.int64 import MAX_INT, MIN_INT
from gscope.queries.plan.windows.columns import WINDOW_END, WINDOW_START
from gscope.queries.plan.windows.window import SlidingWindow

if TYPE_CHECKING:
    from collections.abc import Iterator

    from gscope.engine.watermarks.bounds import Bound
    from gscope.queries.expressions.expressions import Expression
    from gscope.queries.plan.window_node import WindowNode
    from gscope.queries.plan.windows.window import RepeatedSlices

_FIRST, _LAST, _WINDOW = "$first", "$last", "$window"
_REST, _BEFORE = "$rest", "$before"
_LEAST = f"({MIN_INT + 1}L - 1L)"
"""Spark reads no literal of the least integer."""


def lower(node: WindowNode, sources: Sources) -> str:
    """Return the Spark SQL text of the windows that end in ``sources.epochs``, over kept rows."""
    (source,) = sources.rows
    assert node.on is not None
    tests = [] if node.predicate is None else [to_sql(node.predicate, column_leaf)]
    if node.on.is_nullable:
        tests.append(f"{to_sql(node.on, column_leaf)} IS NOT NULL")
    where = f" WHERE {' AND '.join(tests)}" if tests else ""
    rows = f"(SELECT * FROM {source}{where})"
    expanded = (
        _sliding(node.window, node, rows, sources.epochs)
        if isinstance(node.window, SlidingWindow)
        else _repeated(node.window, node, rows, sources.epochs)
    )
    return aggregation.lower(node.aggregation, Sources((f"({expanded})",), sources.epochs))


def expressions(node: WindowNode) -> Iterator[Expression]:
    """Yield every expression that Spark evaluates for ``node``."""
    yield from (each for each in (node.predicate, node.on) if each is not None)
    yield from slices.expressions(node)
    yield from aggregation.expressions(node.aggregation)


def _sliding(
    window: SlidingWindow, node: WindowNode, rows: str, epochs: tuple[Bound, Bound]
) -> str:
    """Return the rows of all windows: a row with the numbers of the first and the last of its own.

    SELECT *, edges of w FROM (SELECT *, explode(sequence(first, last)) AS w …) WHERE first <= last
    """
    assert node.on is not None
    low, high = epochs
    ends = _quotient(node.on, 0, window.slide)
    first = f"({ends} + 1L)"
    last = _quotient(node.on, window.range, window.slide)
    if math.isfinite(low):
        first = f"greatest({first}, {node.windows.last_complete(int(low)) + 1}L)"
    if math.isfinite(high):
        last = f"least({last}, {node.windows.last_complete(int(high))}L)"
    numbered = f"SELECT *, {first} AS {quote(_FIRST)}, {last} AS {quote(_LAST)} FROM {rows}"
    within = f"{quote(_FIRST)} <= {quote(_LAST)}"
    windows = f"explode(sequence({quote(_FIRST)}, {quote(_LAST)})) AS {quote(_WINDOW)}"
    exploded = f"SELECT *, {windows} FROM ({numbered}) WHERE {within}"
    end = f"({quote(_WINDOW)} * {window.slide}L)"
    return _edged(node, f"({end} - {window.range}L)", end, exploded)


def _repeated(
    window: RepeatedSlices, node: WindowNode, rows: str, epochs: tuple[Bound, Bound]
) -> str:
    """Return each row with the edges of its window, if that ends in ``epochs``.

    SELECT *, edges FROM (SELECT *, t - rest, rest …): ``rest`` is the time since a period began.
    """
    assert node.on is not None
    time = to_sql(node.on, column_leaf)
    before = f"({_quotient(node.on, 0, window.period)} * {window.period}L)"
    placed = (
        f"SELECT *, {before} AS {quote(_BEFORE)}, ({time} - {before}) AS {quote(_REST)} FROM {rows}"
    )
    spans = list(pairwise((0, *accumulate(window.lengths))))
    start, end = (
        f"({quote(_BEFORE)} + CASE "
        + " ".join(f"WHEN {quote(_REST)} < {span[1]}L THEN {span[edge]}L" for span in spans)
        + " END)"
        for edge in (0, 1)
    )
    low, high = epochs
    tests = [f"{end} > {int(low)}L"] if math.isfinite(low) else []
    tests += [f"{end} <= {int(high)}L"] if math.isfinite(high) else []
    where = f" WHERE {' AND '.join(tests)}" if tests else ""
    return _edged(node, start, end, f"SELECT * FROM ({placed}){where}")


def _edged(node: WindowNode, start: str, end: str, rows: str) -> str:
    """Return ``rows`` with the columns of the window."""
    if node.unit_ns not in (None, 1):
        start, end = (_in_ns(edge, node.unit_ns) for edge in (start, end))
    edges = f"{start} AS {quote(WINDOW_START)}, {end} AS {quote(WINDOW_END)}"
    return f"SELECT *, {edges} FROM ({rows})"


def _in_ns(edge: str, unit_ns: int) -> str:
    """Return an edge in nanoseconds, at most the ends of 64 bits."""
    least, greatest = -(-MIN_INT // unit_ns), MAX_INT // unit_ns
    product = f"{edge} * {unit_ns}L"
    ends = f"WHEN {edge} < {least}L THEN {_LEAST} WHEN {edge} > {greatest}L THEN {MAX_INT}L"
    return f"CASE {ends} ELSE {product} END"


def _quotient(time: Expression, shift: int, period: int) -> str:
    shifted = call("add_int", time, Literal(shift, GsqlType.INT)) if shift else time
    return to_sql(call("floor_div", shifted, Literal(period, GsqlType.INT)), column_leaf)
