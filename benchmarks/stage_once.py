"""One run of the LFTA stage in a process of its own: a capture → sealed batches in a folder.

    python -m benchmarks.stage_once CAPTURE FOLDER FIGURES [--read-ahead] [--partitions N]
        [--links N] [--threads N]

Appends a line to FIGURES: seconds of wall time and of CPU that the replay itself took, from the
opening of the capture to the end of the streams, on all threads. Before that, the stage is
rehearsed on the first packets, so that all modules and kernels are loaded. The cost of that and of
starting Python is charged to the process only. With several links, the capture is that of each.
"""

from __future__ import annotations

import argparse
import shutil
import time
from dataclasses import dataclass
from pathlib import Path

from gscope.queries.run_folder.startup import settle

# As the daemon does: before numpy is imported, whose BLAS would start threads that spin.
settle()

from benchmarks.replay import FLOW_QUERY  # noqa: E402
from gscope.capture.interface.open_log import open_log  # noqa: E402
from gscope.capture.replay import side_by_side  # noqa: E402
from gscope.capture.replay.replay_capture import replay_capture  # noqa: E402
from gscope.capture.settings import CaptureSettings, InterfaceSettings  # noqa: E402
from gscope.queries.compile import CompileContext, QueryText, compile_queries  # noqa: E402

REHEARSAL_BYTES = 4 << 20


@dataclass(frozen=True)
class Stage:
    """How the stage runs.

    Attributes:
        read_ahead: whether a thread of its own reads.
        partitions: partitions of rows; 1 for none.
        links: interfaces, each with the whole capture and a query of its own.
        threads: threads at most; None for one a core.
    """

    read_ahead: bool = False
    partitions: int = 1
    links: int = 1
    threads: int | None = None

    def run(self, capture: Path, folder: Path) -> tuple[float, float]:
        """Run it into a new log in ``folder``; return wall time and CPU time in seconds."""
        shutil.rmtree(folder, ignore_errors=True)
        names = tuple(f"link{number}" for number in range(self.links))
        context = CompileContext(names, partitions=self.partitions)
        queries = [
            QueryText(FLOW_QUERY.replace("FROM IP", f"FROM {name}.IP"), name) for name in names
        ]
        program = compile_queries(queries, context).program
        interfaces = tuple(InterfaceSettings(name, (str(capture),)) for name in names)
        settings = CaptureSettings(interfaces, read_ahead=self.read_ahead)
        if (threads := self.threads) is not None:
            side_by_side.usable_cores = lambda: threads
        log = open_log(folder, program, settings)
        try:
            wall, cpu = time.perf_counter(), time.process_time()
            replay_capture(program, settings, log)
            return time.perf_counter() - wall, time.process_time() - cpu
        finally:
            log.close()

    def rehearse(self, capture: Path, folder: Path) -> None:
        """Run it on the first packets of ``capture``, the last of which may be cut."""
        folder.mkdir(parents=True, exist_ok=True)
        beginning = folder.with_suffix(".pcap")
        with capture.open("rb") as file:
            beginning.write_bytes(file.read(REHEARSAL_BYTES))
        self.run(beginning, folder)
        beginning.unlink()


def _main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, allow_abbrev=False)
    parser.add_argument("capture", type=Path)
    parser.add_argument("folder", type=Path)
    parser.add_argument("figures", type=Path)
    parser.add_argument("--read-ahead", action="store_true", help="read in a thread of its own")
    parser.add_argument("--partitions", type=int, default=1, help="of rows; 1 for none")
    parser.add_argument("--links", type=int, default=1, help="interfaces with that capture")
    parser.add_argument("--threads", type=int, help="threads at most, instead of one a core")
    arguments = parser.parse_args()
    stage = Stage(arguments.read_ahead, arguments.partitions, arguments.links, arguments.threads)
    stage.rehearse(arguments.capture, arguments.folder)
    wall, cpu = stage.run(arguments.capture, arguments.folder)
    with arguments.figures.open("a") as figures:
        figures.write(f"{wall} {cpu}\n")


if __name__ == "__main__":
    _main()
