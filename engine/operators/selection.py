"""Selection: WHERE and SELECT over rows as they come; it waits for nothing."""

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
from gscope.engine.release import ENDED, NOTHING, Bound, bound_of
from gscope.engine.spark.expressions import column_leaf, quote, to_sql

if TYPE_CHECKING:
    from collections.abc import Mapping

    from gscope.engine.release import Port
    from gscope.queries.plan.program import SelectionNode
    from gscope.queries.streams.messages import Extent


@dataclass(slots=True)
class SelectionOperator:
    """The running state of a selection: it reads every batch once, when it comes."""

    node: SelectionNode
    inputs: Inputs = field(default_factory=Inputs)

    @property
    def ports(self) -> dict[str, Port]:
        """Its sources by name."""
        return self.inputs.ports

    @property
    def watermark(self) -> Bound:
        """A selection holds nothing back; it is done when its input is, and read."""
        is_read = not any(port.pending for port in self.ports.values())
        return ENDED if is_read and self.inputs.has_ended() else NOTHING

    def advance(self, fresh: Mapping[str, tuple[Extent, ...]]) -> Work | None:
        """Take every pending batch and every fresh row."""
        batches = tuple((p.name, batch) for p in self.ports.values() for batch in p.pending)
        upstream = tuple(name for name in self.ports if name in fresh)
        for port in self.ports.values():
            port.pending = []
        if not batches and not upstream:
            return None
        ranges: list[Mapping[str, tuple[Bound, Bound]]] = []
        ranges += [batch_ranges(batch) for _, batch in batches]
        ranges += [fresh_ranges(fresh[name]) for name in upstream]
        temporal = tuple(
            c for c in self.node.columns if self.node.schema[c.name].ordering.is_temporal
        )
        return Work(
            node=self.node,
            epoch=None,
            low=NOTHING,
            high=ENDED,
            batches=batches,
            straddles=False,
            upstream=upstream,
            extents=extents_of(temporal, ranges),
        )

    def output_bounds(self) -> dict[str, Bound]:
        """The input's bounds, put through the output expressions."""
        if self.inputs.has_ended():
            return {column.name: ENDED for column in self.node.schema.temporal}
        bounds = self.inputs.column_bounds()
        return {
            column.name: bound_of(column.expression, bounds)
            for column in self.node.columns
            if self.node.schema[column.name].ordering.is_temporal
        }

    def restore(self, watermark: Bound) -> None:
        """Nothing to restore: what was read is known from the cursors."""


def bookkeeping(node: SelectionNode) -> SelectionOperator:
    """The running state of a selection."""
    return SelectionOperator(node)


def lower(node: SelectionNode, source: str) -> str:
    """The Spark SQL text of a selection over the rows of ``source``."""
    columns = ", ".join(
        f"{to_sql(column.expression, column_leaf)} AS {quote(column.name)}"
        for column in node.columns
    )
    where = "" if node.predicate is None else f" WHERE {to_sql(node.predicate, column_leaf)}"
    return f"SELECT {columns} FROM {source}{where}"
