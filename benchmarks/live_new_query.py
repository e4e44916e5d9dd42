"""Live: when the capture of a query never seen before begins, and what it loses while it compiles.

    python -m benchmarks.live_new_query [--rate 100000] [--seconds 20] [--runs 3]

Needs root: it creates a network of its own. The sender sends before, during and after the start, so
that the time of the first packet that a query counts tells when its capture began. A run is *new*
if no cache has the machine code of its kernel: a constant in the query is drawn at random. The
*seen* run after it asks the same again. In both, the optimiser's thread may compile while packets
arrive. Frames are numbered (Identification, as many as there are flows), and the query counts each
number: *lost* is the difference from what was sent since the first packet counted, whatever gscope
and the kernel report; *dropped* is what they report.
"""

from __future__ import annotations

import argparse
import csv
import json
import os
import random
import re
import signal
import statistics
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING

from benchmarks.first_row import build_archive, usable_cache
from benchmarks.installed import compile_modules
from benchmarks.live_network import DEVICE, SENDER, enter_own_network
from benchmarks.trace import OUT, trace

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

FLOWS = 1 << 14
BEFORE_S = 0.5
"""Seconds for which the sender has sent when the command starts."""
AFTER_S = 1.0
STOP_S = 120.0
_DROPPED = re.compile(r"([\d,]+) dropped")


@dataclass(frozen=True, slots=True)
class Start:
    """One run.

    Attributes:
        first_s: seconds from the start of the command to the first packet captured.
        sent: packets sent since that packet.
        lost: how many of them were not counted, or were counted twice.
        dropped: packets that the kernel dropped, by gscope's summary.
    """

    first_s: float
    sent: int
    lost: int
    dropped: int


def query(constant: int) -> str:
    """Return a query whose kernel no other constant has; all frames are shorter than it."""
    return (
        "SELECT tb, id, count(*) AS packets, min(timestamp) AS first FROM IPv4 "
        f"WHERE len < {constant} GROUP BY time/86400 AS tb, id"
    )


def lost_packets(counts: Mapping[int, int], first: int, sent: int, flows: int) -> tuple[int, int]:
    """Return how many frames were sent from the first counted on, and how many counts are wrong.

    Frames are numbered in turn, 0 to ``flows`` - 1.

    Args:
        counts: packets counted of each number.
        first: the number of the first packet counted.
        sent: frames sent in all.
        flows: the numbers that there are.
    """
    counted = sum(counts.values())
    # The first of ``due`` frames has the number ``first``, the last one that of the last sent.
    due = (sent - first) % flows
    due += round((counted - due) / flows) * flows
    rounds, rest = divmod(due, flows)
    wanted = (rounds + ((number - first) % flows < rest) for number in range(flows))
    wrong = sum(abs(counts.get(number, 0) - each) for number, each in enumerate(wanted))
    return due, wrong


def start(command: list[str], environment: dict[str, str], rate: int, seconds: float) -> Start:
    """Run a query while packets are sent, and stop it when all are.

    Raises:
        SystemExit: the command failed, or counted nothing.
    """
    module = (sys.executable, "-m", "benchmarks.live_sender", SENDER, str(rate), str(seconds))
    with subprocess.Popen((*module, "--flows", str(FLOWS)), stdout=subprocess.PIPE) as sender:
        time.sleep(BEFORE_S)
        began = time.time()
        process = subprocess.Popen(
            command,
            env=environment,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        try:
            sent = json.loads(sender.communicate()[0])["sent"]
            time.sleep(AFTER_S)
            process.send_signal(signal.SIGINT)
            rows, words = process.communicate(timeout=STOP_S)
        finally:
            process.kill()
            process.wait()
    table = list(csv.DictReader(rows.splitlines()))
    if not table:
        message = f"no rows: {words.strip()}"
        raise SystemExit(message)
    return _result(table, began, sent, words)


def _result(table: Sequence[dict[str, str]], began: float, sent: int, words: str) -> Start:
    counts: dict[int, int] = {}
    first_s, first = min((_seconds(row["first"]), int(row["id"])) for row in table)
    for row in table:
        number = int(row["id"])
        counts[number] = counts.get(number, 0) + int(row["packets"])
    due, lost = lost_packets(counts, first, sent, FLOWS)
    dropped = _DROPPED.search(words)
    return Start(
        first_s - began, due, lost, int(dropped[1].replace(",", "")) if dropped is not None else 0
    )


def _seconds(timestamp: str) -> float:
    return datetime.fromisoformat(timestamp).timestamp()


def _main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, allow_abbrev=False)
    parser.add_argument("--rate", type=int, default=100_000, help="packets a second")
    parser.add_argument("--seconds", type=float, default=20.0, help="seconds of sending")
    parser.add_argument("--runs", type=int, default=3)
    given = parser.parse_args()
    compile_modules()
    gscope = str(Path(sys.executable).parent / "gscope")
    figures: list[tuple[str, Start, float]] = []
    print("| query | first packet s | sent | lost | dropped | load |\n| --- |" + " ---: |" * 5)
    capture = str(trace(1_000))
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder:
        environment = usable_cache(folder)
        replay = [gscope, "replay", capture, "-e", query(2000), "-o", "csv", "--quiet"]
        build_archive(replay, environment)
        enter_own_network()
        command = [gscope, "run", "-i", DEVICE, "-o", "csv", "--work-dir", folder]
        for _ in range(given.runs):
            text = query(random.randrange(2_000, 60_000))
            for kind in ("new", "seen"):
                one = start([*command, "-e", text], environment, given.rate, given.seconds)
                load = os.getloadavg()[0]
                figures.append((kind, one, load))
                cells = f"{one.first_s:.2f} | {one.sent:,} | {one.lost:,} | {one.dropped:,}"
                print(f"| {kind} | {cells} | {load:.1f} |", flush=True)
    for kind in ("new", "seen"):
        first_s = statistics.median(one.first_s for name, one, _ in figures if name == kind)
        print(f"{kind}: first packet {first_s:.2f} s after the command (median)")
    with (OUT / "live_new_query.csv").open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(["query", "first_packet_s", "sent", "lost", "dropped", "load"])
        writer.writerows(
            (kind, f"{one.first_s:.3f}", one.sent, one.lost, one.dropped, f"{load:.1f}")
            for kind, one, load in figures
        )


if __name__ == "__main__":
    _main()
