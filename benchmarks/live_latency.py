"""Latency from the end of an epoch to its rows on standard output, flow query, live.

    python -m benchmarks.live_latency [--rate 100000] [--seconds 60] [--epoch 5] [--flows 1000]
        [--skip 3]

Needs root: it creates a network of its own. Each row is read as it comes from the pipe. An epoch's
latency is the time of its last row minus the end of the epoch by the same clock. Epochs at the
start, while Spark warms up, are reported separately. The latency includes the skew (0.2 s) and the
sender's share of the machine.
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
import time

from benchmarks.live_network import DEVICE, SENDER, enter_own_network
from benchmarks.trace import OUT


def query(epoch: int) -> str:
    """Return the flow query with epochs of ``seconds`` seconds."""
    keys = "protocol, srcIP, srcPort, destIP, destPort"
    return (
        f"SELECT tb, {keys}, count(*) AS packets, sum(len) AS bytes "
        f"FROM IP GROUP BY time/{epoch} AS tb, {keys}"
    )


def measure(
    rate: int, seconds: float, epoch: int, flows: int, work: str
) -> tuple[dict[int, float], dict[str, float], str]:
    """Return seconds from each epoch's end to its last row, what was sent, and the summary."""
    command = (sys.executable, "-m", "gscope", "run", "-e", query(epoch), "-i", DEVICE)
    process = subprocess.Popen(
        (*command, "-o", "csv", "--work-dir", work),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        stdin=subprocess.DEVNULL,
    )
    assert process.stdout is not None
    assert process.stderr is not None
    last: dict[int, float] = {}
    try:
        # The heading is printed when packets are let in.
        process.stdout.readline()
        module = (sys.executable, "-m", "benchmarks.live_sender", SENDER, str(rate), str(seconds))
        sender = subprocess.Popen((*module, "--flows", str(flows)), stdout=subprocess.PIPE)
        stopper = _StopAfter(process, seconds + 1.0)
        for line in process.stdout:
            last[int(line.split(b",", 1)[0])] = time.time()
        stopper.wait()
        sent = json.loads(sender.communicate()[0])
        words = process.stderr.read().decode(errors="replace").strip()
    finally:
        if process.poll() is None:
            process.kill()
        process.wait()
    # The last epoch ends with the run.
    ended = sorted(last)[:-1]
    return {tb: last[tb] - (tb + 1) * epoch for tb in ended}, sent, words


class _StopAfter:
    """A process that asks another to end after some seconds, while this one reads."""

    def __init__(self, process: subprocess.Popen[bytes], seconds: float) -> None:
        script = f"sleep {seconds}; kill -INT {process.pid}"
        self._process = subprocess.Popen(["sh", "-c", script])

    def wait(self) -> None:
        """Wait until it has asked."""
        self._process.wait()


def _main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, allow_abbrev=False)
    parser.add_argument("--rate", type=int, default=100_000, help="packets a second")
    parser.add_argument("--seconds", type=float, default=60.0)
    parser.add_argument("--epoch", type=int, default=5, help="seconds of an epoch")
    parser.add_argument("--flows", type=int, default=1000)
    parser.add_argument(
        "--skip", type=int, default=3, help="epochs at the start to report separately"
    )
    given = parser.parse_args()
    enter_own_network()
    with tempfile.TemporaryDirectory() as work:
        latency, sent, words = measure(given.rate, given.seconds, given.epoch, given.flows, work)
    OUT.mkdir(parents=True, exist_ok=True)
    with (OUT / "live_latency.csv").open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(["epoch", "latency_s"])
        writer.writerows([tb, f"{each:.3f}"] for tb, each in latency.items())
    print(words)
    early, settled = list(latency.values())[: given.skip], list(latency.values())[given.skip :]
    print(
        f"sent {sent['sent']:,} packets in {sent['seconds']:.1f} s (load {os.getloadavg()[0]:.1f})"
    )
    print("first epochs: " + ", ".join(f"{each:.2f} s" for each in early))
    if settled:
        print(
            f"later epochs: median {statistics.median(settled):.2f} s, "
            f"worst {max(settled):.2f} s of {len(settled)}"
        )


if __name__ == "__main__":
    _main()
