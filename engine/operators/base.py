"""What an HFTA operator is: a bookkeeping half here, a lowering half in ``engine/spark/sql``.

Bookkeeping sees heartbeats and the extents of batches, never a row. It decides what a step reads and
what the operator may promise about its own output.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

from gscope.engine.watermarks.bounds import ENDED, bound_of, span_of, turned
from gscope.queries.expressions.types import Direction
from gscope.queries.streams.messages import Extent, promised_name

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from gscope.engine.storage.written import State
    from gscope.engine.watermarks.bounds import Bound, Known, KnownSpan
    from gscope.engine.watermarks.release import ReleasedInput, Side
    from gscope.queries.expressions.expressions import NamedExpression
    from gscope.queries.expressions.schema import Schema
    from gscope.queries.plan.program import HftaNode


@dataclass(frozen=True, slots=True)
class Work:
    """What one operator does in one step.

    Attributes:
        node: the configured operator.
        low: rows below are late.
        high: rows from here on stay where they are.
        inputs: what each side reads.
        state: rows of its own that the operator left in an earlier step, None if it left none.
        extents: of the temporal columns of the rows that come out.
        read_below: an earlier step has read the rows of partially read batches below this bound.
        makes_row: whether there is a row to evaluate although none is read: a group without keys is never missing.
        last: once ``high`` is infinite, the epoch at which the clock stood; -inf if that is not known.
    """

    node: HftaNode
    low: Bound
    high: Bound
    inputs: tuple[ReleasedInput, ...]
    state: State | None = None
    extents: tuple[Extent, ...] = ()
    read_below: Bound = -math.inf
    last: Bound = -math.inf
    makes_row: bool = False

    @property
    def reads_rows(self) -> bool:
        """Whether there can be rows to evaluate."""
        has_own = self.state is not None or self.makes_row
        return has_own or any(taken.reads_rows for taken in self.inputs)

    @property
    def needs_data(self) -> bool:
        """Whether the data plane has anything to do: rows to evaluate, to keep or to count."""
        return self.reads_rows or any(t.carries or t.late or t.overdue for t in self.inputs)

    @property
    def rows(self) -> int:
        """Rows of the batches read, an upper bound of what is released from them."""
        return sum(taken.rows for taken in self.inputs)

    @property
    def upstream(self) -> list[str]:
        """The queries whose rows of this step are read, as often as they are."""
        return [query for taken in self.inputs for query in taken.upstream]


@dataclass(frozen=True, slots=True)
class Waiting:
    """What waits at an operator's sides until it may be read; all of it on disk."""

    tuples: int
    size_bytes: int


class Operator(Protocol):
    """The running state of one HFTA node; see ``Work`` for what a step makes of it.

    Attributes:
        state: rows of its own that it carries from step to step, None when it has none.
        late_tuples: rows that came below the watermark, which are in no answer.
    """

    state: State | None
    late_tuples: int

    @property
    def node(self) -> HftaNode:
        """The configured operator."""

    @property
    def sides(self) -> tuple[Side, ...]:
        """One for each input, in the node's order."""

    def advance(self, fresh: Mapping[str, tuple[Extent, ...]]) -> Work | None:
        """Take everything that is released now; None when nothing changed.

        Raises the operator's watermark, and forgets the batches that are wholly read.
        """

    def output_bounds(self) -> dict[str, Bound]:
        """The punctuation of the output's temporal columns."""

    def clock(self) -> dict[str, Bound]:
        """Where the clocks of its inputs stood, as bounds of the output's temporal columns."""

    @property
    def watermark(self) -> Bound:
        """The bound below which everything has been answered."""

    @property
    def released(self) -> Bound:
        """The bound below which everything that had come was read: the watermark, or just above it."""

    def restore(self, watermark: Bound, released: Bound) -> None:
        """Continue after a restart from what was committed."""


def waiting(operator: Operator) -> Waiting:
    """What waits at ``operator``. A batch of which some rows were read counts as a whole."""
    batches = [batch for side in operator.sides for _, batch in side.pending]
    return Waiting(sum(b.rows for b in batches), sum(b.size_bytes for b in batches))


def promises(schema: Schema, columns: Iterable[NamedExpression], known: Known) -> dict[str, Bound]:
    """The punctuation of the temporal ones among computed ``columns``, by the name it is promised under."""
    bounds = {}
    for column in columns:
        ordering = schema[column.name].ordering
        if ordering.is_temporal:
            is_falling = ordering.direction is Direction.DECREASING
            bound = bound_of(column.expression, known, is_falling=is_falling)
            bounds[promised_name(schema[column.name])] = turned(bound) if is_falling else bound
    return bounds


def ended(schema: Schema) -> dict[str, Bound]:
    """The punctuation when no tuple will come."""
    return {promised_name(column): ENDED for column in schema.temporal}


def extents_of(columns: Iterable[NamedExpression], known: KnownSpan) -> tuple[Extent, ...]:
    """The extents of computed columns, given the spans of what they are computed from.

    A column whose extent does not follow from them is left out.
    """
    spans = [(column.name, span_of(column.expression, known)) for column in columns]
    return tuple(
        Extent(name, math.floor(least), math.ceil(greatest))
        for name, (least, greatest) in spans
        if math.isfinite(least) and math.isfinite(greatest)
    )
