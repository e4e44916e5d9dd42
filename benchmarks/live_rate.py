"""The highest rate at which live capture loses nothing: the flow query, tcpdump and dumpcap.

    python -m benchmarks.live_rate [--repeats 3] [--seconds 10] [--warm-up 15] [--steps 4]
        [--only gscope tcpdump]

Needs root: it creates a network of its own. The sender (``benchmarks.live_sender``) and the
contestant share the machine. Each contestant first faces a sender that sends as fast as it can
beside it. If it loses packets, a binary search below that rate follows. A trial passes when the
kernel dropped nothing and every packet sent was received. Contestants take turns, one trial each.
All have a capture buffer of 64 MiB, much more than the default of the other contestants.
"""

from __future__ import annotations

import argparse
import csv
import json
import os
import re
import shutil
import signal
import statistics
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from benchmarks.live_network import DEVICE, SENDER, enter_own_network
from benchmarks.trace import OUT

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

BUFFER_MIB = 64
START_S = 60.0
SETTLE_S = 0.5
WARM_UP_RATE = 1000
"""Packets a second before each trial, until Spark has answered an epoch: runs last for days."""

_GSCOPE = re.compile(r"([\d,]+) packets received = ")
_GSCOPE_DROPPED = re.compile(r"([\d,]+) dropped")
_TCPDUMP = re.compile(r"(\d+) packets received by filter\s+(\d+) packets dropped by kernel")
_DUMPCAP = re.compile(r"received/dropped on interface '[^']*': (\d+)/(\d+)")


@dataclass(frozen=True, slots=True)
class Trial:
    """One trial: packets sent in some seconds, packets received, and packets the kernel dropped."""

    sent: int
    seconds: float
    received: int
    dropped: int

    @property
    def rate(self) -> int:
        """Packets sent a second."""
        return int(self.sent / self.seconds)

    @property
    def is_whole(self) -> bool:
        """Whether no packet was lost."""
        return self.dropped == 0 and self.received == self.sent


@dataclass(slots=True)
class Search:
    """A binary search for the highest rate without loss; ``best`` has passed, 0 if none has yet."""

    best: int = 0
    failed: int | None = None
    trials: list[Trial] = field(default_factory=list)

    @property
    def next_rate(self) -> int:
        """The rate to try next; 0 for as fast as the sender can."""
        return 0 if self.failed is None else (self.best + self.failed) // 2

    @property
    def is_over(self) -> bool:
        """Whether the contestant lost nothing even with the fastest sender."""
        return self.failed is None and self.best > 0

    def note(self, trial: Trial) -> None:
        """Continue with the result of a trial."""
        self.trials.append(trial)
        if trial.is_whole:
            self.best = max(self.best, trial.rate)
        else:
            self.failed = min(trial.rate, self.failed or trial.rate)


def commands(work: Path) -> Mapping[str, Sequence[str]]:
    """Return the contestants that are installed."""
    gscope = (sys.executable, "-m", "gscope", "run", "flow", "-i", DEVICE, "-o", "csv")
    found: dict[str, Sequence[str]] = {
        "gscope": (*gscope, "--work-dir", str(work), "--ring", f"{BUFFER_MIB}M")
    }
    if shutil.which("tcpdump"):
        kib = str(BUFFER_MIB << 10)
        found["tcpdump"] = ("tcpdump", "-n", "-i", DEVICE, "-B", kib, "-w", os.devnull)
    if shutil.which("dumpcap"):
        found["dumpcap"] = ("dumpcap", "-i", DEVICE, "-B", str(BUFFER_MIB), "-w", os.devnull)
    return found


def attempt(
    command: Sequence[str], rate: int, seconds: float, folder: Path, warm_up_s: float = 0.0
) -> Trial:
    """Let a contestant capture while the sender sends.

    Raises:
        RuntimeError: the contestant did not start, or did not report its counters.
    """
    rows, words = folder / "rows", folder / "words"
    with rows.open("wb") as output, words.open("wb") as errors:
        process = subprocess.Popen(command, stdout=output, stderr=errors, stdin=subprocess.DEVNULL)
    try:
        _wait_until_ready(process, rows, words)
        early = _send(WARM_UP_RATE, warm_up_s) if warm_up_s else {"sent": 0}
        report = _send(rate, seconds)
        time.sleep(SETTLE_S)
        process.send_signal(signal.SIGTERM)
        process.wait(START_S)
    finally:
        if process.poll() is None:
            process.kill()
            process.wait()
    received, dropped = _counted(words.read_text(errors="replace"))
    return Trial(report["sent"], report["seconds"], received - early["sent"], dropped)


