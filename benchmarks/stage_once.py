"""One run of the LFTA stage in a process of its own: a capture → sealed batches in a folder.

    python -m benchmarks.stage_once CAPTURE FOLDER FIGURES [--read-ahead] [--partitions N]

Appends a line to FIGURES: seconds of wall time and of CPU that the replay itself took, from the
opening of the capture to the end of the streams, on all threads. Before that, the stage is
rehearsed on the first packets, so that all modules and kernels are loaded. The cost of that and of
starting Python is charged to the process only.
"""

from __future__ import annotations

import argparse
import shutil
import time
from pathlib import Path

from benchmarks.replay import FLOW_QUERY
from gscope.capture.interface.open_log import open_log
from gscope.capture.replay.replay_capture import replay_capture
from gscope.capture.settings import CaptureSettings, InterfaceSettings
from gscope.queries.compile import CompileContext, QueryText, compile_queries

REHEARSAL_BYTES = 4 << 20


def run(
    capture: Path, folder: Path, *, read_ahead: bool, partitions: int = 1
) -> tuple[float, float]:
    """Run the stage into a new log in ``folder``; return wall time and CPU time in seconds."""
    shutil.rmtree(folder, ignore_errors=True)
    context = CompileContext(("main",), partitions=partitions)
    program = compile_queries([QueryText(FLOW_QUERY, "flows")], context).program
    settings = CaptureSettings((InterfaceSettings("main", (str(capture),)),), read_ahead=read_ahead)
    log = open_log(folder, program, settings)
    try:
        wall, cpu = time.perf_counter(), time.process_time()
        replay_capture(program, settings, log)
        return time.perf_counter() - wall, time.process_time() - cpu
    finally:
        log.close()


def rehearse(capture: Path, folder: Path, *, read_ahead: bool, partitions: int = 1) -> None:
    """Run the stage on the first packets of ``capture``, the last of which may be cut."""
    folder.mkdir(parents=True, exist_ok=True)
    beginning = folder.with_suffix(".pcap")
    with capture.open("rb") as file:
        beginning.write_bytes(file.read(REHEARSAL_BYTES))
    run(beginning, folder, read_ahead=read_ahead, partitions=partitions)
    beginning.unlink()


def _main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, allow_abbrev=False)
    parser.add_argument("capture", type=Path)
    parser.add_argument("folder", type=Path)
    parser.add_argument("figures", type=Path)
    parser.add_argument("--read-ahead", action="store_true", help="read in a thread of its own")
    parser.add_argument("--partitions", type=int, default=1, help="of rows; 1 for none")
    arguments = parser.parse_args()
    options = {"read_ahead": arguments.read_ahead, "partitions": arguments.partitions}
    rehearse(arguments.capture, arguments.folder, **options)
    wall, cpu = run(arguments.capture, arguments.folder, **options)
    with arguments.figures.open("a") as figures:
        figures.write(f"{wall} {cpu}\n")


if __name__ == "__main__":
    _main()
