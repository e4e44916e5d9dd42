"""E1 end to end: the published union on two links, from a packet's timestamp to its row.

    python -m benchmarks.live_union [--seconds 90] [--only NAME …]

Whole runs of ``gscope run``, one after another, on virtual Ethernet devices in a network namespace
(needs root): 50 packets/s on one link and 0.05 on the other, Poisson arrivals. What
``benchmarks.timestamps`` simulates for hours is checked here for minutes, with every delay on the
way of a row to standard output: the kernel's blocks (20 ms), the skew (200 ms), segments on disk, a
step of Spark (0.2 s). The packets of the first ``WARM_S`` are left out, while Java warms up. Writes
``benchmarks/out/live_union.csv``.
"""

from __future__ import annotations

import argparse
import os
import random
import signal
import socket
import statistics
import struct
import subprocess
import sys
import tempfile
import threading
import time
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from queue import SimpleQueue
from typing import IO, TYPE_CHECKING

from benchmarks.live_network import enter_own_network
from benchmarks.records import write_records
from gscope.engine.log_client.flight_client import LogClient

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

OUT = Path(__file__).parent / "out"
BUSY_PER_S, SLOW_PER_S = 50.0, 0.05
WARM_S = 15.0
READY_S = 120.0
FRAME = (
    b"\x02" * 6 + b"\x04" * 6 + b"\x08\x00"
    + struct.pack(">BBHHHBBH", 0x45, 0, 36, 1, 0, 64, 17, 0)
    + bytes([10, 0, 0, 1, 10, 0, 0, 2])
    + struct.pack(">HHHH", 1000, 53, 16, 0) + bytes(8)
)  # fmt: skip

SCENARIOS: dict[str, tuple[tuple[str, ...], str]] = {
    "off": (("--heartbeat-mode", "off"), ""),
    "periodic, 1/s": (("--heartbeat-mode", "periodic"), ""),
    "periodic, 10/s": (("--heartbeat-mode", "periodic", "--heartbeat-interval", "100ms"), ""),
    "periodic, 100/s": (("--heartbeat-mode", "periodic", "--heartbeat-interval", "10ms"), ""),
    "on demand": (("--heartbeat-mode", "on-demand"), ""),
    "on demand, on arrival": (("--heartbeat-mode", "on-demand"), "timestamps: arrival"),
    "latent": (("--heartbeat-mode", "on-demand"), "latent: true"),
}
"""For each scenario, its flags and its configuration of both interfaces."""


@dataclass(frozen=True, slots=True)
class Row:
    """Latencies of the rows of one run in ms, and the CPU time of all its processes in seconds."""

    scenario: str
    rows: int
    mean_ms: float
    median_ms: float
    p95_ms: float
    worst_ms: float
    cpu_s: float


@contextmanager
def started(
    name: str, links: Sequence[tuple[str, str]], folder: str
) -> Iterator[tuple[subprocess.Popen[str], list[str]]]:
    """Yield a run that is listening, and the columns of its rows; end it as by Ctrl-C."""
    flags, setting = SCENARIOS[name]
    config = Path(folder) / "gscope.yaml"
    entries = "".join(
        f"  interface{n}: {{device: {device}{', ' + setting if setting else ''}}}\n"
        for n, (_, device) in enumerate(links, 1)
    )
    config.write_text(f"work_dir: {folder}/work\ninterfaces:\n{entries}")
    command = [sys.executable, "-m", "gscope", "run", "-q", "published/union_filtered"]
    command += ["--config", str(config), "-o", "csv", "--quiet", *flags]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        yield process, process.stdout.readline().strip().split(",")
        process.send_signal(signal.SIGTERM)
        process.wait(READY_S)


