"""Flow records beside nfdump: exports of softflowd, files of nfcapd and of nfpcapd.

Makes a capture of synthetic traffic. softflowd exports it as NetFlow v9 and as IPFIX into a capture
and into nfcapd, and nfpcapd reads it into a file of its own. The files of nfcapd are compressed in
each way that nfdump knows. Of each file gscope's packets and bytes of each source must be those of
nfdump. Then the readers take turns: gscope's decoding of the capture of exports and of each file,
the same with an LFTA that groups by source, and ``nfdump -A srcip``. The figures are medians of the
CPU time.

    python -m benchmarks.flow_records --packets 10000000

Needs softflowd, nfcapd, nfpcapd and nfdump.
"""

from __future__ import annotations

import argparse
import os
import resource
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections import Counter
from functools import partial
from ipaddress import ip_address
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from tests.answers.test_flow_records import collected, exported
from tests.capture.sources.flows.exports import capture_of, udp_packet

from gscope.capture.lfta.cache import load_kernel
from gscope.capture.lfta.runtime import LftaRuntime
from gscope.capture.lfta.settings import LftaSettings
from gscope.capture.packet.flow import layout
from gscope.capture.sources.files.open import open_source
from gscope.capture.sources.flows.source import FlowSource
from gscope.capture.sources.synthetic.source import TrafficProfile, write_pcap
from gscope.queries.compile import CompileContext, QueryText, compile_queries

if TYPE_CHECKING:
    from collections.abc import Callable

    from gscope.capture.lfta.columns import ColumnBatch

ROUNDS = 7
COMPRESSIONS = ("none", "LZO", "bzip2", "lz4")
"""By their numbers for ``nfdump -J``."""

BY_SOURCE = """
SELECT tb, srcIP, sum(packets) AS p, sum(bytes) AS b FROM FLOW GROUP BY time/300 AS tb, srcIP
"""


def decode(path: Path) -> tuple[int, float]:
    """Return the records of a capture of exports or a file of nfcapd, and the CPU seconds."""
    began = time.process_time()
    source = FlowSource(open_source(str(path)))
    records = 0
    while (block := source.next_block()) is not None:
        records += block.count
    source.close()
    ensure_no_loss(source)
    return records, time.process_time() - began


def ensure_no_loss(source: FlowSource) -> None:
    """Raise an exception if records are missing."""
    if source.stats.dropped_packets:
        message = f"{source.name}: {source.stats.dropped_packets} records are missing"
        raise RuntimeError(message)


def group(path: Path) -> tuple[int, float]:
    """Return what ``decode`` does, with an LFTA that groups by source."""

    def emit(_: str, batch: ColumnBatch) -> None:
        batch.release()

    program = compile_queries([QueryText(BY_SOURCE, "q")], CompileContext(("main",))).program
    lftas = list(program.lftas)
    engine = LftaRuntime(lftas, "main", LftaSettings(), load_kernel(lftas), emit)
    began = time.process_time()
    source = FlowSource(open_source(str(path)))
    while (block := source.next_block()) is not None:
        engine.process(block, 0)
    source.close()
    engine.finish()
    spent_s = time.process_time() - began
    return engine.interface_counters.packets, spent_s


def sums_of(path: Path) -> Counter[tuple[str, str]]:
    """Return the packets and bytes of each source by gscope."""
    sums: Counter[tuple[str, str]] = Counter()
    source = FlowSource(open_source(str(path)))
    while (block := source.next_block()) is not None:
        begins = block.offset[: block.count, None]
        rows = block.data[begins + np.arange(layout.RECORD_BYTES)]
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


def nfdump(file: Path) -> tuple[str, float]:
    """Return the packets and bytes of each source as nfdump shows them, and its CPU seconds."""
    shape = "fmt:%sa,%pkt,%byt"
    command = ["nfdump", "-r", str(file), "-q", "-N", "-6", "-A", "srcip", "-o", shape]
    before = _children_s()
    shown = subprocess.run(command, check=True, capture_output=True).stdout.decode()
    return shown, _children_s() - before


def sums_of_nfdump(file: Path) -> Counter[tuple[str, str]]:
    """Return the packets and bytes of each source by nfdump."""
    sums: Counter[tuple[str, str]] = Counter()
    for line in filter(None, nfdump(file)[0].splitlines()):
        name, packets, octets = (part.strip() for part in line.split(","))
        sums[name, "packets"] += int(packets)
        sums[name, "bytes"] += int(octets)
    return sums


def _children_s() -> float:
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def stored_by_nfpcapd(capture: Path, folder: Path) -> Path:
    """Return the file that nfpcapd makes of a capture."""
    folder.mkdir()
    # One file, whatever the capture covers.
    command = ["nfpcapd", "-r", str(capture), "-w", str(folder), "-t", "86400"]
    subprocess.run(command, check=True, capture_output=True)
    (file,) = folder.iterdir()
    return file


def compressed(file: Path) -> dict[str, Path]:
    """Return copies of a file of nfcapd in each compression."""
    copies = {}
    for number, name in enumerate(COMPRESSIONS):
        copies[name] = file.with_name(f"{file.name}.{name}")
        shutil.copy(file, copies[name])
        command = ["nfdump", "-J", str(number), "-r", str(copies[name])]
        subprocess.run(command, check=True, capture_output=True)
    return copies


def compare(title: str, files: dict[str, Path], exports: Path | None) -> bool:
    """Print the rates of all readers; return whether the sums are equal."""
    plain = files["none"]
    theirs = sums_of_nfdump(plain)
    given = ([exports] if exports else []) + list(files.values())
    is_equal = all(sums_of(each) == theirs for each in given)
    state = "equal" if is_equal else "DIFFER"
    records, _ = decode(plain)
    print(f"{title}: {records:,} records, {len(theirs) // 2:,} sources, sums {state}")
    contestants: dict[str, Callable[[], float]] = {}
    for name, file in files.items():
        contestants[f"decode {name}"] = partial(_spent, decode, file)
        contestants[f"group {name}"] = partial(_spent, group, file)
        contestants[f"nfdump {name}"] = partial(_spent, nfdump, file)
    if exports:
        contestants["decode exports"] = partial(_spent, decode, exports)
        contestants["group exports"] = partial(_spent, group, exports)
    for run in contestants.values():
        run()
    spent: dict[str, list[float]] = {name: [] for name in contestants}
    for _ in range(ROUNDS):
        for name, run in contestants.items():
            spent[name].append(run())
    for name, seconds in spent.items():
        middle = statistics.median(seconds)
        print(f"  {name}: {records / middle / 1e6:.2f} million records/s of CPU ({middle:.3f} s)")
    print(f"  load {os.getloadavg()[0]:.1f}")
    return is_equal


def _spent(read: Callable[[Path], tuple[object, float]], file: Path) -> float:
    return read(file)[1]


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
            exports = folder / f"exports{version}.pcap"
            exports.write_bytes(capture_of(map(udp_packet, datagrams), 1000))
            file = collected(datagrams, folder / f"nfcapd{version}")
            is_equal &= compare(title, compressed(file), exports)
        file = stored_by_nfpcapd(capture, folder / "nfpcapd")
        is_equal &= compare("nfpcapd", compressed(file), None)
    return 0 if is_equal else 1


if __name__ == "__main__":
    sys.exit(main())
