"""The long run.

``python -m tests.fuzz packets --count 1000000 --seed 1``, and the same with ``files`` or
``queries``.
"""

from __future__ import annotations

import argparse
import resource
import time

from tests.fuzz import packets, queries

GROWTH_MB = 200
"""Memory that may come to what the first hundredth of a run took."""


def main() -> int:
    """Try mutants until there were enough; the exit code says whether something was found."""
    parser = argparse.ArgumentParser(prog="python -m tests.fuzz", description=__doc__)
    parser.add_argument("what", choices=("packets", "files", "queries"))
    parser.add_argument("--count", type=int, default=10_000, help="how many mutants at least")
    parser.add_argument("--seed", type=int, default=1, help="of the first mutant")
    parser.add_argument("--most", type=int, default=20, help="findings after which to stop")
    options = parser.parse_args()
    step = packets.BATCH if options.what == "packets" else 1
    check = {
        "packets": packets.check_packets,
        "files": packets.check_file,
        "queries": queries.check_query,
    }[options.what]
    tried = findings = 0
    seed, began, base_mb = options.seed, time.monotonic(), 0
    last_s = began
    while tried < options.count and findings < options.most:
        found = check(seed)
        if found:
            findings += 1
            _say(f"FOUND, seed {seed}: {found}")
        tried += step
        seed += 1
        if not base_mb and tried >= options.count // 100:
            base_mb = _memory_mb()
        if time.monotonic() - last_s > 30:
            last_s = time.monotonic()
            _say(f"{tried} {options.what}, {findings} findings, {last_s - began:.0f} s")
    grown_mb = _memory_mb() - base_mb
    _say(
        f"{tried} {options.what}, seeds {options.seed} to {seed - 1}: {findings} findings,"
        f" {time.monotonic() - began:.0f} s, memory grew by {grown_mb} MB"
    )
    return 1 if findings or grown_mb > GROWTH_MB else 0


def _memory_mb() -> int:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss >> 10


def _say(text: str) -> None:
    print(text, flush=True)  # noqa: T201 a tool for people


if __name__ == "__main__":
    raise SystemExit(main())
