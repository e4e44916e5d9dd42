"""The rows that a sampling operator reads through Spark, as Spark SQL text."""

from __future__ import annotations

from typing import TYPE_CHECKING

from gscope.engine.sampling.tuples import read_columns
from gscope.engine.spark.sql.expressions import quote

if TYPE_CHECKING:
    from collections.abc import Iterator

    from gscope.engine.spark.sql.inputs import Sources
    from gscope.queries.expressions.expressions import Expression
    from gscope.queries.plan.sampling_operator import SampleNode


def lower(node: SampleNode, sources: Sources) -> str:
    """Return the text of the columns that the operator reads: SELECT columns FROM source."""
    (source,) = sources.rows
    names = ", ".join(quote(column.name) for column in read_columns(node))
    return f"SELECT {names} FROM {source}"


def expressions(node: SampleNode) -> Iterator[Expression]:
    """Yield every expression that Spark evaluates for ``node``: the window; numpy does the rest."""
    yield node.epoch_expression
