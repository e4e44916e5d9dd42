"""Flow records beside nfdump: what softflowd exports, decoded by gscope and read by nfdump.

Makes a capture of synthetic traffic, lets softflowd export it as NetFlow v9 and as IPFIX into a
capture and into nfcapd, compares the packets and bytes of each source with nfdump's, and times both
readers: gscope's decoding of the capture of exports, and ``nfdump -A srcip`` over the file of nfcapd.

    python -m benchmarks.flow_records --packets 10000000

Needs softflowd, nfcapd and nfdump.
"""

from __future__ import annotations

import argparse
import os
import resource
import subprocess
import sys
import tempfile
import time
from collections import Counter
from ipaddress import ip_address
from pathlib import Path

import numpy as np
from tests.answers.test_flow_records import collected, exported
from tests.capture.sources.flows.exports import capture_of, udp_packet

from gscope.capture.packet.flow import layout
from gscope.capture.sources.files.open import open_source
from gscope.capture.sources.flows.source import FlowSource
from gscope.capture.sources.synthetic.source import TrafficProfile, write_pcap

ROUNDS = 5


def decode(path: Path) -> tuple[int, int, float]:
    """Return the records of a capture of exports, what is missing, and the CPU seconds."""
    began = time.process_time()
    source = FlowSource(open_source(str(path)))
    records = 0
    while (block := source.next_block()) is not None:
        records += block.count
    source.close()
    return records, source.stats.dropped_packets, time.process_time() - began


def sums_of(path: Path) -> Counter[tuple[str, str]]:
    """Return the packets and bytes of each source by gscope."""
    sums: Counter[tuple[str, str]] = Counter()
    source = FlowSource(open_source(str(path)))
    while (block := source.next_block()) is not None:
        rows = block.data[: block.count * layout.RECORD_BYTES].reshape(-1, layout.RECORD_BYTES)
        halves = _words(rows, layout.SRC_IP), _words(rows, layout.SRC_IP + 8)
        counts = _words(rows, layout.PACKETS), _words(rows, layout.BYTES)
        for high, low, packets, octets in zip(
            *(each.tolist() for each in (*halves, *counts)), strict=True
        ):
            value = (high << 64) | low
            is_v4 = value >> 32 == 0xFFFF
            name = str(ip_address(value & 0xFFFFFFFF if is_v4 else value))
            sums[name, "packets"] += packets
            sums[name, "bytes"] += octets
    source.close()
    return sums


def _words(rows: np.ndarray, offset: int) -> np.ndarray:
    return np.ascontiguousarray(rows[:, offset : offset + 8]).view(np.uint64)[:, 0]


def of_nfdump(file: Path) -> tuple[Counter[tuple[str, str]], float]:
    """Return the packets and bytes of each source by nfdump, and its least CPU seconds."""
    command = [
        "nfdump",
        "-r",
        str(file),
        "-q",
        "-N",
        "-6",
        "-A",
        "srcip",
        "-o",
        "fmt:%sa,%pkt,%byt",
    ]
    least = float("inf")
    for _ in range(ROUNDS):
        before = _children_s()
        shown = subprocess.run(command, check=True, capture_output=True).stdout.decode()
        least = min(least, _children_s() - before)
    sums: Counter[tuple[str, str]] = Counter()
    for line in filter(None, shown.splitlines()):
        name, packets, octets = (part.strip() for part in line.split(","))
        sums[name, "packets"] += int(packets)
        sums[name, "bytes"] += int(octets)
    return sums, least


def _children_s() -> float:
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def main() -> int:
    """Run the benchmark; return 1 if sums differ."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--packets", type=int, default=10_000_000)
    options = parser.parse_args()
    is_equal = True
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        capture = folder / "traffic.pcap"
        profile = TrafficProfile(seed=17, packets_per_second=50_000, snaplen=96)
        write_pcap(profile, capture, options.packets)
        for version, title in ((9, "NetFlow v9"), (10, "IPFIX")):
            datagrams = exported(capture, version)
            path = folder / f"exports{version}.pcap"
            path.write_bytes(capture_of(map(udp_packet, datagrams), 1000))
            decode(path)
            runs = [decode(path) for _ in range(ROUNDS)]
            records, missing, gscope_s = min(runs, key=lambda run: run[2])
            file = collected(datagrams, folder / f"nfcapd{version}")
            theirs, nfdump_s = of_nfdump(file)
            ours = sums_of(path)
            is_equal &= ours == theirs
            print(
                f"{title}: {len(datagrams):,} datagrams, {records:,} records, {missing:,} missing;"
                f" {len(ours) // 2:,} sources, sums {'equal' if ours == theirs else 'DIFFER'};"
                f" gscope {records / gscope_s / 1e6:.2f} million records/s of CPU,"
                f" nfdump -A srcip {records / nfdump_s / 1e6:.2f}; load {os.getloadavg()[0]:.1f}"
            )
    return 0 if is_equal else 1


if __name__ == "__main__":
    sys.exit(main())
