"""What a pre-sample saves: tuples that LFTAs ship, and CPU of a replay, daemon and job together.

    python -m benchmarks.sampling.pre_sample [--packets 5000000] [--runs 3]

Three queries of k least values: ``hosts`` keeps 64 hashes of each of the hosts of a minute, as
``many_sources`` of the library, ``flows`` 1,000 hashes of flows in 10 seconds, ``sizes`` also
counts packets and bytes. Each runs as it is, and with a condition in WHERE that always holds and
excludes a pre-sample, so that the LFTA ships every tuple. Both must have the same answer. ``start``
is the query over 1,000 packets, which is subtracted. Writes ``benchmarks/sampling/pre_sample.csv``.
"""

from __future__ import annotations

import argparse
import time
from dataclasses import dataclass, replace
from pathlib import Path
from statistics import median
from typing import TYPE_CHECKING

from benchmarks.measure import race, run_once
from benchmarks.records import write_records
from benchmarks.sampling.kernel_cost import blocks_of
from benchmarks.sampling.load import FEW_PACKETS, contestant
from benchmarks.trace import OUT, trace, warm
from gscope.capture.lfta.cache import load_kernel
from gscope.capture.lfta.runtime import LftaRuntime
from gscope.capture.lfta.settings import LftaSettings
from gscope.queries.compile import CompileContext, QueryText, compile_queries

if TYPE_CHECKING:
    from collections.abc import Sequence

    from benchmarks.measure import Cost
    from gscope.capture.lfta.columns import ColumnBatch
    from gscope.capture.sources.block import Block
    from gscope.queries.plan.program import Lfta

CSV = Path(__file__).with_name("pre_sample.csv")
PACKETS = 5_000_000
ROUNDS = 5
QUERIES = {
    "hosts": """
        SELECT tb, destIP, HX FROM IP WHERE HX <= Kth_smallest_value$(HX, 64){more}
        GROUP BY time/60 AS tb, destIP, H(srcIP) AS HX SUPERGROUP destIP
        HAVING HX <= Kth_smallest_value$(HX, 64) CLEANING_WHEN count_distinct$(*) >= 128
        CLEANING_BY HX <= Kth_smallest_value$(HX, 64)""",
    "flows": """
        SELECT tb, HX FROM IP WHERE HX <= Kth_smallest_value$(HX, 1000){more}
        GROUP BY time/10 AS tb, H(srcIP) * 31 + H(destIP) + srcPort * 65536 + destPort AS HX
        HAVING HX <= Kth_smallest_value$(HX, 1000) CLEANING_WHEN count_distinct$(*) >= 2000
        CLEANING_BY HX <= Kth_smallest_value$(HX, 1000)""",
    "sizes": """
        SELECT tb, HX, count(*) AS packets, sum(len) AS bytes
        FROM IP WHERE HX <= Kth_smallest_value$(HX, 1000){more}
        GROUP BY time/10 AS tb, H(srcIP) * 31 + H(destIP) + srcPort * 65536 + destPort AS HX
        HAVING HX <= Kth_smallest_value$(HX, 1000) CLEANING_WHEN count_distinct$(*) >= 2000
        CLEANING_BY HX <= Kth_smallest_value$(HX, 1000)""",
}
UNKNOWN = " AND coalesce(count_distinct$(*), 0) >= 0"
"""A condition that always holds, and that the planner must take for one that may not."""


@dataclass(frozen=True, slots=True)
class Saved:
    """What one query costs, as it is and with every tuple shipped.

    Attributes:
        query: its name.
        packets: packets of the capture.
        shipped: tuples that its LFTA ships.
        share: of all tuples.
        kernel_ns: CPU of the kernel for each packet.
        kernel_all_ns: the same where it ships every tuple.
        cpu_s: median CPU of the replay without the start.
        cpu_all_s: the same where every tuple is shipped.
    """

    query: str
    packets: int
    shipped: int
    share: float
    kernel_ns: float
    kernel_all_ns: float
    cpu_s: float
    cpu_all_s: float


def lfta_of(text: str) -> Lfta:
    """Return the LFTA of a query."""
    (lfta,) = compile_queries([QueryText(text, "q")], CompileContext(("main",))).program.lftas
    return lfta


def kernel(lfta: Lfta, blocks: Sequence[Block]) -> tuple[float, int]:
    """Return the nanoseconds of CPU for each packet, and the tuples shipped.

    The nanoseconds are the least of some rounds.
    """

    def emit(_: str, batch: ColumnBatch) -> None:
        batch.release()

    least, shipped = float("inf"), 0
    for _ in range(ROUNDS):
        engine = LftaRuntime([lfta], "main", LftaSettings(), load_kernel([lfta]), emit)
        began = time.thread_time_ns()
        for block in blocks:
            engine.process(block, 0)
        least = min(least, (time.thread_time_ns() - began) / sum(b.count for b in blocks))
        shipped = engine.lfta_counters(lfta.name).out_tuples
    return least, shipped


def check() -> None:
    """Check that the answers are the same, bit for bit."""
    for name in QUERIES:
        thin, every = (_answer(name, more).read_bytes() for more in ("", UNKNOWN))
        assert thin.count(b"\n") > 1, name
        assert thin == every, name


def _answer(name: str, more: str) -> Path:
    return OUT / f"pre_sample_{name}{'_all' if more else ''}.csv"


def figures(packets: int, runs: int) -> list[Saved]:
    """Return the figures of all queries; contestants run in turn."""
    capture, few = trace(packets), trace(FEW_PACKETS)
    texts = {(n, m): t.format(more=m) for n, t in QUERIES.items() for m in ("", UNKNOWN)}
    lftas = {key: lfta_of(text) for key, text in texts.items()}
    assert all((lfta.pre_sample is None) == bool(more) for (_, more), lfta in lftas.items())
    warm(capture)
    whole = [
        replace(contestant(f"{n}{m}", capture, t), output=_answer(n, m))
        for (n, m), t in texts.items()
    ]
    starts = [contestant(f"start {n}{m}", few, t) for (n, m), t in texts.items()]
    for each in starts:
        run_once(each)
    costs = race([*starts, *whole], runs)
    check()
    blocks = blocks_of(capture)
    found = []
    for name in QUERIES:
        (thin_ns, thin), (all_ns, every) = (kernel(lftas[name, m], blocks) for m in ("", UNKNOWN))
        cpu, cpu_all = (_cpu(costs, f"{name}{more}") for more in ("", UNKNOWN))
        found.append(Saved(name, packets, thin, thin / every, thin_ns, all_ns, cpu, cpu_all))
    return found


def _cpu(costs: dict[str, list[Cost]], name: str) -> float:
    start, whole = (median(cost.cpu_s for cost in costs[n]) for n in (f"start {name}", name))
    return whole - start


def _main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, allow_abbrev=False)
    parser.add_argument("--packets", type=int, default=PACKETS)
    parser.add_argument("--runs", type=int, default=3)
    given = parser.parse_args()
    rows = figures(given.packets, given.runs)
    write_records(rows, CSV)
    print("| query | tuples shipped | share | kernel, ns | all | replay, CPU s | all |")
    print("| --- | ---: | ---: | ---: | ---: | ---: | ---: |")
    for row in rows:
        print(
            f"| {row.query} | {row.shipped:,} | {row.share:.2%} | {row.kernel_ns:.1f}"
            f" | {row.kernel_all_ns:.1f} | {row.cpu_s:.2f} | {row.cpu_all_s:.2f} |"
        )


if __name__ == "__main__":
    _main()
