"""A supervisor whose children follow a script instead of capturing and answering."""

from __future__ import annotations

import os
import textwrap
import time
from contextlib import AbstractContextManager, nullcontext
from typing import TYPE_CHECKING, cast

import pytest

from gscope.capture.process.confinement.plan import Confinement
from gscope.capture.settings import CaptureSettings, DeviceSettings, InterfaceSettings
from gscope.cli.events import CAPTURE, JOB
from gscope.cli.rundir.record_file import RunFile
from gscope.cli.rundir.records import RunRecord
from gscope.cli.supervision import process_set, recovery
from gscope.cli.supervision.liveness import SilenceLimits
from gscope.cli.supervision.restart_policy import RestartPolicy
from gscope.cli.supervision.supervisor import Supervisor
from gscope.engine.settings import JobSettings
from gscope.queries.plan.program import Program

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

    from gscope.cli.delivery.delivery import Delivery
    from gscope.cli.delivery.stream_reader import Passthrough
    from gscope.cli.render.progress_text import RunPhase
    from gscope.queries.streams.process_events import CaptureProgress, CommittedOutput

PROGRAM = Program(("a",), (), (), (), ())
SETTINGS = CaptureSettings((InterfaceSettings("a", ("a.pcap",)),))
LIVE = CaptureSettings((InterfaceSettings("a", device=DeviceSettings("a")),))
PATIENT = SilenceLimits(stream_s=60.0, start_s=60.0)
IMPATIENT = SilenceLimits(stream_s=5.0, start_s=60.0)
"""Of tests in which a process hangs: as short as a busy machine lets the others be quiet."""
SUMMARY = 'emit("summary", phases={})\n'
CAPTURES = 'emit("listening")\n' + SUMMARY
READY = 'emit("ready")\n'
FINISHES = """
while sys.stdin.readline().strip() != "connect": pass
emit("commit", step=1, outputs=[], bounds={}, late_tuples={"q": 2}, shed_tuples={}, trimmed_tuples={}, incomplete=[], incomplete_epochs={}, undecodable={"tls_sni": 3}, wrapped_sums={"p": 4}, foreign={}, crowded_out={})
emit("finished", phases={})
"""  # noqa: E501
ANSWERS = READY + FINISHES
COMMITS = """
emit("ready")
while sys.stdin.readline().strip() != "connect": pass
emit("commit", step=STEP, outputs=[], bounds={}, late_tuples={}, shed_tuples={}, trimmed_tuples={}, incomplete=[], incomplete_epochs={}, undecodable={}, wrapped_sums={}, foreign={}, crowded_out={})
"""  # noqa: E501
HEAD = """
import json, os, signal, sys, time
from pathlib import Path
run_dir = Path(sys.argv[1])
REQUIRED = {
    "listening": {"socket": "capture.sock"},
    "progress": {"packets": 0, "input_bytes": 0, "size_bytes": None, "clock_ns": 0},
    "summary": {"interfaces": [], "lftas": {}, "log": {}, "is_stopped": False},
    "commit": {"watermarks": {}, "step_s": 0.0},
    "finished": {"steps": 1},
}
def emit(event, **fields):
    print(json.dumps({"event": event, **REQUIRED.get(event, {}), **fields}), flush=True)
def started():
    count = run_dir / f"{__name__}.{sys.argv[0][-9:]}.count"
    with count.open("a") as file:
        file.write("x")
    return len(count.read_text())
"""


class _Answers:
    def __init__(self) -> None:
        self.has_begun = False
        self.is_complete = False
        self.is_answered = False
        self.rows: dict[str, int] = {}
        self.steps: list[int] = []

    def begin(self) -> None:
        self.has_begun = True

    def on_tick(self) -> None: ...

    def on_commit(
        self, step: int, _outputs: Sequence[CommittedOutput], _bounds: object, _lost: object
    ) -> None:
        self.steps.append(step)

    def on_answered(self, _clocks: object) -> None:
        self.is_answered = True


class _NoStreams:
    streams = ()


class _RunObserver:
    def __init__(self) -> None:
        self.phases: list[str] = []
        self.notices: list[str] = []

    def on_progress(self, progress: CaptureProgress) -> None: ...

    def on_phase(self, phase: RunPhase, detail: str = "") -> None:
        self.phases.append(f"{phase.value} {detail}".rstrip())

    def on_epochs(self, lengths_ns: tuple[int, ...]) -> None: ...

    def on_rows(self) -> None: ...

    def on_pager_start(self) -> None: ...

    def on_pager_end(self) -> None: ...

    def on_notice(self, text: str) -> None:
        self.notices.append(text)

    def aside(self, *, is_message: bool = False) -> AbstractContextManager[None]:
        return nullcontext()

    def close(self) -> None: ...


class Stage:
    """A supervisor whose children run the given scripts."""

    def __init__(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self.scripts = tmp_path / "scripts"
        self.scripts.mkdir()
        run_dir = tmp_path / "run"
        run_dir.mkdir()
        # The scripts keep notes in the folder of the run.
        Confinement(is_sandboxed=False).write(run_dir)
        monkeypatch.setenv("PYTHONPATH", str(self.scripts))
        monkeypatch.setattr(process_set, "MODULES", {CAPTURE: "fake_capture", JOB: "fake_job"})
        monkeypatch.setattr(recovery, "CAUSE_WAIT_S", 60.0)
        self.observer = _RunObserver()
        self.answers = _Answers()
        self.file = RunFile(RunRecord(run_dir, True, "run", os.getpid()))
        self.resume()

    def resume(self, patience: SilenceLimits = PATIENT) -> None:
        """Begin with what is in the run's folder."""
        self.supervisor = Supervisor(
            self.file,
            self.observer,
            time.monotonic(),
            patience,
            RestartPolicy(first_s=0.01, budget=3),
        )

    def start(self, capture: str, job: str = "", settings: CaptureSettings = SETTINGS) -> None:
        for name, text in (("fake_capture", capture), ("fake_job", job)):
            (self.scripts / f"{name}.py").write_text(HEAD + textwrap.dedent(text))
        if job:
            self.supervisor.start_job(JobSettings())
        self.supervisor.start_capture(PROGRAM, settings)

    def run(self) -> None:
        self.supervisor.run(cast("Delivery", self.answers), cast("Passthrough", _NoStreams()))


@pytest.fixture
def stage(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Stage]:
    made = Stage(tmp_path, monkeypatch)
    yield made
    made.supervisor.stop()
