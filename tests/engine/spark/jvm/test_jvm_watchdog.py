"""Signs of life of the HFTA job: its Java answers, or is gone, or hangs."""

from __future__ import annotations

import io
import json
import subprocess
import threading
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, cast

import pytest
from tests.support.gscope_command import PATIENCE_S, wait_for

from gscope.engine.monitoring.step_progress import StepWatch
from gscope.engine.spark.jvm import ended_java, jvm_log
from gscope.engine.spark.jvm import jvm_watchdog as module
from gscope.engine.spark.jvm.jvm_watchdog import JvmWatchdog, ended_tasks
from gscope.errors import EngineError, JavaGoneError, JavaMemoryError
from gscope.queries.streams.event_codec import EventWriter

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from pyspark.sql import SparkSession

    from gscope.engine.spark.cluster.executors import ExecutorWatch
    from gscope.engine.spark.jvm.gateway import JvmProcess


class FakeJava:
    """A process that is asked for the time by ``answer``."""

    def __init__(self, answer: Callable[[], object], log: Path) -> None:
        self.log = log
        self.settings = SimpleNamespace(heap_bytes=640 << 20)
        # It ends with the code that it reads.
        self._process = subprocess.Popen(
            ["sh", "-c", "read code; exit $code"], stdin=subprocess.PIPE
        )
        self.pid = self._process.pid
        system = SimpleNamespace(nanoTime=answer)
        self.session = SimpleNamespace(
            _jvm=SimpleNamespace(java=SimpleNamespace(lang=SimpleNamespace(System=system)))
        )

    def wait(self, timeout_s: float) -> int | None:
        try:
            return self._process.wait(timeout_s)
        except subprocess.TimeoutExpired:
            return None

    def kill(self) -> None:
        self._process.kill()
        self._process.communicate()

    def exit(self, code: int) -> None:
        self._process.communicate(b"%d\n" % code)


class Stage:
    def __init__(self, folder: Path) -> None:
        self.out = io.StringIO()
        self.codes: list[int] = []
        self.has_ended = threading.Event()
        self.can_answer = threading.Event()
        self.can_answer.set()
        self.asked = threading.Event()
        self.watch = StepWatch()
        self.java = FakeJava(self._answer, folder / "jvm.log")
        self.watchdog = JvmWatchdog(
            cast("JvmProcess", self.java),
            cast("SparkSession", self.java.session),
            EventWriter(self.out),
            self.watch,
            self._end,
        )

    def _answer(self) -> int:
        self.asked.set()
        self.can_answer.wait(PATIENCE_S)
        return 1

    def _end(self, code: int) -> None:
        self.codes.append(code)
        self.has_ended.set()

    @property
    def reported(self) -> list[dict[str, Any]]:
        return [json.loads(line) for line in self.out.getvalue().splitlines()]


@pytest.fixture
def stage(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Stage]:
    monkeypatch.setattr(module, "PERIOD_S", 0.01)
    made = Stage(tmp_path)
    yield made
    made.can_answer.set()
    made.java.kill()


def test_it_reports_while_java_answers(stage: Stage) -> None:
    with stage.watchdog:
        while len(stage.reported) < 3:
            stage.asked.wait(1)
    assert {event["event"] for event in stage.reported} == {"alive"}
    assert stage.codes == []


def test_it_reports_how_the_current_step_stands(
    stage: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "ended_tasks", lambda _session: 3)
    looked = threading.Event()
    stage.watch.on_look = lambda _step: looked.set()
    stage.watch.begin(7)
    with stage.watchdog:
        assert looked.wait(PATIENCE_S)
    step = next(event for event in stage.reported if "step" in event)
    assert (step["event"], step["step"]) == ("alive", 7)
    assert 0 <= step["still_s"] <= step["step_s"]


def test_it_reports_java_also_where_tasks_cannot_be_counted(stage: Stage) -> None:
    stage.watch.begin(7)
    with stage.watchdog:
        while not stage.reported:
            stage.asked.wait(1)
    assert stage.reported[0] == {"event": "alive"}


def test_the_log_of_java_is_bounded_meanwhile(
    stage: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(jvm_log, "MAX_FILE_BYTES", 10)
    stage.java.log.write_text("a long complaint")
    with stage.watchdog:
        while len(stage.reported) < 1:
            stage.asked.wait(1)
    assert stage.java.log.read_text() == ""


def test_it_reports_nothing_while_java_hangs(stage: Stage) -> None:
    stage.can_answer.clear()
    with stage.watchdog:
        assert stage.asked.wait(PATIENCE_S)
        assert stage.reported == []
        stage.can_answer.set()


def test_the_end_of_java_ends_the_job(stage: Stage) -> None:
    with stage.watchdog:
        stage.java.kill()
        assert stage.has_ended.wait(PATIENCE_S)
        assert stage.codes == [1]
    assert stage.reported[-1] == {
        "event": "failed",
        "message": "Spark's Java ended with signal SIGKILL",
    }


def test_a_cluster_without_executors_ends_the_job(stage: Stage) -> None:
    answers: list[str | None] = [None, "spark://a:7077 has had no executor for 120 s"]
    watch = SimpleNamespace(failure=lambda: answers.pop(0) if answers else None)
    stage.watchdog._executors = cast("ExecutorWatch", watch)
    with stage.watchdog:
        assert stage.has_ended.wait(PATIENCE_S)
    assert stage.codes == [1]
    failed = [event for event in stage.reported if event["event"] == "failed"]
    message = "spark://a:7077 has had no executor for 120 s"
    assert failed == [{"event": "failed", "message": message}]


def test_the_end_of_java_for_lack_of_memory_is_reported_as_that(stage: Stage) -> None:
    with stage.watchdog:
        stage.java.exit(52)
        assert stage.has_ended.wait(PATIENCE_S)
    message = "Spark's Java ran out of memory (heap: 640 MB)"
    assert stage.reported[-1] == {"event": "failed", "message": message, "out_of_memory": True}


@pytest.mark.parametrize(
    ("raised", "reported"), [(RuntimeError, JavaMemoryError), (EngineError, EngineError)]
)
def test_a_step_that_fails_for_lack_of_memory_is_reported_as_that(
    raised: type[Exception],
    reported: type[Exception],
    stage: Stage,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(ended_java, "_DEATH_WAIT_S", 0.01)
    text = "org.apache.spark.memory.SparkOutOfMemoryError: [UNABLE_TO_ACQUIRE_MEMORY] 16777216"
    with pytest.raises(reported) as caught, stage.watchdog:
        raise raised(text)
    assert type(caught.value) is reported


def test_what_spark_raises_when_its_java_is_gone_is_reported_as_that(stage: Stage) -> None:
    stage.java.kill()
    with pytest.raises(JavaGoneError, match="SIGKILL"), stage.watchdog:
        raise ConnectionResetError


def test_other_errors_stay_what_they_are(stage: Stage, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ended_java, "_DEATH_WAIT_S", 0.01)
    with pytest.raises(KeyError, match="another"), stage.watchdog:
        raise KeyError("another")  # noqa: EM101  # no sentence


@pytest.mark.spark
def test_each_task_that_ends_is_counted(spark: SparkSession) -> None:
    before = ended_tasks(spark)
    spark.range(0, 100, 1, 5).write.format("noop").mode("overwrite").save()
    wait_for(lambda: ended_tasks(spark) >= before + 5, "the end of five tasks")
