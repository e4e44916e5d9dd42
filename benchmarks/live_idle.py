"""The cost of an idle live run: CPU of all its processes, ten queries, heartbeats each second.

    python -m benchmarks.live_idle [--seconds 60] [--settle 20] [--runs 1]

Needs root: it creates a network of its own. CPU time is the kernel's accounting of each process
(/proc/PID/stat), from some time after the start, when everything is loaded, compiled and connected.
"""

from __future__ import annotations

import argparse
import csv
import os
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from benchmarks.installed import compile_modules
from benchmarks.live_network import DEVICE, enter_own_network
from benchmarks.trace import OUT
from gscope.queries.run_folder.layout import CAPTURE_STATISTICS_FILE

QUERIES = (
    "flow",
    "top_talkers",
    "top_ports",
    "protocol_mix",
    "port_scan",
    "syn_flood",
    "dns_failures",
    "retransmissions",
    "handshake_delay",
    "link_load",
)

PATIENCE_S = 180.0
TICKS_PER_SECOND = os.sysconf("SC_CLK_TCK")


def cpu_seconds(root: int) -> dict[int, tuple[str, float]]:
    """Return, for ``root`` and each process below it, its kind and the CPU time of its threads."""
    parents: dict[int, int] = {}
    found: dict[int, tuple[str, float]] = {}
    for folder in Path("/proc").iterdir():
        if not folder.name.isdigit():
            continue
        try:
            fields = (folder / "stat").read_text().rsplit(")", 1)[1].split()
            line = (folder / "cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace")
        except OSError:
            continue
        number = int(folder.name)
        parents[number] = int(fields[1])
        found[number] = _name(line), (int(fields[11]) + int(fields[12])) / TICKS_PER_SECOND
    kept = {root}
    while more := {number for number, parent in parents.items() if parent in kept} - kept:
        kept |= more
    return {number: found[number] for number in kept if number in found}


def measure(seconds: float, settle: float, work: Path) -> dict[str, float]:
    """Return the share of a core that each process took, by kind."""
    command = (sys.executable, "-m", "gscope", "run", *QUERIES, "-i", DEVICE)
    process = subprocess.Popen(
        (
            *command,
            "--work-dir",
            str(work),
            "-o",
            "ndjson",
            "--heartbeat-interval",
            "1s",
            "--quiet",
        ),
        stdout=subprocess.DEVNULL,
        stdin=subprocess.DEVNULL,
    )
    try:
        _wait_until_capturing(process, work)
        time.sleep(settle)
        began, before = time.monotonic(), cpu_seconds(process.pid)
        time.sleep(seconds)
        took, after = time.monotonic() - began, cpu_seconds(process.pid)
    finally:
        process.send_signal(signal.SIGTERM)
        process.wait()
    shares: dict[str, float] = {}
    for number, (name, spent) in after.items():
        share = (spent - before.get(number, (name, 0.0))[1]) / took
        shares[name] = shares.get(name, 0.0) + share
    return shares


def _wait_until_capturing(process: subprocess.Popen[bytes], work: Path) -> None:
    """Wait until the daemon reports counters: on a first run, it compiles its kernel before."""
    until = time.monotonic() + PATIENCE_S
    while not list(work.glob(f"*/{CAPTURE_STATISTICS_FILE}")):
        if process.poll() is not None or time.monotonic() > until:
            message = f"the run does not capture (exit code {process.poll()})"
            raise RuntimeError(message)
        time.sleep(0.2)


def _name(line: str) -> str:
    for mark in ("capture.daemon", "engine.job", "java"):
        if mark in line:
            return mark
    return "gscope run" if "gscope run" in line else (line.split() or ["?"])[-1][:40]


def _main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, allow_abbrev=False)
    parser.add_argument("--seconds", type=float, default=60.0)
    parser.add_argument("--settle", type=float, default=20.0, help="seconds after the start")
    parser.add_argument("--runs", type=int, default=1)
    given = parser.parse_args()
    enter_own_network()
    compile_modules()
    OUT.mkdir(parents=True, exist_ok=True)
    with (OUT / "live_idle.csv").open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(["run", "process", "share_of_a_core"])
        for run in range(given.runs):
            with tempfile.TemporaryDirectory() as work:
                shares = measure(given.seconds, given.settle, Path(work))
            for name, share in sorted(shares.items(), key=lambda each: -each[1]):
                writer.writerow([run + 1, name, f"{share:.5f}"])
                print(f"{name:<16} {100 * share:6.2f} % of a core")
            total = f"{100 * sum(shares.values()):6.2f} % of a core"
            print(f"{'together':<16} {total} (load {os.getloadavg()[0]:.1f})")


if __name__ == "__main__":
    _main()
