"""Flow records that arrive on a UDP port: ``gscope run`` beside nfcapd.

A process sends datagrams of NetFlow v5 with 30 records each, at several rates, to the capture
daemon of ``gscope run``, which groups them by source, and then to nfcapd, which stores them. Shows
how many records each received and missed, and the CPU time of the receiving process for a record.
Compares the sums of each source by gscope with those sent.

    python -m benchmarks.flow_port --rates 100000,300000,1000000 --seconds 20

Needs nfcapd and nfdump. As root the buffers have 64 MiB, otherwise what net.core.rmem_max allows.
"""

from __future__ import annotations

import argparse
import csv
import os
import re
import signal
import socket
import struct
import subprocess
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING

from tests.answers.test_flow_records import unread_bytes
from tests.capture.sources.flows.exports import v5, v5_record
from tests.capture.sources.udp.port import free_port
from tests.support.gscope_command import command, descendants

if TYPE_CHECKING:
    from collections.abc import Callable

QUERY = "SELECT srcIP, sum(bytes) AS b, count(*) AS n FROM FLOW GROUP BY time/60 AS tb, srcIP"
RECORDS = 30
SOURCES = 1000
SLICE_S = 0.005
_TICKS = os.sysconf("SC_CLK_TCK")


def bodies() -> list[bytes]:
    """Return the records of ``SOURCES`` datagrams, with their sources."""
    made = []
    for n in range(SOURCES):
        address = f"10.{n % 7}.{n % 11}.{n % 200}"
        records = [v5_record(address, counts=(k + 1, 100 * k + n)) for k in range(RECORDS)]
        made.append(v5(records))
    return made


def send(port: int, rate: int, seconds: float, datagrams: list[bytes]) -> int:
    """Send at ``rate`` records a second; return how many datagrams."""
    sent = 0
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sender:
        sender.connect(("127.0.0.1", port))
        began = time.monotonic()
        total = int(rate * seconds / RECORDS)
        while sent < total:
            due = min(total, int((time.monotonic() - began) * rate / RECORDS))
            while sent < due:
                body = datagrams[sent % len(datagrams)]
                sequence = struct.pack(">I", sent * RECORDS & 0xFFFFFFFF)
                sender.send(body[:16] + sequence + body[20:])
                sent += 1
            time.sleep(SLICE_S)
    return sent


def cpu_s(pid: int) -> float:
    """Return the CPU seconds of a process so far."""
    fields = Path(f"/proc/{pid}/stat").read_text(encoding="ascii").rsplit(")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / _TICKS


def wait_until(condition: Callable[[], bool]) -> None:
    """Return once a condition holds."""
    while not condition():
        time.sleep(0.05)


def of_gscope(rate: int, seconds: float, datagrams: list[bytes]) -> tuple[int, str, float]:
    """Return the records sent, what the summary says, and the CPU seconds of the daemon."""
    port = free_port()
    with tempfile.TemporaryDirectory() as work:
        options = ("-i", f"udp://127.0.0.1:{port}", "-o", "csv", "--work-dir", work)
        with subprocess.Popen(
            command("run", "-e", QUERY, *options), stdout=subprocess.PIPE, stderr=subprocess.PIPE
        ) as run:
            assert run.stdout is not None
            heading = run.stdout.readline()
            (daemon,) = (p for p, c in descendants(run.pid).items() if "capture.daemon" in c)
            # A first datagram, so that nothing is compiled or loaded in the time that is measured.
            send(port, RECORDS, 1.5, datagrams[:1])
            time.sleep(2)
            before = cpu_s(daemon)
            sent = send(port, rate, seconds, datagrams)
            wait_until(lambda: not unread_bytes(port))
            time.sleep(0.5)
            used = cpu_s(daemon) - before
            run.send_signal(signal.SIGINT)
            out, err = run.communicate()
    sums: Counter[tuple[str, str]] = Counter()
    for row in csv.DictReader((heading + out).decode().splitlines()):
        sums[row["srcIP"], "n"] += int(row["n"])
        sums[row["srcIP"], "b"] += int(row["b"])
    summary = err.decode().splitlines()[0].partition(": ")[2]
    expected: Counter[tuple[str, str]] = Counter()
    for n in [*range(sent), 0]:
        which = n % len(datagrams)
        source = f"10.{which % 7}.{which % 11}.{which % 200}"
        expected[source, "n"] += RECORDS
        expected[source, "b"] += sum(100 * k + which for k in range(RECORDS))
    is_whole = "dropped" not in summary
    summary += f" ({'sums equal' if sums == expected else 'sums differ'})" if is_whole else ""
    return sent * RECORDS, summary, used


def of_nfcapd(rate: int, seconds: float, datagrams: list[bytes]) -> tuple[int, str, float]:
    """Return the records sent, what nfdump says, and the CPU seconds of nfcapd."""
    port = free_port()
    with tempfile.TemporaryDirectory() as folder:
        options = ["-b", "127.0.0.1", "-p", str(port), "-w", folder, "-B", str(32 << 20)]
        with subprocess.Popen(
            ["nfcapd", *options], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
        ) as nfcapd:
            wait_until(lambda: unread_bytes(port) is not None)
            before = cpu_s(nfcapd.pid)
            sent = send(port, rate, seconds, datagrams)
            wait_until(lambda: not unread_bytes(port))
            time.sleep(0.5)
            used = cpu_s(nfcapd.pid) - before
            nfcapd.send_signal(signal.SIGTERM)
            nfcapd.wait()
        shown = [
            subprocess.run(
                ["nfdump", "-r", str(file), "-I"], check=True, capture_output=True
            ).stdout.decode()
            for file in sorted(Path(folder).glob("nfcapd.2*"))
        ]
    text = "\n".join(shown)
    flows = sum(map(int, re.findall(r"^Flows: (\d+)", text, re.MULTILINE)))
    failures = sum(map(int, re.findall(r"^Sequence failures: (\d+)", text, re.MULTILINE)))
    return sent * RECORDS, f"{flows:,} flows stored, {failures} sequence failures", used


def main() -> int:
    """Run the benchmark."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rates", default="100000,300000,1000000")
    parser.add_argument("--seconds", type=float, default=20)
    options = parser.parse_args()
    datagrams = bodies()
    for rate in map(int, options.rates.split(",")):
        for name, measure in (("gscope", of_gscope), ("nfcapd", of_nfcapd)):
            sent, found, used = measure(rate, options.seconds, datagrams)
            load = os.getloadavg()[0]
            print(
                f"{name} {rate:,}/s: {sent:,} records sent; {found};"
                f" {used / sent * 1e6:.2f} us of CPU time a record (load {load:.1f})",
                flush=True,
            )
    return 0


if __name__ == "__main__":
    sys.exit(main())
