"""A week of heartbeats on idle links, through the log at full speed: does anything grow?

    python -m benchmarks.idle_week [--heartbeats 604800] [--streams 20]

A consumer acknowledges every 30 heartbeats, as the HFTA job does on idle streams; with ``--dead``
there is no consumer. Prints the sizes of the index, the process and the messages held while it
runs.
"""

from __future__ import annotations

import argparse
import tempfile
import time
from pathlib import Path

from gscope.capture.log.batches import StreamSpec
from gscope.capture.log.budget import ShedOldest
from gscope.capture.log.consumers import Consumer
from gscope.capture.log.log import StreamLog
from gscope.capture.log.stream_heartbeat import StreamHeartbeat
from gscope.capture.process.statistics import memory_bytes
from gscope.queries.streams.messages import Hop, Punctuation

WEEK = 7 * 86_400
ACKNOWLEDGED_EVERY = 30
FIGURES = 20
"""Number of lines of figures to print."""


def beats(names: list[str], number: int) -> list[StreamHeartbeat]:
    """Return a heartbeat on each stream, with a trace like that of an LFTA."""
    counters = tuple((f"counter_{i}_total", number) for i in range(9))
    hop = Hop("lfta@eth0", number, 0, 20_000, counters)
    return [StreamHeartbeat(name, (Punctuation("tb", number),), (hop,)) for name in names]


def _main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--heartbeats", type=int, default=WEEK)
    parser.add_argument("--streams", type=int, default=20)
    parser.add_argument("--dead", action="store_true", help="without a consumer")
    options = parser.parse_args()
    names = [f"lfta{number}@eth0" for number in range(options.streams)]
    specs = [StreamSpec(name, ()) for name in names]
    began = time.perf_counter()
    with tempfile.TemporaryDirectory() as folder:
        log = StreamLog(
            Path(folder), specs, consumers=[Consumer("job")], budget=ShedOldest(8 << 30)
        )
        for number in range(options.heartbeats):
            log.write_heartbeat(number, number, beats(names, number))
            if not options.dead and number % ACKNOWLEDGED_EVERY == ACKNOWLEDGED_EVERY - 1:
                log.acknowledge("job", dict.fromkeys(names, number + 1))
            if (number + 1) % (options.heartbeats // FIGURES) == 0:
                print(
                    f"{number + 1:,} heartbeats: index {log.stats.index_bytes:,} bytes, process"
                    f" {memory_bytes() / 1e6:.1f} MB, {log.waiting_messages:,} messages held,"
                    f" {time.perf_counter() - began:.0f} s",
                    flush=True,
                )
        log.close()


if __name__ == "__main__":
    _main()
