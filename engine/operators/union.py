"""Union: a merge of latent inputs alone, whose rows pass as they come; it waits for nothing and orders nothing."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from gscope.engine.operators.base import Work, ended, extents_of, promises
from gscope.engine.operators.merge import merged_outputs
from gscope.engine.watermarks.bounds import ANYTHING, ENDED, NO_VALUE, NOTHING, Bound
from gscope.engine.watermarks.release import ReleasedInput, Side
from gscope.queries.expressions.expressions import Column

if TYPE_CHECKING:
    from collections.abc import Mapping

    from gscope.engine.storage.written import State
    from gscope.engine.watermarks.bounds import Span
    from gscope.queries.expressions.expressions import Expression, NamedExpression
    from gscope.queries.plan.program import MergeNode
    from gscope.queries.streams.messages import Extent


@dataclass(slots=True)
class UnionOperator:
    """The running state of a union: it reads every batch once, when it comes.

    What it promises is the least that its inputs promise, so that operators above it that need time are as right as
    above a merge.
    """

    node: MergeNode
    sides: tuple[Side, ...]
    outputs: tuple[NamedExpression, ...]
    state: State | None = None
    late_tuples: int = 0

    @property
    def watermark(self) -> Bound:
        """A union holds nothing back; it is done when its inputs are, and read."""
        is_done = all(side.has_ended and not side.pending for side in self.sides)
        return ENDED if is_done else NOTHING

    @property
    def released(self) -> Bound:
        """See ``Operator``."""
        return self.watermark

    def advance(self, fresh: Mapping[str, tuple[Extent, ...]]) -> Work | None:
        """Take every pending batch and every fresh row."""
        taken = tuple(
            ReleasedInput(
                batches=tuple(side.pending),
                upstream=tuple(name for name in side.ports if name in fresh),
            )
            for side in self.sides
        )
        for side in self.sides:
            for port in side.ports.values():
                port.pending = []
        if not any(each.reads_rows for each in taken):
            return None
        spans = [each.spans(fresh) for each in taken]

        def known(part: Expression) -> Span | None:
            if not isinstance(part, Column):
                return None
            is_read = taken[part.input].reads_rows
            return spans[part.input].get(part.name, ANYTHING) if is_read else NO_VALUE

        schema = self.node.schema
        temporal = [c for c in self.outputs if schema[c.name].ordering.is_temporal]
        return Work(self.node, NOTHING, ENDED, taken, extents=extents_of(temporal, known))

    def output_bounds(self) -> dict[str, Bound]:
        """The least of the inputs' bounds."""
        if self.watermark == ENDED:
            return ended(self.node.schema)
        return promises(
            self.node.schema,
            self.outputs,
            lambda part: (
                self.sides[part.input].bound_unread(part) if isinstance(part, Column) else None
            ),
        )

    def clock(self) -> dict[str, Bound]:
        """See ``Operator``."""
        return promises(
            self.node.schema,
            self.outputs,
            lambda part: self.sides[part.input].clock(part) if isinstance(part, Column) else None,
        )

    def restore(self, watermark: Bound, released: Bound) -> None:
        """Nothing to restore: what was read is known from the cursors."""


def bookkeeping(node: MergeNode) -> UnionOperator:
    """The running state of a merge of latent inputs."""
    return UnionOperator(node, tuple(Side() for _ in node.inputs), merged_outputs(node))
