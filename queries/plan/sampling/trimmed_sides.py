"""Where the job leaves out rows and groups of a sample whose threshold moves."""

from __future__ import annotations

from typing import TYPE_CHECKING

from gscope.queries.plan.sampling.side_epochs import SAME_EPOCHS
from gscope.records import dataclass

if TYPE_CHECKING:
    from gscope.queries.expressions.expressions import Expression
    from gscope.queries.plan.sampling.long_groups import LongGroups
    from gscope.queries.plan.sampling.sampled_rows import ThresholdSource
    from gscope.queries.plan.sampling.side_epochs import SideEpochs


@dataclass(frozen=True, slots=True)
class TrimmedSide:
    """A side of a node that answers whole epochs of a sample whose threshold moves.

    Attributes:
        clocks: whose thresholds count, each with the side's epoch over the time of packets.
        epoch: the side's epoch over the columns that it reads.
        terms: the terms of the hash over these columns; () if no row is ever above the threshold,
            because the query that gives the rows has left them out, or because ``groups`` does.
        is_logged: whether the side reads streams; else another query.
        reach: which epochs of the node the side's epochs concern.
        groups: how groups are left out that live longer than an epoch; None where none do.
    """

    clocks: tuple[tuple[ThresholdSource, Expression], ...]
    epoch: Expression
    terms: tuple[Expression, ...]
    is_logged: bool
    reach: SideEpochs = SAME_EPOCHS
    groups: LongGroups | None = None

    @property
    def placed(self) -> tuple[Expression, ...]:
        """For each of ``clocks``, how rows of the node are placed in time by it."""
        return tuple(self.reach.placed(clock) for _, clock in self.clocks)
