"""The workload of S1 and S2: 523,761 TCP SYNs in 24 hours, and sets of overlapping windows.

    python -m benchmarks.windows.syns

Krishnamurthy, Wu, Franklin: On-the-Fly Sharing for Streamed Aggregation (SIGMOD 2006), section 6,
used a trace of a firewall, which is not public. Its distinct sources by length of time follow from
the published counts, and this trace has about as many: packets arrive evenly at random, and the
k-th source sends a part proportional to (k + 1)^-1.42 of them. Without an argument, the command
prints both beside each other.
"""

from __future__ import annotations

from dataclasses import dataclass
from random import Random
from typing import TYPE_CHECKING

import numpy as np

from benchmarks.trace import OUT

if TYPE_CHECKING:
    from pathlib import Path

SYNS = 523_761
DAY_S = 86_400
PUBLISHED_SOURCES = {1: 5.3, 45: 96.0, 488: 488.0, 1500: 1085.0}
"""Mean distinct sources, by the seconds in which they send."""

SETS = 50
QUERIES = (2, 4, 8, 16, 32)
_SOURCES = 200_000
_SHIFT = 1
_EXPONENT = 1.42

_HEADERS = 54
_RECORD = np.dtype([("s", "<u4"), ("ns", "<u4"), ("cap", "<u4"), ("len", "<u4"), ("data", "V54")])


@dataclass(frozen=True, slots=True)
class Syns:
    """The trace: seconds since its beginning, which is time 0, and the number of each source."""

    times_s: np.ndarray
    sources: np.ndarray


def syns(seed: int = 1, count: int = SYNS) -> Syns:
    """Return ``count`` SYNs of a day."""
    random = np.random.default_rng(seed)
    times = np.sort(random.integers(0, DAY_S * 1000, count)) / 1000.0
    weights = (np.arange(1, _SOURCES + 1) + _SHIFT) ** -_EXPONENT
    cumulated = np.cumsum(weights / weights.sum())
    sources = np.searchsorted(cumulated, random.random(count)).clip(max=_SOURCES - 1)
    return Syns(times, sources)


def window_sets(queries: int, sets: int = SETS) -> list[list[tuple[int, int]]]:
    """Return sets of windows (range, slide): one slide in a set, whole seconds."""
    random = Random(queries)
    made = []
    for _ in range(sets):
        slide = random.randint(1000, 2000)
        made.append([(random.randint(1500, 2500), slide) for _ in range(queries)])
    return made


def mean_sources(trace: Syns, seconds: int) -> float:
    """Return the mean number of distinct sources in spans of ``seconds``."""
    spans = (trace.times_s // seconds).astype(np.int64)
    is_whole = spans < DAY_S // seconds
    pairs = spans[is_whole] * _SOURCES + trace.sources[is_whole]
    return len(np.unique(pairs)) / (DAY_S // seconds)


def capture(trace: Syns) -> Path:
    """Return the path of ``trace`` as a capture; make it if it does not exist."""
    path = OUT / f"syns-v1-{len(trace.times_s)}.pcap"
    if path.exists():
        return path
    OUT.mkdir(exist_ok=True)
    head = bytes.fromhex("020000000002020000000001" + "0800")
    ip = bytes.fromhex("4500002800000000400600000a0000000a800001")
    tcp = bytes.fromhex("c350005000000001000000005002ffff00000000")
    data = np.tile(np.frombuffer(head + ip + tcp, np.uint8), (len(trace.times_s), 1))
    sources = (0x0A000000 + trace.sources).astype(">u4").view(np.uint8).reshape(-1, 4)
    data[:, 26:30] = sources
    records = np.zeros(len(data), _RECORD)
    milliseconds = np.round(trace.times_s * 1000).astype(np.int64)
    records["s"] = milliseconds // 1000
    records["ns"] = milliseconds % 1000 * 1_000_000
    records["cap"] = records["len"] = _HEADERS
    records["data"] = data.view("V54").reshape(-1)
    partial = path.with_suffix(".partial")
    magic = np.array([0xA1B23C4D, 4 << 16 | 2, 0, 0, 65535, 1], "<u4")
    partial.write_bytes(magic.tobytes() + records.tobytes())
    partial.rename(path)
    return path


def _main() -> None:
    trace = syns()
    print("| seconds | published sources | sources |\n| ---: | ---: | ---: |")
    for seconds, published in PUBLISHED_SOURCES.items():
        print(f"| {seconds:,} | {published:,.1f} | {mean_sources(trace, seconds):,.1f} |")
    print(capture(trace))


if __name__ == "__main__":
    _main()
