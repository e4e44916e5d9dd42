"""The order of the rows of an answer, and how many of them are kept: ORDER BY and LIMIT.

Both hold for the rows of one epoch; the whole answer is one epoch if no column closes its groups.
The order is total: rows that ORDER BY does not separate are ordered by all visible columns from
left to right, NULL first, as rows without ORDER BY are (decision 28). So neither the order nor the
choice of the first n rows depends on batches, tasks or restarts.

Columns whose names begin with ``$`` are hidden: rows are sorted by them, and delivery leaves them
out. No query can write such a name.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from gscope.queries.expressions.schema import Schema
from gscope.queries.expressions.types import Direction
from gscope.records import dataclass

if TYPE_CHECKING:
    from gscope.queries.expressions.schema import ColumnSchema

HIDDEN = "$"
ORDER = "$order"
"""The hidden temporal column of an answer whose visible columns do not show its epochs."""

MAX_LIMIT = (1 << 31) - 1
"""The greatest LIMIT, which Spark can test."""


@dataclass(frozen=True, slots=True)
class SortKey:
    """A column that orders rows.

    Attributes:
        name: the column.
        is_descending: whether the greatest values come first.
        has_nulls_first: whether NULL comes before all values, in either direction.
    """

    name: str
    is_descending: bool = False
    has_nulls_first: bool = False


@dataclass(frozen=True, slots=True)
class Order:
    """ORDER BY and LIMIT of a query, over the columns of its result.

    Attributes:
        keys: the columns of ORDER BY; () for a LIMIT alone.
        limit: how many rows of each epoch are kept; None for all.
        epoch: the column with the epoch of a row; None if the whole answer is one epoch.
        is_selection: whether the query selects rows instead of grouping them. Its answer is one
            epoch. Without keys, its first rows are known before the input ends.
    """

    keys: tuple[SortKey, ...]
    limit: int | None
    epoch: str | None = None
    is_selection: bool = False

    @property
    def is_head(self) -> bool:
        """Whether it keeps the first rows of a stream.

        They are the first in the order in which the stream has them.
        """
        return self.is_selection and not self.keys


def orders_epochs(order: Order, schema: Schema) -> bool:
    """Return whether ``order`` holds for epochs, whose column in ``schema`` rises with time."""
    if order.epoch is None:
        return False
    return schema[order.epoch].ordering.direction is Direction.INCREASING


def is_hidden(name: str) -> bool:
    """Return whether delivery leaves out the column ``name``."""
    return name.startswith(HIDDEN)


def visible(schema: Schema) -> Schema:
    """Return ``schema`` without its hidden columns."""
    return Schema(tuple(column for column in schema.columns if not is_hidden(column.name)))


def sort_keys(schema: Schema, order: Order | None = None) -> tuple[SortKey, ...]:
    """Return the columns that order the rows of an answer, all visible columns among them.

    Args:
        schema: the columns of the answer, with hidden ones.
        order: ORDER BY of its query; None, or one without keys: rows are sorted by the temporal
            columns, then by the others.
    """
    if order is None or order.is_head:
        first = tuple(_temporal_key(column) for column in schema.temporal)
    else:
        epoch = () if order.epoch is None else (_temporal_key(schema[order.epoch]),)
        first = (*epoch, *order.keys, *(_temporal_key(c) for c in visible(schema).temporal))
    others = (SortKey(name, has_nulls_first=True) for name in visible(schema).names)
    found: dict[str, SortKey] = {}
    for key in (*first, *others):
        found.setdefault(key.name, key)
    return tuple(found.values())


def _temporal_key(column: ColumnSchema) -> SortKey:
    """Return the key of a temporal column, which descends if its values decrease."""
    falls = column.ordering.direction is Direction.DECREASING
    return SortKey(column.name, is_descending=falls, has_nulls_first=True)
