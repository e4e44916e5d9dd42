"""A run's folder as its processes leave it.

It is made by the parts that write it, without any process.
"""

from __future__ import annotations

import time
from contextlib import contextmanager
from typing import TYPE_CHECKING

from tests.capture.replay.test_replay_capture import PACKET, flow_program, write_pcap
from tests.engine.steps.watched_steps import SECOND, batch, heartbeat, steps

from gscope.capture.interface.open_log import open_log
from gscope.capture.lfta.interpreter import LftaInterpreter
from gscope.capture.process.observers import CaptureObservers
from gscope.capture.process.statistics import CaptureStatistics
from gscope.capture.replay.replay_capture import replay_capture
from gscope.capture.settings import CaptureSettings, InterfaceSettings
from gscope.cli.rundir.run_dir import RunDir
from gscope.engine.monitoring.observer import JobObserver
from gscope.engine.steps.steps import Evaluation
from gscope.engine.storage.commits import Commit, Output
from gscope.engine.storage.counts import Counts
from gscope.queries.run_folder.layout import CAPTURE_STATISTICS_FILE

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from gscope.capture.lfta.columns import ColumnBatch
    from gscope.queries.streams.messages import Message

START = 1_700_000_000 * SECOND
TRACED = 7


@contextmanager
def run_folder(
    work_dir: Path, name: str = "talkers", *, has_reported: bool = True
) -> Iterator[RunDir]:
    """A living run, with the reports of both processes if ``has_reported``."""
    with RunDir(work_dir, name, is_exact=True) as run_dir:
        run_dir.file.change(
            queries=("tens", "minutes"), interfaces=("eth0", "eth1"), command=("run", "tens")
        )
        run_dir.file.on_process("capture", "running", 41)
        run_dir.file.on_process("job", "running", 42)
        run_dir.file.enter("running")
        if has_reported:
            _capture(run_dir.path)
            _answer(run_dir.path)
        yield run_dir


def _capture(folder: Path) -> None:
    """Four packets on eth0; eth1 is silent."""
    write_pcap(folder / "eth0.pcap", [(START + n * SECOND, PACKET) for n in range(4)])
    write_pcap(folder / "eth1.pcap", [])
    program = flow_program("eth0", "eth1")
    settings = CaptureSettings(
        tuple(InterfaceSettings(name, (str(folder / f"{name}.pcap"),)) for name in ("eth0", "eth1"))
    )
    log = open_log(folder / "log", program, settings)

    def engine(interface: str, emit: Callable[[str, ColumnBatch], None]) -> LftaInterpreter:
        return LftaInterpreter(program.lftas, interface, emit)

    try:
        statistics = CaptureStatistics(folder / CAPTURE_STATISTICS_FILE, settings, log)
        replay_capture(
            program,
            settings,
            log,
            engines=engine,
            observers=CaptureObservers(statistics=statistics),
        )
        statistics.write()
    finally:
        log.close()


def _answer(folder: Path) -> None:
    """One step, released by heartbeat 7; then rows wait for eth1."""
    watched = steps("eth0", "eth1")
    observer = JobObserver(folder, watched, (), lambda: None)
    made_ns = time.time_ns() - 5_000_000
    first: list[Message] = [
        batch(watched, "eth0", 0, 40),
        heartbeat(watched, "eth0", 1, 41, TRACED - 1, made_ns),
        heartbeat(watched, "eth1", 0, 41, TRACED, made_ns),
    ]
    observer.on_messages(first, made_ns + 4_000_000)
    watched.on_messages(first)
    observer.advancing()
    step = watched.next()
    assert step is not None
    outputs = (Output("tens", "tens/1", 3),)
    began_ns = time.time_ns()
    trace = observer.evaluated(step, Evaluation(outputs), began_ns, began_ns + 30_000_000)
    commit = Commit(1, watched.snapshot(), outputs, trace, Counts({"dns_name": 1}, {"flows": 2}))
    observer.committed(step, commit, began_ns + 30_000_000, 0.25)
    then: list[Message] = [
        batch(watched, "eth0", 2, 45),
        heartbeat(watched, "eth0", 3, 50, TRACED + 1, made_ns),
    ]
    observer.on_messages(then, made_ns + 4_000_000)
    watched.on_messages(then)
    observer.advancing()
    watched.next()
    observer.close()
