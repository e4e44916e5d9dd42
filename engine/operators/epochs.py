"""Bookkeeping of operators that read whole epochs: aggregation and merge.

watermark = min over ports of epoch(bounds); a step reads the rows with
old watermark <= epoch < new watermark.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from gscope.engine.operators.base import (
    Inputs,
    Work,
    batch_ranges,
    extents_of,
    fresh_ranges,
)
from gscope.engine.release import ENDED, NOTHING, Bound, affordable, bound_of, discard, release

if TYPE_CHECKING:
    from collections.abc import Mapping

    from gscope.engine.release import Port
    from gscope.queries.plan.expressions import Expression, NamedExpression
    from gscope.queries.plan.program import HftaNode
    from gscope.queries.streams.messages import Extent


@dataclass(slots=True)
class EpochOperator:
    """The running state of an operator that releases by epoch.

    Attributes:
        epoch: the released expression over input columns.
        keys: computed columns between input and output that ``outputs`` refers to; for a merge the
            input columns themselves.
        outputs: the output columns.
        slack: by how much the watermark stays behind the punctuation, unit of the epoch.
    """

    node: HftaNode
    epoch: Expression
    outputs: tuple[NamedExpression, ...]
    keys: tuple[NamedExpression, ...] = ()
    slack: int = 0
    inputs: Inputs = field(default_factory=Inputs)
    watermark: Bound = NOTHING

    @property
    def ports(self) -> dict[str, Port]:
        """Its sources by name."""
        return self.inputs.ports

    def advance(self, fresh: Mapping[str, tuple[Extent, ...]]) -> Work | None:
        """Release the epochs between the old watermark and the new one."""
        low, high = self.watermark, max(self.watermark, self.inputs.bound(self.epoch) - self.slack)
        upstream = tuple(name for name in self.ports if name in fresh)
        if high == low and not upstream:
            return None
        released = release(self.ports.values(), self.epoch, low, high)
        if not upstream and high > low:
            nearer = affordable(released, self.epoch)
            if nearer < high:
                high = nearer
                released = release(self.ports.values(), self.epoch, low, high)
        self.watermark = high
        discard(self.ports.values(), self.epoch, high)
        carries = tuple(n for n in upstream if self._reach(fresh[n])[1] >= high)
        reads = tuple(n for n in upstream if self._reach(fresh[n])[0] < high)
        ranges = [batch_ranges(batch) for _, batch in released.batches]
        ranges += [fresh_ranges(fresh[name]) for name in reads]
        return Work(
            node=self.node,
            epoch=self.epoch,
            low=low,
            high=high,
            batches=released.batches,
            straddles=released.straddles,
            upstream=reads,
            carries=carries,
            extents=self._output_extents(ranges, high),
        )

    def output_bounds(self) -> dict[str, Bound]:
        """Bounds of the temporal output columns, given that every later epoch is >= the watermark."""
        if self.watermark == ENDED:
            return {column.name: ENDED for column in self.node.schema.temporal}
        bounds = dict(self.inputs.column_bounds())
        for key in self.keys:
            is_epoch = key.expression == self.epoch
            bounds[key.name] = self.watermark if is_epoch else NOTHING
        return {
            column.name: bound_of(column.expression, bounds)
            for column in self.outputs
            if self.node.schema[column.name].ordering.is_temporal
        }

    def restore(self, watermark: Bound) -> None:
        """Continue from a committed watermark."""
        self.watermark = watermark

    def _reach(self, extents: tuple[Extent, ...]) -> tuple[Bound, Bound]:
        """The least and greatest epoch of upstream rows."""
        ranges = fresh_ranges(extents)
        low = bound_of(self.epoch, {name: r[0] for name, r in ranges.items()})
        high = bound_of(self.epoch, {name: r[1] for name, r in ranges.items()})
        return low, (ENDED if high == NOTHING else high)

    def _output_extents(
        self, ranges: list[dict[str, tuple[Bound, Bound]]], high: Bound
    ) -> tuple[Extent, ...]:
        temporal = tuple(c for c in self.outputs if self.node.schema[c.name].ordering.is_temporal)
        if not self.keys:
            return extents_of(temporal, list(ranges))
        key_ranges: list[Mapping[str, tuple[Bound, Bound]]] = []
        for columns in ranges:
            spans: dict[str, tuple[Bound, Bound]] = {}
            for key in self.keys:
                least = bound_of(key.expression, {n: r[0] for n, r in columns.items()})
                greatest = bound_of(key.expression, {n: r[1] for n, r in columns.items()})
                if key.expression == self.epoch and high != ENDED:
                    greatest = min(greatest, high - 1)
                spans[key.name] = (least, greatest)
            key_ranges.append(spans)
        return extents_of(temporal, key_ranges)
