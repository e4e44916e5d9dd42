"""The order in which the rows of an answer are delivered, and how many of them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from gscope.queries.plan.program import QueryInput, TopNode
from gscope.queries.plan.row_order import sort_keys
from gscope.queries.streams.messages import promised_name
from gscope.records import dataclass

if TYPE_CHECKING:
    from gscope.queries.plan.program import Program
    from gscope.queries.plan.row_order import SortKey


@dataclass(frozen=True, slots=True)
class AnswerOrder:
    """The order of the rows of one answer, and what of it is left to delivery.

    Attributes:
        temporal: the temporal columns that order the rows first, by their promised names; rows are
            held by the first of them. () if the rows have no epochs.
        keys: the columns that order the rows next; () for all others from left to right.
        limit: the number of rows after which the answer is complete; None if operators have kept
            the first rows already, or all are wanted.
        is_at_end: whether the order is that of the whole input, and delivery establishes it.
    """

    temporal: tuple[str, ...]
    keys: tuple[SortKey, ...] = ()
    limit: int | None = None
    is_at_end: bool = False

    @classmethod
    def of(cls, program: Program, query: str) -> AnswerOrder:
        """Return the order of the result ``query``."""
        schema, order = program.schema(query), program.order(query)
        if order is None or order.is_head:
            temporal = tuple(promised_name(column) for column in schema.temporal)
            return cls(temporal, limit=None if order is None else order.limit)
        keys = sort_keys(schema, order)
        if order.is_selection:
            source = dict(program.results)[query]
            is_done = isinstance(source, QueryInput) and isinstance(
                program.node(source.query), TopNode
            )
            return cls((), keys, None if is_done else order.limit, is_at_end=not is_done)
        if order.epoch is None:
            return cls((), keys)
        return cls((promised_name(schema[order.epoch]),), keys[1:])
