"""What a running aggregation reads of segments: partial tuples, or rows computed to be such.

Over plain rows, keys and arguments are computed with numpy first. Each row then counts as a partial
tuple of one row, so ``engine/running/reduce.py`` merges both alike.
"""

from __future__ import annotations

from dataclasses import field, replace
from typing import TYPE_CHECKING

from gscope.engine.running.reduce import is_reducible, needed_columns
from gscope.engine.spark.tasks.columns import (
    INTEGERS,
    TaskRows,
    columns_of,
    is_column,
    is_computable,
    is_of_text,
)
from gscope.engine.spark.tasks.row_functions import is_evaluated
from gscope.engine.spark.tasks.task import read_files
from gscope.engine.storage.payload_counts import payload_counts
from gscope.queries.catalog.aggregate.halves import high_half, low_half
from gscope.queries.catalog.evaluate import call
from gscope.queries.catalog.running import DISTINCT_VALUES
from gscope.queries.expressions.expressions import Call, Column, Literal, NamedExpression
from gscope.queries.expressions.types import GsqlType
from gscope.records import dataclass

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    import pyarrow as pa

    from gscope.engine.storage.counts import Counts
    from gscope.queries.expressions.expressions import Expression
    from gscope.queries.plan.program import Aggregate, RunningNode

_OF_VALUES = frozenset({"sum", "min", "max", "or_aggr", "and_aggr", "xor_aggr"})
"""The aggregates of a row that are the value itself."""

_ENDS = frozenset({"first", "last"})
_ONE = Literal(1, GsqlType.INT)


@dataclass(frozen=True, slots=True)
class FoldInput:
    """The tuples of a running aggregation.

    Attributes:
        node: the aggregation over ``columns``, which ``is_reducible``.
        predicate: the condition on rows of the input; None for all rows.
        columns: the columns that ``node`` reads, over the input.
        within: the condition that released rows of the input satisfy; None if all are released.
    """

    node: RunningNode
    predicate: Expression | None
    columns: tuple[NamedExpression, ...]
    within: Expression | None = None

    @property
    def calls_functions(self) -> bool:
        """Whether functions are called for single values, which takes long for each row."""
        expressions = [each.expression for each in self.columns]
        return any(map(_is_called, (self.predicate, *expressions)))

    def read(self, files: Sequence[str]) -> tuple[pa.Table, Counts]:
        """Return the released tuples in segments, and the payloads that were not read."""
        expressions = [each.expression for each in self.columns]
        needed = columns_of(self.within, self.predicate, *expressions)
        rows = TaskRows.of_table(read_files(files, needed))
        rows = rows.where(self.within).where(self.predicate)
        table = rows.table(self.columns)
        return table, payload_counts(rows.outcomes)


def fold_input(node: RunningNode) -> FoldInput | None:
    """Return what ``node`` reads of segments; None if Spark must read them."""
    if is_reducible(node):
        kinds = {column.name: column for column in _columns_read(node)}
        names = needed_columns(node)
        if all(name in kinds for name in names):
            return FoldInput(node, None, tuple(NamedExpression(n, kinds[n]) for n in names))
    return _of_rows(node)


def _columns_read(node: RunningNode) -> Iterable[Column]:
    """Yield the columns of partial tuples that ``node`` reads."""
    arguments = [argument for each in node.aggregates for argument in each.arguments]
    yield from columns_of(*(key.expression for key in node.keys), *arguments)
    for aggregate in node.aggregates:
        for name in aggregate.partials:
            yield Column(name, GsqlType.INT, is_nullable=True)


@dataclass(slots=True)
class _Computed:
    """Expressions over the input, with the names of the columns that hold their values."""

    names: dict[Expression, str] = field(default_factory=dict)

    def column(self, expression: Expression) -> Column:
        """Return the column of ``expression``."""
        name = self.names.setdefault(expression, f"v{len(self.names)}")
        return Column(name, expression.type, is_nullable=expression.is_nullable)


def _of_rows(node: RunningNode) -> FoldInput | None:
    """Return the tuples of a running aggregation of plain rows."""
    computed = _Computed()
    keys = [replace(key, expression=computed.column(key.expression)) for key in node.keys]
    aggregates = [_of_one_row(aggregate, computed) for aggregate in node.aggregates]
    known = tuple(each for each in aggregates if each is not None)
    if (
        len(known) < len(aggregates)
        or not all(map(is_column, computed.names))
        or not (node.predicate is None or is_computable(node.predicate))
    ):
        return None
    over = replace(node, predicate=None, keys=tuple(keys), aggregates=known)
    if not is_reducible(over):
        return None
    columns = tuple(NamedExpression(name, each) for each, name in computed.names.items())
    return FoldInput(over, node.predicate, columns)


def _of_one_row(aggregate: Aggregate, computed: _Computed) -> Aggregate | None:
    """Return ``aggregate`` of partial tuples that are one row each; None if it has none such."""
    if aggregate.partials:
        return None
    values, function = aggregate.arguments, aggregate.function
    if function == DISTINCT_VALUES:
        return replace(aggregate, arguments=(computed.column(values[0]),))
    if any(value.type not in INTEGERS for value in values):
        return None
    if function in _ENDS:
        value, *order = values
        # Rows of another query may be ordered by several columns.
        if len(order) > 1 or order[0].is_nullable:
            return None
        orders = (computed.column(order[0]).name,)
        return replace(aggregate, arguments=(computed.column(value),), partials=orders)
    parts: tuple[Expression, ...]
    if function == "count":
        parts = (_present(values[0]) if values else _ONE,)
    elif function not in _OF_VALUES:
        return None
    elif aggregate.can_wrap:
        parts = low_half(values), high_half(values)
    else:
        parts = values
    partials = tuple(computed.column(part).name for part in parts)
    return replace(aggregate, arguments=(), partials=partials)


def _present(value: Expression) -> Expression:
    """Return 1 if ``value`` is not NULL, else 0."""
    return call("bool_to_int", call("not", call("is_null", value)))


def _is_called(expression: Expression | None) -> bool:
    if not isinstance(expression, Call):
        return False
    return (
        is_of_text(expression)
        or is_evaluated(expression)
        or any(map(_is_called, expression.arguments))
    )
