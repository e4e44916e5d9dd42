"""Children of the supervisor: their words, their last words, their signals."""

from __future__ import annotations

import queue
import signal
from typing import TYPE_CHECKING

import pytest
from tests.support.gscope_command import PATIENCE_S

from gscope.cli.events import JOB, ProcessExit
from gscope.cli.supervision.child_process import ChildProcess
from gscope.queries.streams.process_events import JobAlive, ProcessError

if TYPE_CHECKING:
    from pathlib import Path

    from gscope.cli.events import Event


class Child:
    def __init__(self, folder: Path, text: str) -> None:
        (folder / "fake_child.py").write_text(text)
        self.events: queue.SimpleQueue[Event] = queue.SimpleQueue()
        self.words: list[str] = []
        self.process = ChildProcess(
            JOB, "fake_child", folder, self.events, on_words=self.words.append
        )

    def wait(self) -> int:
        while not isinstance(event := self.events.get(timeout=PATIENCE_S).report, ProcessExit):
            pass
        return event.code


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    return tmp_path


def test_its_words_are_heard_before_its_end(folder: Path) -> None:
    child = Child(folder, "import sys\nprint('one\\n\\ntwo \\xff', file=sys.stderr)\n")
    assert child.wait() == 0
    assert child.words == ["one", "two ÿ"]
    assert child.process.last_words() == "two ÿ"
    child.process.stop()


def test_words_without_an_end_come_in_pieces(folder: Path) -> None:
    child = Child(folder, "import os\nos.write(2, b'x' * 10_000)\n")
    child.wait()
    assert [len(words) for words in child.words] == [4096, 4096, 10_000 - 2 * 4096]
    child.process.stop()


def test_asking_for_counters_does_not_end_it(folder: Path) -> None:
    emit = 'import json, signal, sys\nprint(json.dumps({"event": "alive"}), flush=True)\n'
    child = Child(folder, emit + "sys.stdin.read()\nprint('done', file=sys.stderr)\n")
    assert child.events.get(timeout=PATIENCE_S).report == JobAlive()
    child.process.signal(signal.SIGUSR1)
    child.process._pipe.close()
    assert child.wait() == 0
    assert child.words == ["done"]


def test_it_has_no_capability_whatever_the_supervisor_has(folder: Path) -> None:
    child = Child(
        folder,
        "import sys\nfrom gscope.capture.process.confinement.privileges import capabilities\n"
        "print(sys.argv[1:], set(capabilities().values()), file=sys.stderr)\n",
    )
    assert child.wait() == 0
    assert child.words == [f"{[str(folder)]} {{0}}"]
    child.process.stop()


def test_a_damaged_event_is_an_error_of_its_process(folder: Path) -> None:
    child = Child(
        folder, """print('warning\\n{"event": "news"}\\n{"event": "java", "pid": "7"}')"""
    )
    error = ProcessError("invalid event 'java': invalid field 'pid': expected int, got '7'", True)
    assert child.events.get(timeout=PATIENCE_S).report == error
    assert child.wait() == 0
    child.process.stop()
