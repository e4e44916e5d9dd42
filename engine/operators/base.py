"""What an HFTA operator is: a bookkeeping half here, a lowering half in ``engine/spark/sql``.

Bookkeeping sees heartbeats and the extents of batches, never a row. It decides what a step reads
and what the operator may promise about its own output. ``Work`` is all that the two halves share.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Protocol

from gscope.engine.watermarks.bounds import ENDED, bound_of, negated_bound, span_of
from gscope.queries.expressions.types import Direction
from gscope.queries.streams.messages import Extent, promised_name
from gscope.records import dataclass

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from gscope.engine.storage.parquet_files import State
    from gscope.engine.watermarks.bounds import Bound, Known, KnownSpan
    from gscope.engine.watermarks.release import ReleasedInput, Side
    from gscope.engine.watermarks.trim import GroupTrim
    from gscope.queries.expressions.expressions import NamedExpression
    from gscope.queries.expressions.schema import Schema
    from gscope.queries.plan.program import HftaNode


@dataclass(frozen=True, slots=True)
class Work:
    """What one operator does in one step.

    Attributes:
        node: the configured operator.
        low: the bound below which rows are late; the watermark before the step.
        high: the bound from which on rows wait for a later step.
        inputs: what each side reads.
        state: rows of its own that the operator left in an earlier step, None if it left none.
        extents: the extents of the temporal columns of the rows that it gives.
        read_below: an earlier step has read the rows of partially read batches below this bound.
        makes_row: whether there is a row to evaluate although none is read: a group without keys
            always gives a row.
        group_trim: the groups to leave out because a sample's threshold fell; None for none.
        last: once ``high`` is infinite, the epoch at which the clock stood; -inf if unknown.
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
    group_trim: GroupTrim | None = None

    @property
    def reads_rows(self) -> bool:
        """Whether there may be rows to evaluate."""
        has_own = self.state is not None or self.makes_row
        return has_own or any(taken.reads_rows for taken in self.inputs)

    @property
    def needs_data(self) -> bool:
        """Whether the data plane has anything to do: rows to evaluate, to keep or to count."""
        return self.reads_rows or any(t.carries or t.late or t.overdue for t in self.inputs)

    @property
    def rows(self) -> int:
        """The rows of all batches read: an upper bound of the rows released from them."""
        return sum(taken.rows for taken in self.inputs)

    @property
    def upstream(self) -> list[str]:
        """The queries whose rows of this step are read, once for each side that reads them."""
        return [query for taken in self.inputs for query in taken.upstream]


@dataclass(frozen=True, slots=True)
class PendingInput:
    """The tuples and bytes that wait at an operator's sides until a step may read them, on disk."""

    tuples: int
    size_bytes: int


class Operator(Protocol):
    """The running state of one HFTA node: what its sides hold, and how far it has answered.

    The job routes messages to the ports of the sides. For each step it then calls ``advance`` of
    every operator, inputs before readers, and ``output_bounds`` right after it; the ports of the
    readers raise their bounds to these before their own ``advance``. The step is evaluated and
    committed before ``advance`` is called again. ``restore`` is called once after a restart, before
    the first message. ``watermark`` and ``released`` never fall, not even over a restart: a commit
    records them together with what was answered.

    Attributes:
        state: rows of its own that it carries from step to step, None if it has none. The data
            plane writes them, and the job sets ``state`` when the step is evaluated.
        late_tuples: rows that arrived below the watermark, which are in no answer.
    """

    state: State | None
    late_tuples: int

    @property
    def node(self) -> HftaNode:
        """The configured operator."""

    @property
    def sides(self) -> tuple[Side, ...]:
        """The inputs, one side each, in the node's order."""

    def advance(self, fresh: Mapping[str, tuple[Extent, ...]]) -> Work | None:
        """Release everything that may be read now; return None if nothing changed.

        Raises the operator's watermark, and forgets the batches that no later step reads.

        Args:
            fresh: the queries that give rows in this very step, with the extents of these rows.
        """

    def output_bounds(self) -> dict[str, Bound]:
        """Return the punctuation of the output's temporal columns."""

    def clock(self) -> dict[str, Bound]:
        """Return the clocks of its inputs as bounds of the output's temporal columns."""

    @property
    def watermark(self) -> Bound:
        """The bound below which everything has been answered."""

    @property
    def released(self) -> Bound:
        """The bound below which all rows so far were read: the watermark or just above it."""

    def restore(self, watermark: Bound, released: Bound) -> None:
        """Continue after a restart from what was committed."""


def pending_input(operator: Operator) -> PendingInput:
    """Return the pending batches of ``operator``; a partially read batch counts as a whole."""
    tuples = size_bytes = 0
    for side in operator.sides:
        for port in side.ports.values():
            for batch in port.pending:
                tuples += batch.rows
                size_bytes += batch.size_bytes
    return PendingInput(tuples, size_bytes)


def promises(schema: Schema, columns: Iterable[NamedExpression], known: Known) -> dict[str, Bound]:
    """Return the punctuation of the temporal columns among ``columns``, by promised name.

    Args:
        schema: the schema of the output.
        columns: the computed columns of the output.
        known: gives the bounds of the parts from which the columns are computed.
    """
    bounds = {}
    for column in columns:
        ordering = schema[column.name].ordering
        if ordering.is_temporal:
            is_falling = ordering.direction is Direction.DECREASING
            bound = bound_of(column.expression, known, is_falling=is_falling)
            bounds[promised_name(schema[column.name])] = (
                negated_bound(bound) if is_falling else bound
            )
    return bounds


def ended(schema: Schema) -> dict[str, Bound]:
    """Return the punctuation of an output that has ended."""
    return {promised_name(column): ENDED for column in schema.temporal}


def extents_of(columns: Iterable[NamedExpression], known: KnownSpan) -> tuple[Extent, ...]:
    """Return the extents of computed columns, given the spans of what they are computed from.

    A column whose extent does not follow from these is left out.
    """
    spans = [(column.name, span_of(column.expression, known)) for column in columns]
    return tuple(
        Extent(name, math.floor(least), math.ceil(greatest))
        for name, (least, greatest) in spans
        if math.isfinite(least) and math.isfinite(greatest)
    )
