"""The part of an assembled window that is Spark SQL text: a row for each slice and group."""

from __future__ import annotations

from typing import TYPE_CHECKING

from gscope.engine.spark.sql.expressions import column_leaf, quote, to_sql
from gscope.queries.catalog.aggregate.partial_op import PartialOp
from gscope.queries.expressions.types import GsqlType
from gscope.queries.plan.windows.columns import SLICE

if TYPE_CHECKING:
    from collections.abc import Iterator

    from gscope.engine.spark.sql.inputs import Sources
    from gscope.queries.expressions.expressions import Expression
    from gscope.queries.plan.program import Partial
    from gscope.queries.plan.window_node import WindowNode


def lower(node: WindowNode, sources: Sources) -> str:
    """Return the Spark SQL text of the slices of ``node``, which are not kept as rows.

    SELECT number, keys, partials FROM source WHERE predicate GROUP BY number, keys
    """
    (source,) = sources.rows
    slices = node.slices
    assert slices is not None
    terms = [f"{to_sql(slices.number, column_leaf)} AS {quote(SLICE)}"]
    terms += [f"{to_sql(k.expression, column_leaf)} AS {quote(k.name)}" for k in slices.keys]
    folds = [f"{_fold(p, is_merged=slices.is_merged)} AS {quote(p.name)}" for p in slices.partials]
    tests = [] if node.predicate is None else [to_sql(node.predicate, column_leaf)]
    if slices.number.is_nullable:
        tests.append(f"{to_sql(slices.number, column_leaf)} IS NOT NULL")
    where = f" WHERE {' AND '.join(tests)}" if tests else ""
    grouping = ", ".join(str(position) for position in range(1, len(terms) + 1))
    return f"SELECT {', '.join(terms + folds)} FROM {source}{where} GROUP BY {grouping}"


def expressions(node: WindowNode) -> Iterator[Expression]:
    """Yield every expression that Spark evaluates for the slices of ``node``, if it has slices."""
    if node.slices is not None:
        yield node.slices.number
        yield from (key.expression for key in node.slices.keys)
        yield from (p.argument for p in node.slices.partials if p.argument is not None)


def _fold(partial: Partial, *, is_merged: bool) -> str:
    op, argument = partial.op, partial.argument
    if argument is None:
        return "count(1)"
    text = to_sql(argument, column_leaf)
    if argument.type is GsqlType.FLOAT:
        text = f"({text} + 0.0D)"
    if op is PartialOp.COUNT and is_merged:
        return f"sum({text})"
    return f"{_FOLDS[op]}({text})"


_FOLDS = {
    PartialOp.COUNT: "count",
    PartialOp.SUM: "sum",
    PartialOp.MIN: "min",
    PartialOp.MAX: "max",
    PartialOp.OR: "bit_or",
    PartialOp.AND: "bit_and",
    PartialOp.XOR: "bit_xor",
}
