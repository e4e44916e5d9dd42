"""Running LFTAs in tests and merging what they put out."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from gscope.capture.interface.divided_engine import DividedEngine
from gscope.capture.kernels.native.machine_code import Optimization
from gscope.capture.lfta import cache
from gscope.capture.lfta.cache import load_kernel
from gscope.capture.lfta.interpreter import LftaInterpreter
from gscope.capture.lfta.native_kernel import DECODER_SOURCE, KernelCode, KernelSource
from gscope.capture.lfta.runtime import LftaEngine, LftaRuntime
from gscope.capture.lfta.settings import LftaSettings
from gscope.capture.lfta.tiers import KernelTiers
from gscope.queries.catalog.aggregate.partial_op import PartialOp

if TYPE_CHECKING:
    from gscope.capture.lfta.columns import ColumnBatch
    from gscope.capture.sources.block import Block
    from gscope.queries.plan.program import Lfta

Row = dict[str, Any]


@dataclass
class Collector:
    """An emit callback that keeps all rows.

    It checks each batch against the promises made so far.
    """

    rows: dict[str, list[Row]] = field(default_factory=dict)
    promises: dict[str, dict[str, int]] = field(default_factory=dict)

    def __call__(self, lfta: str, batch: ColumnBatch) -> None:
        assert batch.lfta == lfta
        assert batch.rows > 0
        rows = batch.to_arrow().to_pylist()
        assert len(rows) == batch.rows
        for extent in batch.extents:
            values = [row[extent.column] for row in rows if row[extent.column] is not None]
            assert (min(values), max(values)) == (extent.least, extent.greatest)
            assert extent.least >= self.promises.get(lfta, {}).get(extent.column, extent.least)
            negative = f"-{extent.column}"
            assert -extent.greatest >= self.promises.get(lfta, {}).get(negative, -extent.greatest)
        self.rows.setdefault(lfta, []).extend(rows)
        batch.release()

    def heartbeat(self, engine: LftaEngine, clock_ns: int, skew_ns: int) -> None:
        for lfta, made in engine.heartbeat(clock_ns, skew_ns).items():
            known = self.promises.setdefault(lfta, {})
            for promise in made:
                assert promise.bound >= known.get(promise.column, promise.bound)
                known[promise.column] = promise.bound


Make = Callable[[Sequence["Lfta"], Collector], LftaEngine]


def compiled(settings: LftaSettings | None = None) -> Make:
    def make(lftas: Sequence[Lfta], emit: Collector) -> LftaEngine:
        kernel = load_kernel(lftas)
        return LftaRuntime(lftas, "main", settings or LftaSettings(), kernel, emit)

    return make


def replaced(settings: LftaSettings | None = None) -> Make:
    """Both tiers of a kernel, one replacing the other after every call."""

    def make(lftas: Sequence[Lfta], emit: Collector) -> LftaEngine:
        kernel = load_kernel(lftas)
        source = KernelSource(
            kernel.path,
            kernel.path.read_text(),
            cache._write(cache._name(DECODER_SOURCE), DECODER_SOURCE),
            len(lftas),
        )
        both = [KernelCode(source).load(optimization) for optimization in Optimization]
        tiers = KernelTiers(both[0])

        class Swapped(LftaRuntime):
            def process(self, *arguments: Any) -> int:
                tiers.functions = both[both[0] is tiers.functions]
                return super().process(*arguments)

        kernel = replace(kernel, tiers=tiers)
        return Swapped(lftas, "main", settings or LftaSettings(), kernel, emit)

    return make


def divided(settings: LftaSettings | None = None, parts: int = 3) -> Make:
    """LFTAs in parts, each with a thread."""

    def make(lftas: Sequence[Lfta], emit: Collector) -> LftaEngine:
        kernel = load_kernel(lftas)
        sizes = settings or LftaSettings()
        shares = [lftas[part::parts] for part in range(min(parts, len(lftas)))]
        return DividedEngine(
            [LftaRuntime(share, "main", sizes, kernel, emit) for share in shares],
            [lfta.name for lfta in lftas],
        )

    return make


def interpreted(groups: int = 1 << 16) -> Make:
    def make(lftas: Sequence[Lfta], emit: Collector) -> LftaEngine:
        return LftaInterpreter(lftas, "main", emit, groups)

    return make


def run(
    make: Make,
    lftas: Sequence[Lfta],
    blocks: Sequence[Block],
    beats: Sequence[tuple[int, int]] = (),
) -> tuple[dict[str, list[Row]], LftaEngine]:
    """All rows of each LFTA; ``beats`` are heartbeats as (clock_ns, skew_ns), rising."""
    collector = Collector()
    engine = make(lftas, collector)
    waiting = list(beats)
    for block in blocks:
        at = 0
        while True:
            until_ns = waiting[0][0] if waiting else 2**63 - 1
            at = engine.process(block, at, until_ns)
            if at == block.count:
                break
            collector.heartbeat(engine, *waiting.pop(0))
    for beat in waiting:
        collector.heartbeat(engine, *beat)
    engine.finish()
    return {lfta.name: collector.rows.get(lfta.name, []) for lfta in lftas}, engine


_MERGE: dict[PartialOp, Callable[[Any, Any], Any]] = {
    PartialOp.COUNT: lambda a, b: a + b,
    PartialOp.SUM: lambda a, b: (a + b + 2**63) % 2**64 - 2**63,
    PartialOp.MIN: lambda a, b: min(a, b, key=_order),
    PartialOp.MAX: lambda a, b: max(a, b, key=_order),
    PartialOp.OR: lambda a, b: a | b,
    PartialOp.AND: lambda a, b: a & b,
    PartialOp.XOR: lambda a, b: a ^ b,
}


def _order(value: Any) -> Any:
    if isinstance(value, float):
        return (1, 0.0) if math.isnan(value) else (0, value)
    return value


def plain(value: Any) -> Any:
    """A value that equals itself and keeps zeros apart."""
    return repr(value) if isinstance(value, float) else value


def merged(lfta: Lfta, rows: Sequence[Row]) -> dict[tuple[Any, ...], tuple[Any, ...]]:
    """Final groups of an aggregation."""
    groups: dict[tuple[Any, ...], list[Any]] = {}
    for row in rows:
        key = tuple(plain(row[term.name]) for term in lfta.keys)
        states = groups.setdefault(key, [None] * len(lfta.partials))
        for n, partial in enumerate(lfta.partials):
            a, b = states[n], row[partial.name]
            states[n] = b if a is None else a if b is None else _MERGE[partial.op](a, b)
    return {key: tuple(map(plain, states)) for key, states in groups.items()}


def answer(lfta: Lfta, rows: Sequence[Row]) -> Any:
    """What must be the same however an LFTA is run: final groups, or the rows in order."""
    if lfta.is_aggregation:
        return merged(lfta, rows)
    return [tuple(plain(value) for value in row.values()) for row in rows]
