"""Which epochs of a node the rows of a side concern, where these are not the side's own epochs.

The thresholds of a side are known over its own epochs, which follow from the time of packets. A
window needs them over its windows, an interval join over the epochs of its first side::

    windows of 30 s each 10 s:   a slice concerns the windows that hold it
    B within [A - 5, A + 2]:     an epoch b of B concerns the epochs b - 2 … b + 5 of A

Readers of the node need the way back: at which times rows of an epoch of the node can be.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, TypeAlias

from gscope.queries.expressions.expressions import PacketField
from gscope.queries.expressions.types import GsqlType
from gscope.queries.plan.windows.columns import WINDOW_END
from gscope.records import dataclass

if TYPE_CHECKING:
    from gscope.queries.expressions.expressions import Expression
    from gscope.queries.plan.window_node import WindowNode

Range: TypeAlias = tuple[float, float]
"""Epochs ``first <= epoch < end``; infinite at the ends of time."""

WINDOW_CLOCK = PacketField("timestamp", GsqlType.TIMESTAMP, is_nullable=False)
"""The time at which the rows of a window are placed: its end, as if it were a packet's time."""


@dataclass(frozen=True, slots=True)
class SameEpochs:
    """The side's epochs are the node's, but for a constant distance.

    Attributes:
        least: the side's epochs minus those of the node, at least.
        most: the same, at most.
    """

    least: int = 0
    most: int = 0

    def concerned(self, first: float, end: float) -> Range:
        """Return the epochs of the node that rows of some epochs of the side concern."""
        return first - self.most, end - self.least

    def held(self, first: float, end: float) -> Range:
        """Return the epochs of the side whose rows some epochs of the node have."""
        return first + self.least, end + self.most

    def placed(self, clock: Expression) -> Expression:
        """Return what ``held`` counts, over the time of packets, given the side's epoch."""
        return clock


SAME_EPOCHS = SameEpochs()


@dataclass(frozen=True, slots=True)
class WindowEpochs:
    """The side's epochs are numbers of slices, those of the node are the ends of windows."""

    node: WindowNode

    def concerned(self, first: float, end: float) -> Range:
        """Return the ends of the windows that hold some slices; empty in a gap between windows."""
        windows = self.node.windows
        if math.isfinite(first):
            first = self.node.edge(WINDOW_END, windows.first_open(int(first)))
        if math.isfinite(end):
            end = self.node.edge(WINDOW_END, windows.last_holding(int(end) - 1) + 1)
        return first, end

    def answered(self, low: float, high: float) -> Range:
        """Return the ends of the windows that a step answers, given its slices."""
        windows = self.node.windows
        low, high = (
            self.node.edge(WINDOW_END, windows.first_open(int(each)))
            if math.isfinite(each)
            else each
            for each in (low, high)
        )
        return low, high

    def held(self, first: float, end: float) -> Range:
        """Return the ends of windows themselves: rows of a window are placed at its end."""
        return first, end

    def placed(self, clock: Expression) -> Expression:  # noqa: ARG002
        """Return the time at which rows are placed."""
        return WINDOW_CLOCK


SideEpochs: TypeAlias = SameEpochs | WindowEpochs
