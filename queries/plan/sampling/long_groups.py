"""Groups that live longer than an epoch: those of windows, and those of running aggregates.

A group of a window is left out where the window is assembled, by the least threshold of its slices.

A group of a running aggregate has a life, from the epoch of its first tuple to that at whose end
CLOSING_WHEN holds. Its state is right only if no threshold of its life was below its hash. When a
threshold falls below the hash, the state is dropped. When thresholds rise again, tuples of the
group are back, but it is unknown whether a life of the full answer is going on::

    epoch        1      2      3      4      5      6
    threshold   1.0    0.2    0.2    1.0    1.0    1.0
    tuples      yes    yes    yes    yes    none   yes
    group       lives  lost   lost   doubt  closes lives

So a group that appears in the first epoch after a rise is in doubt: it has no answers, until a part
of CLOSING_WHEN that reads no running aggregate closes it. From then on everything is known of it. A
group that does not appear in that epoch is known to be closed, if an epoch without tuples closes
every group. In a query where it does not, thresholds never rise.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from gscope.records import dataclass

if TYPE_CHECKING:
    from gscope.queries.expressions.expressions import Expression


@dataclass(frozen=True, slots=True)
class LongGroups:
    """The groups of a node that live longer than an epoch of its side.

    Attributes:
        terms: the terms of the hash over the keys of a group.
        closing: of a running aggregate, a condition that closes groups whose state is unknown; it
            holds in epochs without tuples. None if there is none.
        is_cumulative: whether the threshold of an epoch is the least of all epochs up to it.
    """

    terms: tuple[Expression, ...]
    closing: Expression | None = None
    is_cumulative: bool = False
