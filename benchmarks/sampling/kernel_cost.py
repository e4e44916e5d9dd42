"""What the rule of a sample costs a packet: kernels over blocks in memory, in turns.

    python -m benchmarks.sampling.kernel_cost [--packets 500000] [--rounds 15]

``off`` is a kernel without the rule. The others have it: at the rate 1 they do the same work and
test every packet besides, so the difference to ``off`` is what the test costs. ``groups`` hashes
addresses and ports, ``tuples`` the number of the packet. Each figure is the least CPU time of all
rounds, which other work on the machine raises least. Writes
``benchmarks/sampling/kernel_cost.csv``.
"""

from __future__ import annotations

import argparse
import csv
import time
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from benchmarks.replay import FLOW_QUERY
from benchmarks.trace import trace
from gscope.capture.lfta.cache import load_kernel
from gscope.capture.lfta.runtime import LftaRuntime
from gscope.capture.lfta.settings import LftaSettings
from gscope.capture.shedding.thresholds import InitialSampling
from gscope.capture.sources.files.open import open_source
from gscope.queries.compile import CompileContext, QueryText, compile_queries
from gscope.queries.plan.program_sampling import LeafSampling, SamplingMethod
from gscope.queries.plan.sampling.keyed_hash import HashKey, threshold_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    from gscope.capture.lfta.columns import ColumnBatch
    from gscope.capture.sources.block import Block
    from gscope.queries.plan.program import Lfta

CSV = Path(__file__).with_name("kernel_cost.csv")
BLOCK_BYTES = 4 << 20
RATES = (1.0, 0.5, 0.1, 0.01)
_TERMS = ("srcIP", "destIP", "srcPort", "destPort")


def blocks_of(path: Path) -> list[Block]:
    """Return all packets of a capture in memory."""
    source = open_source(str(path), block_bytes=BLOCK_BYTES)
    try:
        blocks = []
        while True:
            block = source.new_block()
            if not source.fill(block):
                return blocks
            blocks.append(block)
    finally:
        source.close()


def flow_lfta() -> Lfta:
    """Return the LFTA of the flow query."""
    program = compile_queries([QueryText(FLOW_QUERY, "flows")], CompileContext(("main",))).program
    return program.lftas[0]


def sampled(lfta: Lfta, method: SamplingMethod) -> Lfta:
    """Return an LFTA that samples."""
    keys = {key.name: key.expression for key in lfta.keys}
    terms = tuple(keys[name] for name in _TERMS) if method is SamplingMethod.GROUPS else ()
    return replace(lfta, sampling=LeafSampling(method, terms))


def cpu_ns(lfta: Lfta, rate: float, blocks: Sequence[Block]) -> tuple[float, int]:
    """Return the nanoseconds of CPU a packet, and how many packets were shed."""

    def emit(_: str, batch: ColumnBatch) -> None:
        batch.release()

    sampling = InitialSampling(HashKey.of_seed(1), {lfta.name: threshold_of(rate)})
    engine = LftaRuntime(
        [lfta], "main", LftaSettings(), load_kernel([lfta]), emit, sampling=sampling
    )
    began = time.thread_time_ns()
    for block in blocks:
        engine.process(block, 0)
    taken = time.thread_time_ns() - began
    counters = engine.interface_counters
    return taken / counters.packets, counters.shed_packets


def measure(blocks: Sequence[Block], rounds: int) -> list[tuple[str, float, float, float]]:
    """Return what was measured of each contestant.

    It is its name, rate, nanoseconds a packet, and share of shed packets.
    """
    lfta = flow_lfta()
    contestants = [("off", lfta, 1.0)]
    for method in (SamplingMethod.GROUPS, SamplingMethod.TUPLES):
        contestants += [(method.value, sampled(lfta, method), rate) for rate in RATES]
    packets = sum(block.count for block in blocks)
    least = [float("inf")] * len(contestants)
    shed = [0] * len(contestants)
    for _ in range(rounds):
        for n, (_, each, rate) in enumerate(contestants):
            taken, shed[n] = cpu_ns(each, rate, blocks)
            least[n] = min(least[n], taken)
    return [
        (name, rate, least[n], shed[n] / packets) for n, (name, _, rate) in enumerate(contestants)
    ]


def _main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, allow_abbrev=False)
    parser.add_argument("--packets", type=int, default=500_000)
    parser.add_argument("--rounds", type=int, default=15)
    arguments = parser.parse_args()
    rows = measure(blocks_of(trace(arguments.packets)), arguments.rounds)
    off = rows[0][2]
    with CSV.open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(("rule", "rate", "ns_per_packet", "ns_above_off", "shed_share"))
        for name, rate, taken, share in rows:
            row = (name, rate, f"{taken:.2f}", f"{taken - off:.2f}", f"{share:.4f}")
            writer.writerow(row)
            print("{:8}{:>8}{:>10} ns a packet{:>10} above off{:>10} shed".format(*row))


if __name__ == "__main__":
    _main()
