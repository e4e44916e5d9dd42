"""H3, the cost of heartbeats: CPU of daemon and job with and without them, on two busy links.

    python -m benchmarks.heartbeat_cost [--runs 5] [--seconds 60] [--rate 20000]

Whole runs of ``gscope run`` in turn, with a heartbeat on every stream each second and with
heartbeats off: then streams promise only what their own packets show, at most once in an epoch of
ten seconds. The query counts the packets of flows on each link in buckets of ten seconds and merges
both. A run is measured from ``WARM_S`` after its first packets on, when Java is warm, by the
kernel's accounting of its processes. Needs root: it creates a network of its own. Writes
``benchmarks/out/heartbeat_cost.csv``.
"""

from __future__ import annotations

import argparse
import os
import signal
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from benchmarks.live_network import enter_own_network
from benchmarks.records import write_records

if TYPE_CHECKING:
    from collections.abc import Sequence

OUT = Path(__file__).parent / "out"
WARM_S = 25.0
EPOCH_S = 10.0
END_S = 60.0
KEYS = "protocol, srcIP, destIP, srcPort, destPort"
FLOWS = f"count(*) as cnt FROM {{link}}.DataProtocol GROUP BY time/10 as tb, {KEYS}"
QUERY = (
    "DEFINE { query_name 'flow1'; } SELECT tb, " + KEYS + ", " + FLOWS.format(link="main1") + ";"
    "DEFINE { query_name 'flow2'; } SELECT tb, " + KEYS + ", " + FLOWS.format(link="main2") + ";"
    "DEFINE { query_name 'flows'; } MERGE flow1.tb : flow2.tb FROM flow1, flow2"
)
CONTESTANTS = {
    "every second": ("--heartbeat-mode", "periodic", "--heartbeat-interval", "1s"),
    "off": ("--heartbeat-mode", "off", "--heartbeat-interval", "10s"),
}


@dataclass(frozen=True, slots=True)
class Row:
    """One run: CPU in per cent of one core."""

    contestant: str
    run: int
    daemon: float
    job: float
    load: float

    @property
    def both(self) -> float:
        """Daemon and job together."""
        return self.daemon + self.job


def run(contestant: str, number: int, links: Sequence[tuple[str, str]], options: Options) -> Row:
    """Measure one run."""
    with tempfile.TemporaryDirectory() as folder:
        command = [sys.executable, "-m", "gscope", "run", "-e", QUERY, "-w", f"{folder}/rows"]
        command += ["--work-dir", f"{folder}/work", "--quiet", *CONTESTANTS[contestant]]
        for place, (_, device) in enumerate(links, 1):
            command += ["-i", f"main{place}={device}"]
        lasts = str(options.seconds + WARM_S + EPOCH_S + 5)
        with subprocess.Popen(command, stdout=subprocess.DEVNULL) as process:
            _wait_for_job(process)
            senders = [
                subprocess.Popen(
                    (
                        sys.executable,
                        "-m",
                        "benchmarks.live_sender",
                        link,
                        str(options.rate),
                        lasts,
                    ),
                    stdout=subprocess.DEVNULL,
                )
                for link, _ in links
            ]
            pause = threading.Event()
            pause.wait(WARM_S)
            # In the middle of an epoch, so that every run has the same number of ends of epochs.
            pause.wait(EPOCH_S - (time.time() + EPOCH_S / 2) % EPOCH_S)
            before = _cpu_s(process.pid)
            pause.wait(options.seconds)
            after = _cpu_s(process.pid)
            process.send_signal(signal.SIGTERM)
            process.wait(END_S)
            for sender in senders:
                sender.terminate()
                sender.wait()
    shares = {
        name: 100 * (after[name] - before[name]) / options.seconds for name in ("daemon", "job")
    }
    return Row(contestant, number, shares["daemon"], shares["job"], os.getloadavg()[0])


@dataclass(frozen=True, slots=True)
class Options:
    """The seconds to measure, and the packets/s on each link."""

    seconds: float
    rate: int


def _wait_for_job(process: subprocess.Popen[bytes]) -> None:
    """Wait until the daemon and Java run."""
    pause = threading.Event()
    for _ in range(600):
        found = _descendants(process.pid)
        if any("java" in line for line in found.values()) and any(
            "gscope.capture.daemon" in line for line in found.values()
        ):
            pause.wait(5)
            return
        pause.wait(0.1)
    message = "gscope run does not start"
    raise RuntimeError(message)


def _cpu_s(pid: int) -> dict[str, float]:
    """Return the CPU time of the daemon, and of the job with its Java, so far."""
    used = {"daemon": 0.0, "job": 0.0}
    tick = os.sysconf("SC_CLK_TCK")
    for each, line in _descendants(pid).items():
        kind = "daemon" if "gscope.capture.daemon" in line else "job"
        numbers = Path(f"/proc/{each}/stat").read_text().rsplit(")", 1)[1].split()
        used[kind] += (int(numbers[11]) + int(numbers[12])) / tick
    return used


def _descendants(pid: int) -> dict[int, str]:
    """Return the command lines of all descendants of a process."""
    found: dict[int, str] = {}
    for task in Path(f"/proc/{pid}/task").iterdir():
        for text in (task / "children").read_text().split():
            child = int(text)
            line = Path(f"/proc/{child}/cmdline").read_bytes().replace(b"\0", b" ").decode()
            found[child] = line
            found |= _descendants(child)
    return found


def table(rows: Sequence[Row]) -> str:
    """Return medians and spread as a Markdown table."""
    lines = [
        "| heartbeats | runs | daemon % | job % | both % | min-max |",
        "| --- | ---: | ---: | ---: | ---: | ---: |",
    ]
    for name in CONTESTANTS:
        own = [row for row in rows if row.contestant == name]
        if own:
            daemon, job, both = (
                statistics.median(getattr(row, part) for row in own)
                for part in ("daemon", "job", "both")
            )
            least, most = min(row.both for row in own), max(row.both for row in own)
            figures = f"{daemon:.2f} | {job:.2f} | {both:.2f} | {least:.2f}-{most:.2f}"
            lines.append(f"| {name} | {len(own)} | {figures} |")
    return "\n".join(lines)


def _main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, allow_abbrev=False)
    parser.add_argument("--runs", type=int, default=5)
    parser.add_argument("--seconds", type=float, default=60)
    parser.add_argument("--rate", type=int, default=20_000)
    arguments = parser.parse_args()
    links = enter_own_network(2)
    options = Options(arguments.seconds, arguments.rate)
    rows = []
    for number in range(1, arguments.runs + 1):
        for contestant in CONTESTANTS:
            row = run(contestant, number, links, options)
            rows.append(row)
            print(
                f"run {number} {contestant}: daemon {row.daemon:.2f} %, job {row.job:.2f} %"
                f" (load {row.load:.1f})",
                file=sys.stderr,
                flush=True,
            )
    write_records(rows, OUT / "heartbeat_cost.csv")
    print(table(rows))


if __name__ == "__main__":
    _main()