def _send(rate: int, seconds: float) -> dict[str, Any]:
    command = (sys.executable, "-m", "benchmarks.live_sender", SENDER, str(rate), str(seconds))
    report: dict[str, Any] = json.loads(
        subprocess.run(command, check=True, capture_output=True).stdout
    )
    return report


def _wait_until_ready(process: subprocess.Popen[bytes], rows: Path, words: Path) -> None:
    """Wait until the contestant captures: gscope prints a heading, the others write to stderr."""
    until = time.monotonic() + START_S
    while not (
        rows.stat().st_size or b"istening" in words.read_bytes() or b"File:" in words.read_bytes()
    ):
        if process.poll() is not None or time.monotonic() > until:
            message = f"{process.args!r} does not capture: {words.read_text(errors='replace')}"
            raise RuntimeError(message)
        time.sleep(0.05)
    time.sleep(SETTLE_S)


def _counted(text: str) -> tuple[int, int]:
    """Return packets received without those dropped, and packets dropped."""
    if match := _TCPDUMP.search(text) or _DUMPCAP.search(text):
        received, dropped = (int(number) for number in match.groups())
        return received - (dropped if "dumpcap:" not in text else 0), dropped
    if match := _GSCOPE.search(text):
        lost = _GSCOPE_DROPPED.search(text)
        received, dropped = (int(m[1].replace(",", "")) if m else 0 for m in (match, lost))
        return received - dropped, dropped
    message = f"no counters in {text!r}"
    raise RuntimeError(message)


def race(
    contestants: Mapping[str, Sequence[str]],
    repeats: int,
    steps: int,
    seconds: float,
    warm_up_s: float,
) -> dict[str, list[Search]]:
    """Run all searches of all contestants in turn; report progress on standard error."""
    searches: dict[str, list[Search]] = {name: [] for name in contestants}
    with tempfile.TemporaryDirectory() as folder:
        for repeat in range(repeats):
            now = {name: Search() for name in contestants}
            for _ in range(1 + steps):
                for name, search in now.items():
                    if search.is_over:
                        continue
                    trial = attempt(
                        contestants[name], search.next_rate, seconds, Path(folder), warm_up_s
                    )
                    search.note(trial)
                    line = (
                        f"{repeat + 1}/{repeats} {name}: {trial.rate:,}/s,"
                        f" {trial.dropped:,} dropped"
                    )
                    print(line, f"(load {os.getloadavg()[0]:.1f})", file=sys.stderr)
            for name, search in now.items():
                searches[name].append(search)
    return searches


def table(searches: dict[str, list[Search]]) -> str:
    """Return medians as a Markdown table."""
    lines = [
        "| contestant | packets/s without loss | min-max | of the best peer |",
        "| --- | ---: | ---: | ---: |",
    ]
    best = {name: [search.best for search in each] for name, each in searches.items()}
    middle = {name: statistics.median(rates) for name, rates in best.items()}
    peer = max((rate for name, rate in middle.items() if name != "gscope"), default=0) or 1
    for name, rates in best.items():
        share = f"{100 * middle[name] / peer:.0f} %"
        lines.append(f"| {name} | {middle[name]:,.0f} | {min(rates):,}-{max(rates):,} | {share} |")
    return "\n".join(lines)


def write_csv(searches: dict[str, list[Search]], path: Path) -> None:
    """Write each trial as one row."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(["contestant", "repeat", "sent", "seconds", "received", "dropped"])
        for name, repeats in searches.items():
            for number, search in enumerate(repeats, 1):
                for t in search.trials:
                    writer.writerow(
                        [name, number, t.sent, f"{t.seconds:.3f}", t.received, t.dropped]
                    )


def _main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, allow_abbrev=False)
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument(
        "--seconds", type=float, default=10.0, help="seconds of sending in each trial"
    )
    parser.add_argument(
        "--warm-up", type=float, default=15.0, help="seconds at a low rate before each trial"
    )
    parser.add_argument("--steps", type=int, default=4, help="steps of the binary search")
    parser.add_argument("--only", nargs="+", metavar="NAME", help="run only these contestants")
    given = parser.parse_args()
    enter_own_network()
    with tempfile.TemporaryDirectory() as work:
        contestants = commands(Path(work))
        if given.only:
            contestants = {name: contestants[name] for name in given.only}
        searches = race(contestants, given.repeats, given.steps, given.seconds, given.warm_up)
    print(table(searches))
    write_csv(searches, OUT / "live_rate.csv")


if __name__ == "__main__":
    _main()
