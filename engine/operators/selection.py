"""Selection: WHERE and SELECT over rows as they come; it waits for nothing."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from gscope.engine.operators.base import Work, ended, extents_of, promises
from gscope.engine.watermarks.bounds import ENDED, NOTHING, Bound, named_spans
from gscope.engine.watermarks.release import ReleasedInput, Side
from gscope.queries.expressions.expressions import Column

if TYPE_CHECKING:
    from collections.abc import Mapping

    from gscope.engine.storage.written import State
    from gscope.queries.expressions.expressions import Expression, NamedExpression
    from gscope.queries.plan.program import SelectionNode, WatchlistJoinNode
    from gscope.queries.streams.messages import Extent


@dataclass(slots=True)
class SelectionOperator:
    """The running state of a selection: it reads every batch once, when it comes."""

    node: SelectionNode | WatchlistJoinNode
    side: Side = field(default_factory=Side)
    state: State | None = None
    late_tuples: int = 0

    @property
    def sides(self) -> tuple[Side, ...]:
        """The only one."""
        return (self.side,)

    @property
    def watermark(self) -> Bound:
        """A selection holds nothing back; it is done when its input is, and read."""
        return ENDED if self.side.has_ended and not self.side.pending else NOTHING

    def advance(self, fresh: Mapping[str, tuple[Extent, ...]]) -> Work | None:
        """Take every pending batch and every fresh row."""
        upstream = tuple(name for name in self.side.ports if name in fresh)
        taken = ReleasedInput(batches=tuple(self.side.pending), upstream=upstream)
        for port in self.side.ports.values():
            port.pending = []
        if not taken.reads_rows:
            return None
        extents = extents_of(self._temporal_columns(), named_spans(taken.spans(fresh)))
        return Work(self.node, NOTHING, ENDED, (taken,), extents=extents)

    def output_bounds(self) -> dict[str, Bound]:
        """The input's bounds, put through the output expressions."""
        if self.watermark == ENDED:
            return ended(self.node.schema)
        return promises(self.node.schema, self.node.columns, self._bound)

    def clock(self) -> dict[str, Bound]:
        """See ``Operator``."""
        return promises(
            self.node.schema,
            self.node.columns,
            lambda part: self.side.clock(part) if isinstance(part, Column) else None,
        )

    @property
    def released(self) -> Bound:
        """See ``Operator``."""
        return self.watermark

    def restore(self, watermark: Bound, released: Bound) -> None:
        """Nothing to restore: what was read is known from the cursors."""

    def _bound(self, part: Expression) -> Bound | None:
        return self.side.bound_unread(part) if isinstance(part, Column) else None

    def _temporal_columns(self) -> list[NamedExpression]:
        schema = self.node.schema
        return [c for c in self.node.columns if schema[c.name].ordering.is_temporal]


def bookkeeping(node: SelectionNode) -> SelectionOperator:
    """The running state of a selection."""
    return SelectionOperator(node)
