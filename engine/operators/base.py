"""What an HFTA operator is: a bookkeeping half here, a lowering half in ``engine/spark``.

Bookkeeping sees heartbeats and the extents of batches, never a row. It decides what a step reads and
what the operator may promise about its own output.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Protocol

from gscope.engine.release import ENDED, NOTHING, Bound, Port, bound_of
from gscope.queries.streams.messages import Extent

if TYPE_CHECKING:
    from collections.abc import Mapping

    from gscope.queries.plan.expressions import Expression, NamedExpression
    from gscope.queries.plan.program import HftaNode
    from gscope.queries.streams.messages import Batch


@dataclass(frozen=True, slots=True)
class Work:
    """What one operator does in one step.

    Attributes:
        node: the configured operator.
        epoch: the expression over input columns whose value decides what is released; None when the
            operator takes every row as it comes.
        low: rows below were answered before.
        high: rows from here on stay where they are.
        batches: pending batches to read, each with the name of its port.
        straddles: whether rows outside [low, high) are among them.
        upstream: the queries whose rows of this very step are read as well.
        carries: of those, the ones that may give rows from ``high`` on, which must be kept.
        extents: of the temporal columns of the rows that come out.
    """

    node: HftaNode
    epoch: Expression | None
    low: Bound
    high: Bound
    batches: tuple[tuple[str, Batch], ...]
    straddles: bool
    upstream: tuple[str, ...] = ()
    carries: tuple[str, ...] = ()
    extents: tuple[Extent, ...] = ()

    @property
    def reads_rows(self) -> bool:
        """Whether there can be rows to evaluate."""
        return bool(self.batches or self.upstream)

    @property
    def rows(self) -> int:
        """Rows of the batches read, an upper bound of what is released from them."""
        return sum(batch.rows for _, batch in self.batches)


Fresh = dict[str, tuple[Extent, ...]]
"""Queries that give rows in this step, with the extents of their temporal columns."""


class Operator(Protocol):
    """The running state of one HFTA node; see ``Work`` for what a step makes of it."""

    @property
    def node(self) -> HftaNode:
        """The configured operator."""

    @property
    def ports(self) -> dict[str, Port]:
        """Its sources by name: streams of the log and upstream queries."""

    def advance(self, fresh: Mapping[str, tuple[Extent, ...]]) -> Work | None:
        """Take everything that is released now; None when nothing changed.

        Raises the operator's watermark, and forgets the batches that are wholly read.
        """

    def output_bounds(self) -> dict[str, Bound]:
        """The punctuation of the output's temporal columns."""

    @property
    def watermark(self) -> Bound:
        """The bound below which everything has been answered."""

    def restore(self, watermark: Bound) -> None:
        """Continue after a restart from a committed watermark."""


@dataclass(slots=True)
class Inputs:
    """The ports of an operator, and the arithmetic that all operators share."""

    ports: dict[str, Port] = field(default_factory=dict)

    def bound(self, epoch: Expression) -> Bound:
        """The watermark of ``epoch``: the minimum over all ports."""
        return min((port.bound(epoch) for port in self.ports.values()), default=ENDED)

    def has_ended(self) -> bool:
        """Whether every port has ended."""
        return all(port.has_ended for port in self.ports.values())

    def column_bounds(self) -> dict[str, Bound]:
        """For each temporal column the minimum of its bounds over the ports that have not ended."""
        running = [port for port in self.ports.values() if not port.has_ended]
        columns = {column for port in running for column in port.bounds}
        return {c: min(port.bounds.get(c, NOTHING) for port in running) for c in columns}


def extents_of(
    columns: tuple[NamedExpression, ...], inputs: list[Mapping[str, tuple[Bound, Bound]]]
) -> tuple[Extent, ...]:
    """The extents of computed columns over inputs whose temporal columns span given ranges.

    A column whose range does not follow from them is left out.
    """
    extents: list[Extent] = []
    for column in columns:
        least: Bound = math.inf
        greatest: Bound = -math.inf
        for ranges in inputs:
            low = bound_of(column.expression, {name: r[0] for name, r in ranges.items()})
            high = bound_of(column.expression, {name: r[1] for name, r in ranges.items()})
            least = min(least, low)
            greatest = max(greatest, ENDED if high == NOTHING else high)
        if math.isfinite(least) and math.isfinite(greatest):
            extents.append(Extent(column.name, int(least), int(greatest)))
    return tuple(extents)


def batch_ranges(batch: Batch) -> dict[str, tuple[Bound, Bound]]:
    """The extents of a batch as ranges by column."""
    return {extent.column: (extent.least, extent.greatest) for extent in batch.extents}


def fresh_ranges(extents: tuple[Extent, ...]) -> dict[str, tuple[Bound, Bound]]:
    """The extents of upstream rows as ranges by column."""
    return {extent.column: (extent.least, extent.greatest) for extent in extents}
