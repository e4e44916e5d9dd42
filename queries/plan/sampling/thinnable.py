"""Which streams a full log may thin: remove the rows with greater hashes, and keep the rest whole.

A stream of a sample that follows the load can be thinned if its columns show the terms of the hash
and the packet times of its rows, and if the rows belong to epochs of some node: a node trims
an epoch at the least threshold of all its streams, so rows that another stream has not removed are
left out as well. Nodes whose rows live longer than an epoch need the thresholds of times that they
have answered: their samples are not thinned.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from gscope.queries.expressions.types import Direction, GsqlType
from gscope.queries.plan.sampling.epoch_times import epoch_begin
from gscope.queries.plan.sampling.sampled_rows import rows_of_lfta
from gscope.queries.plan.sampling.side_epochs import SAME_EPOCHS
from gscope.records import dataclass

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Mapping

    from gscope.queries.expressions.expressions import Expression
    from gscope.queries.plan.program import Lfta, Program
    from gscope.queries.plan.sampling.moving_samples import MovingSample


@dataclass(frozen=True, slots=True)
class ThinnableRows:
    """The rows of a stream that can be thinned.

    Attributes:
        terms: the terms of the hash, over the columns.
        clocks: columns that rise with the time of packets, each over these times.
    """

    terms: tuple[Expression, ...]
    clocks: Mapping[str, Expression]

    def times(self, extents: Mapping[str, tuple[int, int]]) -> tuple[int, int] | None:
        """Return the packet times that rows may have: from the first, below the second.

        Args:
            extents: the least and the greatest value of columns.

        Returns:
            None if the columns do not bound them.
        """
        spans: list[tuple[int, int]] = []
        for column, clock in self.clocks.items():
            least, greatest = extents[column]
            first, end = epoch_begin(clock, least), epoch_begin(clock, greatest + 1)
            if first is not None and end is not None:
                spans.append((first, end))
        if not spans:
            return None
        return max(first for first, _ in spans), min(end for _, end in spans)


@dataclass(frozen=True, slots=True)
class ThinnableSample:
    """The streams of one component that can be thinned.

    Attributes:
        rows: the rows of each of them, by name.
        min_rate: the least rate that its queries allow.
    """

    rows: Mapping[str, ThinnableRows]
    min_rate: float


def thinnable_samples(
    program: Program, samples: Iterable[MovingSample], streams: Collection[str]
) -> tuple[ThinnableSample, ...]:
    """Return the samples of which some streams can be thinned.

    Args:
        program: the compiled queries.
        samples: those that follow the load.
        streams: the streams that may be thinned as far as their readers are concerned.
    """
    found = []
    for sample in samples:
        sides = [side for sides in sample.sides.values() for side in sides]
        if any(side.reach != SAME_EPOCHS or side.groups is not None for side in sides):
            continue
        in_epochs = {s for side in sides for source, _ in side.clocks for s in source.streams}
        rows: dict[str, ThinnableRows] = {}
        for lfta in map(program.lfta, sample.lftas):
            own = [s for s in lfta.streams if s in in_epochs and s in streams]
            made = _rows(lfta) if own else None
            if made is not None:
                rows |= dict.fromkeys(own, made)
        if rows:
            found.append(ThinnableSample(rows, sample.min_rate))
    return tuple(found)


def _rows(lfta: Lfta) -> ThinnableRows | None:
    """Return how rows of an LFTA are thinned; None if its columns do not show enough."""
    rows = rows_of_lfta(lfta)
    if not rows.terms:
        return None
    if any(term.type in (GsqlType.STRING, GsqlType.FLOAT) for term in rows.terms):
        return None
    ((source,),) = rows.readings
    rising = {c.name for c in lfta.schema.temporal if c.ordering.direction is Direction.INCREASING}
    clocks = {name: clock for name, clock in source.times.items() if name in rising}
    return ThinnableRows(rows.terms, clocks) if clocks else None
