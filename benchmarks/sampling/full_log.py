"""What a log that fills up loses while the job stands still.

It is shown with the controller alone, and thinned.

    python -m benchmarks.sampling.full_log [--groups 2000] [--min-rate 0.01]

Writes epochs of groups to a stream log, at the rates that the controller chooses by the log's fill,
while no reader acknowledges anything. A budget of n epochs holds n epochs at the rate 1. Prints,
for each budget and absence, how many epochs are left as a gap, and the mean rate of the others. An
epoch that is whole in the log has all its groups up to one threshold.
"""

from __future__ import annotations

import argparse
import tempfile
from pathlib import Path

import numpy as np
import pyarrow as pa

from gscope.capture.log.batches import StreamSpec
from gscope.capture.log.budget import ShedOldest
from gscope.capture.log.consumers import Consumer
from gscope.capture.log.log import StreamLog
from gscope.capture.log.stream_heartbeat import StreamHeartbeat
from gscope.capture.log.thinning.limits import StreamLimits
from gscope.capture.log.thinning.thinner import Thinner, ThinningRules
from gscope.capture.shedding.controller import LoadSignals, RateState, next_rate
from gscope.queries.compile import CompileContext, QueryText, compile_queries
from gscope.queries.expressions.types import Direction
from gscope.queries.plan.partitioning.row_hashes import row_hashes
from gscope.queries.plan.sampling.keyed_hash import FULL_THRESHOLD, HashKey, rate_of, threshold_of
from gscope.queries.plan.sampling.moving_samples import moving_samples
from gscope.queries.plan.sampling.thinnable import ThinnableSample, thinnable_samples
from gscope.queries.streams.messages import Extent, Punctuation

KEY = HashKey.of_seed(1)
SECOND_NS = 1_000_000_000
QUERY = "SELECT tb, srcPort, count(*) AS packets, max(len) FROM TCP GROUP BY time AS tb, srcPort"
BUDGETS, ABSENCES = (2, 4, 8, 16), (10, 60, 300)


def compiled() -> ThinnableSample:
    """Return the sample of the query."""
    context = CompileContext(("main",), {}, samples=True)
    program = compile_queries([QueryText(QUERY, "q")], context).program
    streams = [stream for lfta in program.lftas for stream in lfta.streams]
    (sample,) = thinnable_samples(program, moving_samples(program)[0], streams)
    return sample


def absence(
    sample: ThinnableSample,
    budget_bytes: int,
    epochs: int,
    given: argparse.Namespace,
    *,
    thins: bool,
) -> tuple[int, float, int]:
    """Write epochs while no job reads.

    Return the gaps, the mean rate of the rest, and the bytes.
    """
    ((stream, rows),) = sample.rows.items()
    spec = StreamSpec(stream, (("tb", Direction.INCREASING),), epoch="tb", packets="packets")
    numbers = np.arange(given.groups)
    full = pa.table({"tb": numbers * 0, "srcPort": numbers, "packets": numbers + 1, "m": numbers})
    hashed = row_hashes(full, rows.terms, KEY)
    state = RateState()
    with tempfile.TemporaryDirectory(prefix="gscope-bench-") as made:
        folder = Path(made)
        budget = ShedOldest(budget_bytes, reserve_bytes=0)
        log = StreamLog(folder, [spec], consumers=[Consumer("job")], budget=budget)
        rules = ThinningRules(
            (sample,), {stream: spec}, KEY, given.min_rate, budget_bytes, 0, "job"
        )
        thinner = Thinner(log, rules, StreamLimits(folder), is_new=True)
        if thins:
            log.use_thinning(thinner)
        rates = []
        for epoch in range(epochs):
            signals = LoadSignals(log_fill=log.used_bytes / budget_bytes)
            state = next_rate(state, signals, epoch * SECOND_NS, epoch, given.min_rate)
            rates.append(state.rate)
            kept = full.filter(pa.array(hashed <= np.uint64(threshold_of(state.rate))))
            kept = kept.set_column(0, "tb", pa.array([epoch] * kept.num_rows, pa.int64()))
            (batch,) = kept.combine_chunks().to_batches()
            log.append(stream, batch, (Extent("tb", epoch, epoch),))
            beat = StreamHeartbeat(stream, (Punctuation("tb", epoch + 1),))
            log.write_heartbeat(epoch, epoch, [beat])
            thinner.wait()
        there = {batch.extents[0].least for batch in log.unleased([stream])}
        limits = thinner.limits().get(stream)
        used = log.used_bytes
        log.close()
    found = [
        min(rate, 1.0 if limits is None else rate_of(limits.at(epoch * SECOND_NS).threshold))
        for epoch, rate in enumerate(rates)
        if epoch in there
    ]
    return epochs - len(there), sum(found) / max(1, len(found)), used


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--groups", type=int, default=2000, metavar="N")
    parser.add_argument("--min-rate", type=float, default=0.01, metavar="RATE")
    given = parser.parse_args()
    assert threshold_of(1.0) == FULL_THRESHOLD
    sample = compiled()
    _, _, epoch_bytes = absence(sample, 1 << 30, 1, given, thins=False)
    print("budget  absence | controller alone: gaps, mean rate | thinned: gaps, mean rate")
    for budget in BUDGETS:
        for epochs in ABSENCES:
            results = [
                absence(sample, budget * epoch_bytes, epochs, given, thins=thins)
                for thins in (False, True)
            ]
            (gaps, rate, _), (thinned_gaps, thinned_rate, _) = results
            print(
                f"{budget:6} {epochs:8} | {gaps:22} {rate:10.3f} | {thinned_gaps:13}"
                f" {thinned_rate:10.3f}"
            )


if __name__ == "__main__":
    main()