def answer_ms(links: Sequence[tuple[str, str]], questions: int = 300) -> list[float]:
    """Return how long a silent link takes to answer a demand in another process, sorted."""
    with (
        tempfile.TemporaryDirectory() as folder,
        started("on demand, on arrival", links, folder),
    ):
        (path,) = Path(folder).glob("work/run-*/capture.sock")
        with LogClient(path) as client:
            stream = client.streams()[1]
            heartbeats: SimpleQueue[float] = SimpleQueue()

            def follow() -> None:
                for _ in client.subscribe({stream: 0}):
                    heartbeats.put(time.monotonic())

            threading.Thread(target=follow, daemon=True).start()
            heartbeats.get()
            taken = []
            for _ in range(questions):
                began_s = time.monotonic()
                client.punctuate({stream: {"timestamp": time.time_ns()}})
                taken.append(1000 * (heartbeats.get() - began_s))
            return sorted(taken)


def run(name: str, links: Sequence[tuple[str, str]], seconds: float) -> Row:
    """Run one scenario."""
    with tempfile.TemporaryDirectory() as folder:
        before = os.times()
        with started(name, links, folder) as (process, columns):
            place = columns.index("timestamp")
            stop = threading.Event()
            began_s = time.time()
            latencies: list[float] = []
            reader = threading.Thread(
                target=_read, args=(process.stdout, place, began_s + WARM_S, latencies)
            )
            reader.start()
            senders = [
                threading.Thread(target=_send, args=(link, per_s, stop))
                for (link, _), per_s in zip(links, (BUSY_PER_S, SLOW_PER_S), strict=True)
            ]
            for sender in senders:
                sender.start()
            stop.wait(seconds + WARM_S)
            stop.set()
            for sender in senders:
                sender.join()
        reader.join()
        after = os.times()
    used = after.children_user + after.children_system
    used -= before.children_user + before.children_system
    latencies.sort()
    return Row(
        name,
        len(latencies),
        statistics.fmean(latencies),
        statistics.median(latencies),
        latencies[int(0.95 * len(latencies))],
        latencies[-1],
        used,
    )


def _read(pipe: IO[str], place: int, since_s: float, latencies: list[float]) -> None:
    """Record the age of arriving rows whose packets are from after a time."""
    for line in pipe:
        now_s = time.time()
        stamped_s = _seconds(line.rstrip("\n").split(",")[place])
        if stamped_s >= since_s:
            latencies.append(1000 * (now_s - stamped_s))


def _seconds(text: str) -> float:
    """Return a printed TIMESTAMP as a time since 1970."""
    from datetime import datetime

    whole, _, part = text.rstrip("Z").partition(".")
    return datetime.fromisoformat(f"{whole}+00:00").timestamp() + float(f"0.{part or 0}")


def _send(link: str, per_s: float, stop: threading.Event) -> None:
    chance = random.Random(link)
    with socket.socket(socket.AF_PACKET, socket.SOCK_RAW) as out:
        out.bind((link, 0))
        due_s = time.monotonic()
        while True:
            due_s += chance.expovariate(per_s)
            if stop.wait(max(0.0, due_s - time.monotonic())):
                return
            out.send(FRAME)


def table(rows: Sequence[Row]) -> str:
    """Return the rows as a Markdown table."""
    head = ["scenario", "rows", "mean ms", "median ms", "95 % ms", "longest ms", "CPU s"]
    lines = [head, ["---"] + ["---:"] * (len(head) - 1)]
    for row in rows:
        figures = (row.mean_ms, row.median_ms, row.p95_ms, row.worst_ms)
        lines.append(
            [row.scenario, str(row.rows), *(f"{ms:.0f}" for ms in figures), f"{row.cpu_s:.1f}"]
        )
    return "\n".join("| " + " | ".join(line) + " |" for line in lines)


def _main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, allow_abbrev=False)
    parser.add_argument("--seconds", type=float, default=90)
    parser.add_argument("--only", nargs="+", choices=list(SCENARIOS), default=list(SCENARIOS))
    arguments = parser.parse_args()
    links = enter_own_network(2)
    answers = answer_ms(links)
    middle, late = statistics.median(answers), answers[int(0.95 * len(answers))]
    print(f"a demand is answered after {middle:.2f} ms (95 % after {late:.2f} ms)", flush=True)
    rows = []
    for name in arguments.only:
        rows.append(run(name, links, arguments.seconds))
        print(table(rows[-1:]).splitlines()[-1], flush=True)
    write_records(rows, OUT / "live_union.csv")
    print(table(rows))


if __name__ == "__main__":
    _main()
