"""Latency of sliding windows from their end to their rows on standard output, live.

    python -m benchmarks.windows.live [--rate 100000] [--seconds 60] [--range 60] [--slide 1]
        [--flows 1000] [--skip 10]

Needs root: it creates a network of its own. The query counts packets and bytes of each source. Each
row is read as it comes from the pipe; a window's latency is the time of its last row minus its end
by the same clock. Windows at the start, while Spark warms up, are reported separately. The CPU
seconds are those of the processes of the run while packets were sent, and of the sender.
"""

from __future__ import annotations

import argparse
import csv
import json
import os
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from dataclasses import dataclass, field
from pathlib import Path

from benchmarks.live_network import DEVICE, SENDER, enter_own_network
from benchmarks.trace import OUT

_TICK = os.sysconf("SC_CLK_TCK")


@dataclass
class Run:
    """What one run showed.

    Attributes:
        latency: seconds from the end of each window to its last row.
        rows: the rows of each window.
        cpu: CPU seconds of each process while packets were sent, by a word of its command line.
        sent: what the sender reports.
        summary: what gscope reports at the end.
    """

    latency: dict[int, float] = field(default_factory=dict)
    rows: dict[int, int] = field(default_factory=dict)
    cpu: dict[str, float] = field(default_factory=dict)
    sent: dict[str, float] = field(default_factory=dict)
    summary: str = ""


def query(range_: int, slide: int) -> str:
    """Return the query of windows of ``range_`` seconds."""
    return (
        "SELECT window_end / INTERVAL '1 sec' AS e, srcIP, count(*) AS packets, sum(len) AS bytes "
        f"FROM IP [RANGE {range_} SLIDE {slide}] GROUP BY srcIP"
    )


def measure(given: argparse.Namespace, work: str) -> Run:
    """Run the query while packets are sent."""
    text = query(given.range, given.slide)
    command = (sys.executable, "-m", "gscope", "run", "-e", text, "-i", DEVICE)
    process = subprocess.Popen(
        (*command, "-o", "csv", "--work-dir", work),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        stdin=subprocess.DEVNULL,
    )
    assert process.stdout is not None
    assert process.stderr is not None
    run = Run()
    try:
        # The heading is printed when packets are let in.
        process.stdout.readline()
        before = _cpu_of(process.pid)
        module = (sys.executable, "-m", "benchmarks.live_sender", SENDER)
        sizes = (str(given.rate), str(given.seconds), "--flows", str(given.flows))
        sender = subprocess.Popen((*module, *sizes), stdout=subprocess.PIPE)

        def stop() -> None:
            run.sent.update(json.loads(sender.communicate()[0]))
            after = _cpu_of(process.pid)
            run.cpu.update({name: cpu - before.get(name, 0.0) for name, cpu in after.items()})
            time.sleep(given.slide + 1)
            # SIGINT would be ignored if this runs in the background of a shell.
            process.terminate()

        stopper = threading.Thread(target=stop)
        stopper.start()
        for line in process.stdout:
            end = int(line.split(b",", 1)[0])
            run.latency[end] = time.time() - end
            run.rows[end] = run.rows.get(end, 0) + 1
        stopper.join()
        run.summary = process.stderr.read().decode(errors="replace").strip()
    finally:
        if process.poll() is None:
            process.kill()
        process.wait()
    # Windows that were open when the run ended were closed by its end.
    run.latency = {end: each for end, each in run.latency.items() if each > 0}
    return run


def _cpu_of(root: int) -> dict[str, float]:
    """Return the CPU seconds so far of a process and its descendants, by what they run."""
    parents: dict[int, int] = {}
    used: dict[int, float] = {}
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            fields = (folder / "stat").read_text().rpartition(")")[2].split()
        except OSError:
            continue
        parents[int(folder.name)] = int(fields[1])
        used[int(folder.name)] = (int(fields[11]) + int(fields[12])) / _TICK
    cpu: dict[str, float] = {}
    for process, seconds in used.items():
        at = process
        while at not in (root, 0):
            at = parents.get(at, 0)
        if at == root:
            name = "front end" if process == root else _name(process)
            cpu[name] = cpu.get(name, 0.0) + seconds
    return cpu


def _name(process: int) -> str:
    """Return which part of a run a process is."""
    try:
        words = Path(f"/proc/{process}/cmdline").read_bytes().decode(errors="replace")
    except OSError:
        return "ended"
    if "java" in words.split("\0")[0]:
        return "java"
    return next((part for part in ("capture", "engine", "pyspark") if part in words), "other")


def _main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, allow_abbrev=False)
    parser.add_argument("--rate", type=int, default=100_000, help="packets a second")
    parser.add_argument("--seconds", type=float, default=60.0)
    parser.add_argument("--range", type=int, default=60, help="seconds of a window")
    parser.add_argument("--slide", type=int, default=1, help="seconds between ends of windows")
    parser.add_argument("--flows", type=int, default=1000)
    parser.add_argument(
        "--skip", type=int, default=10, help="windows at the start to report separately"
    )
    given = parser.parse_args()
    enter_own_network()
    loads = [os.getloadavg()[0]]
    with tempfile.TemporaryDirectory() as work:
        run = measure(given, work)
    loads.append(os.getloadavg()[0])
    OUT.mkdir(parents=True, exist_ok=True)
    with (OUT / "windows-live.csv").open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(["window_end", "latency_s", "rows"])
        writer.writerows([e, f"{s:.3f}", run.rows[e]] for e, s in run.latency.items())
    print(run.summary)
    took = run.sent["seconds"]
    print(
        f"sent {run.sent['sent']:,} packets in {took:.1f} s; load {loads[0]:.1f} to {loads[1]:.1f}"
    )
    used = sorted(run.cpu.items(), key=lambda each: -each[1])
    print("CPU seconds a second: " + ", ".join(f"{name} {cpu / took:.2f}" for name, cpu in used))
    early = list(run.latency.values())[: given.skip]
    settled = sorted(list(run.latency.values())[given.skip :])
    print("first windows: " + ", ".join(f"{each:.2f} s" for each in early))
    if settled:
        tenths = [settled[int(len(settled) * each)] for each in (0.1, 0.9)]
        print(
            f"later windows: median {statistics.median(settled):.2f} s, 10% {tenths[0]:.2f} s, "
            f"90% {tenths[1]:.2f} s, worst {settled[-1]:.2f} s of {len(settled)}"
        )


if __name__ == "__main__":
    _main()
