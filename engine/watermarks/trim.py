"""What a step leaves out of the rows of a sample: those above the thresholds of their epochs."""

from __future__ import annotations

from typing import TYPE_CHECKING

from gscope.records import dataclass

if TYPE_CHECKING:
    from gscope.engine.watermarks.bounds import Bound
    from gscope.queries.expressions.expressions import Expression
    from gscope.queries.plan.sampling.keyed_hash import HashKey


@dataclass(frozen=True, slots=True)
class ThresholdRange:
    """Epochs ``first <= epoch < end`` with one threshold; ``ceiling`` as of ``ThresholdStep``."""

    first: Bound
    end: Bound
    threshold: int
    ceiling: int

    @property
    def is_whole(self) -> bool:
        """Whether no row of these epochs is to be left out."""
        return self.threshold == self.ceiling


@dataclass(frozen=True, slots=True)
class Trim:
    """The rows that a step leaves out at one side.

    They are those whose hash is above their epoch's threshold.

    Attributes:
        ranges: the thresholds of the epochs of the step, in order and without gaps.
        epoch: the epoch over the columns of a row.
        terms: the terms of the hash over the columns of a row.
        key: the constants of the hash.
        is_logged: whether the rows are in segments of the log; else another query gives them.
    """

    ranges: tuple[ThresholdRange, ...]
    epoch: Expression
    terms: tuple[Expression, ...]
    key: HashKey
    is_logged: bool


@dataclass(frozen=True, slots=True)
class GroupTrim:
    """The groups that a step leaves out because they live longer than an epoch of its input.

    Attributes:
        ranges: the thresholds of the epochs of the step, and of the one before; of a window, by its
            end.
        terms: the terms of the hash over the keys of a group.
        key: the constants of the hash.
        closing: as of ``LongGroups``.
    """

    ranges: tuple[ThresholdRange, ...]
    terms: tuple[Expression, ...]
    key: HashKey
    closing: Expression | None = None
