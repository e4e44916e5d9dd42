"""What saving packets costs: the LFTA stage without it and with it, and a live link with it.

    python -m benchmarks.saved_packets [--packets 2000000] [--repeats 5] [--rate 100000]
        [--seconds 20] [--no-live]

The stage runs a selection over a trace in memory and reports the least CPU time a packet, of the
thread that processes packets and of the one that writes. The live part needs root: it creates a
network of its own, saves every packet and every hundredth packet that the sender sends, as those of
selections and of groups, and checks that the kernel dropped nothing and that all are in the file.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING

from benchmarks.live_network import DEVICE, SENDER, enter_own_network
from benchmarks.trace import trace
from gscope.capture.interface.build_lftas import compiled_engines
from gscope.capture.saving.packet_file import PacketFile
from gscope.capture.settings import CaptureSettings, InterfaceSettings, SavedPackets, SavedQuery
from gscope.capture.sources.files.open import open_source
from gscope.queries.compile import CompileContext, QueryText, compile_queries
from gscope.queries.run_folder.layout import CAPTURE_FOLDER

if TYPE_CHECKING:
    from gscope.capture.lfta.runtime import LftaEngine

START_S = 60.0
SETTLE_S = 1.5
SHARES = {"1 %": "time_ns / 1000 % 100 = 7", "100 %": "len > 0"}
LIVE = {
    **{share: f"SELECT time, srcIP, srcPort FROM IP WHERE {w}" for share, w in SHARES.items()},
    "all groups of 2 s": "SELECT tb, srcIP, count(*) AS c FROM IP GROUP BY time/2 AS tb, srcIP",
}
"""What is selected of the live link, and the query."""


def _engines(
    text: str, folder: Path, descriptor: int | None
) -> tuple[LftaEngine, PacketFile | None]:
    """Return the LFTAs of a selection, and the file for its packets if a descriptor is given."""
    program = compile_queries([QueryText(text, "hits")], CompileContext(("main",))).program
    settings = CaptureSettings((InterfaceSettings("main", ("main",)),))
    file = None
    if descriptor is not None:
        saved = SavedPackets(descriptor, (SavedQuery(program.lftas[0].name, "hits"),))
        file = PacketFile(saved, folder, is_live=False)
    engines = compiled_engines(program, settings, file)
    return engines("main", lambda _lfta, batch: batch.release()), file


def stage_ns(capture: Path, where: str, *, is_saving: bool) -> tuple[float, int]:
    """Return the CPU nanoseconds a packet of the LFTAs and the writer, and the packets saved."""
    text = f"SELECT time, srcIP, destIP, srcPort, destPort, len FROM IP WHERE {where}"
    with tempfile.TemporaryFile() as output, tempfile.TemporaryDirectory() as folder:
        (Path(folder) / CAPTURE_FOLDER).mkdir()
        descriptor = output.fileno() if is_saving else None
        engine, file = _engines(text, Path(folder), descriptor)
        source = open_source(str(capture))
        worked_ns, packets = 0, 0
        began_ns = time.process_time_ns()
        reading_ns = 0
        while True:
            before_ns = time.thread_time_ns()
            block = source.next_block()
            reading_ns += time.thread_time_ns() - before_ns
            if block is None:
                break
            packets += block.count
            engine.process(block, 0)
        engine.finish()
        if file is not None:
            file.close()
        worked_ns = time.process_time_ns() - began_ns - reading_ns
        source.close()
        return worked_ns / packets, 0 if file is None else file.counters.packets


def stage_table(packets: int, repeats: int) -> str:
    """Return the least times as a Markdown table."""
    capture = trace(packets)
    lines = ["| selected | saved | ns a packet |", "|---|---:|---:|"]
    for share, where in SHARES.items():
        for is_saving in (False, True):
            runs = [stage_ns(capture, where, is_saving=is_saving) for _ in range(repeats)]
            lines.append(f"| {share} | {runs[0][1]:,} | {min(ns for ns, _ in runs):.1f} |")
    return "\n".join(lines)


def live_line(share: str, text: str, rate: int, seconds: float) -> str:
    """Save packets of a live link; return a row of a Markdown table.

    Raises:
        RuntimeError: the run did not start.
    """
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        hits, answer, words = folder / "hits.pcapng", folder / "rows", folder / "words"
        command = [sys.executable, "-m", "gscope", "run", "-i", DEVICE, "-e", text]
        command += ["-o", "csv", "--save-packets", str(hits), "--work-dir", name]
        with answer.open("wb") as output, words.open("wb") as errors:
            process = subprocess.Popen(command, stdout=output, stderr=errors)
        try:
            until = time.monotonic() + START_S
            # The heading says that packets are let in.
            while not answer.stat().st_size:
                if process.poll() is not None or time.monotonic() > until:
                    raise RuntimeError(words.read_text())
                time.sleep(0.05)
            time.sleep(SETTLE_S)
            module = (sys.executable, "-m", "benchmarks.live_sender", SENDER)
            sender = subprocess.run(
                [*module, str(rate), str(seconds)], check=True, capture_output=True
            )
            sent = json.loads(sender.stdout)
            time.sleep(SETTLE_S)
            process.send_signal(signal.SIGTERM)
            process.wait(START_S)
        finally:
            process.kill()
            process.wait()
        said = words.read_text()
        saved = int(re.findall(r"([\d,]+) packets saved", said)[0].replace(",", ""))
        rows = re.findall(r"([\d,]+) rows", said)[0]
        is_lost = "dropped" in said or "not saved" in said or "had left the ring" in said
        sent_a_second = sent["sent"] / sent["seconds"]
        return (
            f"| {share} | {sent_a_second:,.0f} | {sent['sent']:,} | {rows} | {saved:,} |"
            f" {'yes' if is_lost else 'no'} | {hits.stat().st_size / 1e6:.0f} |"
        )


def _main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, allow_abbrev=False)
    parser.add_argument("--packets", type=int, default=2_000_000)
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--rate", type=int, default=100_000)
    parser.add_argument("--seconds", type=float, default=20.0)
    parser.add_argument("--no-live", action="store_true")
    options = parser.parse_args()
    if options.no_live:
        print(stage_table(options.packets, options.repeats))
        return
    enter_own_network()
    print("| selected | packets/s | sent | rows | saved | lost | MB |")
    print("|---|---:|---:|---:|---:|---|---:|")
    for share, text in LIVE.items():
        print(live_line(share, text, options.rate, options.seconds))
    print(f"\nload {os.getloadavg()[0]:.1f}\n\n{stage_table(options.packets, options.repeats)}")


if __name__ == "__main__":
    _main()
