"""Bookkeeping of operators whose rows pass as they come: selection, union, watchlist join."""

from __future__ import annotations

from typing import TYPE_CHECKING

from gscope.engine.operators.base import Work, ended, extents_of, promises
from gscope.engine.watermarks.bounds import ANYTHING, ENDED, NO_VALUE, NOTHING, Bound
from gscope.engine.watermarks.release import ReleasedInput
from gscope.queries.expressions.expressions import Column
from gscope.records import dataclass

if TYPE_CHECKING:
    from collections.abc import Mapping

    from gscope.engine.storage.parquet_files import State
    from gscope.engine.watermarks.bounds import Span
    from gscope.engine.watermarks.release import Side
    from gscope.queries.expressions.expressions import Expression, NamedExpression
    from gscope.queries.plan.program import MergeNode, SelectionNode, WatchlistJoinNode
    from gscope.queries.streams.messages import Extent


@dataclass(slots=True)
class PassThroughOperator:
    """The running state of an operator that reads every batch once, in the step after it arrives.

    ``advance`` releases all pending batches and all rows that upstream queries give in the same
    step, and forgets the batches at once: no row is retained, none is late, and ``state`` stays
    None. The watermark is minus infinity until every input has ended and is read, then infinite; it
    never falls. Bounds of the output are those of the unread input, put through the output columns:
    they rise as the inputs' punctuation does, and fall only if an input breaks its promise. After a
    restart the cursors of the ports say what was read, so ``restore`` has nothing to do.

    Attributes:
        outputs: the output columns, over the columns of the sides (``Column.input`` names the
            side). A column of a table, which is not a side, has no bound.
    """

    node: SelectionNode | WatchlistJoinNode | MergeNode
    sides: tuple[Side, ...]
    outputs: tuple[NamedExpression, ...]
    state: State | None = None
    late_tuples: int = 0

    @property
    def watermark(self) -> Bound:
        """The bound below which everything has been answered: all or nothing."""
        is_done = all(side.has_ended and not side.pending for side in self.sides)
        return ENDED if is_done else NOTHING

    @property
    def released(self) -> Bound:
        """See ``Operator``."""
        return self.watermark

    def advance(self, fresh: Mapping[str, tuple[Extent, ...]]) -> Work | None:
        """Release every pending batch and every fresh row."""
        inputs = tuple(_take_all(side, fresh) for side in self.sides)
        if not any(taken.reads_rows for taken in inputs):
            return None
        spans = [taken.spans(fresh) for taken in inputs]

        def known(part: Expression) -> Span | None:
            if not isinstance(part, Column):
                return None
            if part.input >= len(inputs):
                return ANYTHING
            is_read = inputs[part.input].reads_rows
            return spans[part.input].get(part.name, ANYTHING) if is_read else NO_VALUE

        schema = self.node.schema
        temporal = [c for c in self.outputs if schema[c.name].ordering.is_temporal]
        return Work(self.node, NOTHING, ENDED, inputs, extents=extents_of(temporal, known))

    def output_bounds(self) -> dict[str, Bound]:
        """Return the bounds of the unread input, put through the output columns."""
        if self.watermark == ENDED:
            return ended(self.node.schema)
        return promises(self.node.schema, self.outputs, self._unread_bound)

    def clock(self) -> dict[str, Bound]:
        """See ``Operator``."""
        return promises(self.node.schema, self.outputs, self._clock_of)

    def restore(self, watermark: Bound, released: Bound) -> None:
        """Restore nothing: the cursors of the ports say what was read."""

    def _unread_bound(self, part: Expression) -> Bound | None:
        side = self._side_of(part)
        return None if side is None else side.bound_unread(part)

    def _clock_of(self, part: Expression) -> Bound | None:
        side = self._side_of(part)
        return None if side is None else side.clock(part)

    def _side_of(self, part: Expression) -> Side | None:
        """Return the side that has a column; None of other expressions and of a table's columns."""
        if not isinstance(part, Column) or part.input >= len(self.sides):
            return None
        return self.sides[part.input]


def _take_all(side: Side, fresh: Mapping[str, tuple[Extent, ...]]) -> ReleasedInput:
    """Return all that waits at ``side`` and all fresh rows, and forget the batches."""
    upstream = tuple(name for name in side.ports if name in fresh)
    taken = ReleasedInput(batches=tuple(side.pending), upstream=upstream)
    for port in side.ports.values():
        port.pending = []
    return taken
