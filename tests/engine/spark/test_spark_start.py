"""Spark of a job: it starts when it is needed, once, and ends whenever the job does."""

from __future__ import annotations

import io
import json
import os
import signal
import threading
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, cast

import pytest
from pyspark import java_gateway
from tests.support.gscope_command import PATIENCE_S, is_alive, wait_for

from gscope.engine.monitoring.step_progress import StepWatch
from gscope.engine.settings import JobSettings
from gscope.engine.spark.jvm import job_pulse
from gscope.engine.spark.jvm import session as spark_session
from gscope.engine.spark.spark_start import SparkStart
from gscope.engine.spark.tasks.here import TasksHere
from gscope.errors import EngineError
from gscope.queries.run_folder.layout import JOB_FOLDER
from gscope.queries.streams.event_codec import EventWriter

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from tests.support.shared_spark import SharedSpark

    from gscope.engine.termination import Termination


@dataclass
class Ending:
    """A termination that notes when the process would leave."""

    codes: list[int] = field(default_factory=list)
    has_left: threading.Event = field(default_factory=threading.Event)
    lock: threading.Lock = field(default_factory=threading.Lock)

    def opening(self) -> threading.Lock:
        return self.lock

    def close_first(self, close: Callable[[], object]) -> None:
        pass

    def leave(self, code: int) -> None:
        self.codes.append(code)
        self.has_left.set()


class Stage:
    def __init__(self, folder: Path, settings: JobSettings) -> None:
        (folder / JOB_FOLDER).mkdir()
        self.out = io.StringIO()
        self.ending = Ending()
        self.watch = StepWatch()
        self.spark = SparkStart(
            folder,
            settings,
            EventWriter(self.out),
            cast("Termination", self.ending),
            self.watch,
            TasksHere(3),
        )

    @property
    def reported(self) -> list[dict[str, Any]]:
        return [json.loads(line) for line in self.out.getvalue().splitlines()]

    def kinds(self) -> list[str]:
        return [each["event"] for each in self.reported if each["event"] != "alive"]


SMALL = JobSettings(cores=1, heap_bytes=512 << 20)


def test_the_settings_say_which_runs_may_do_without_spark() -> None:
    small = 1 << 20
    for size in (small, 15 << 30):
        assert JobSettings(expected_bytes=size).starts_spark_when_needed
    others = (
        JobSettings(),
        JobSettings(expected_bytes=17 << 30),
        JobSettings(expected_bytes=small, is_live=True),
        JobSettings(expected_bytes=small, master="local[2]"),
        JobSettings(expected_bytes=small, spark_conf={"spark.eventLog.enabled": "false"}),
    )
    assert not any(each.starts_spark_when_needed for each in others)
    assert [each.leaves_all_to_spark for each in others] == [False, False, False, True, True]


def test_signs_of_life_come_without_java(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(job_pulse, "PERIOD_S", 0.01)
    stage = Stage(tmp_path, SMALL)
    with stage.spark as spark:
        assert not spark.is_ready
        assert (spark.cores, spark.java_pid) == (3, None)
        wait_for(lambda: len(stage.reported) > 2, "signs of life")
        stage.watch.begin(4)
        wait_for(lambda: any("step" in each for each in stage.reported), "the current step")
    assert stage.kinds() == []
    step = next(each for each in stage.reported if "step" in each)
    assert step["step"] == 4
    assert "awaits_spark" not in step


def test_a_java_that_cannot_be_started_is_an_error_of_who_needs_it(tmp_path: Path) -> None:
    stage = Stage(tmp_path, JobSettings(heap_bytes=1 << 20))
    with stage.spark as spark, pytest.raises(EngineError, match="too small for Spark"):
        _ = spark.session


@pytest.mark.spark
@pytest.mark.own_session
@pytest.mark.slow
class TestWithJava:
    @pytest.fixture(autouse=True)
    def no_other_session(self, shared_spark: SharedSpark) -> None:
        shared_spark.release()

    def test_all_threads_get_the_session_of_one_java(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(job_pulse, "PERIOD_S", 0.01)
        stage = Stage(tmp_path, SMALL)
        with stage.spark as spark:
            with ThreadPoolExecutor(4) as pool:
                sessions = list(pool.map(lambda _: spark.session, range(4)))
            assert {id(each) for each in sessions} == {id(spark.session)}
            assert spark.is_ready
            assert spark.cores == 1
            assert sessions[0].range(10).count() == 10
            pid = spark.java_pid
            assert pid is not None
            assert is_alive(pid)
        wait_for(lambda: not is_alive(pid), "the end of Java")
        assert stage.kinds() == ["java", "java", "spark"]
        assert any(each.get("awaits_spark") for each in stage.reported)
        assert list(spark.phases) == ["jvm_launched", "session"]
        assert stage.ending.codes == []

    def test_a_job_that_ends_meanwhile_ends_java(self, tmp_path: Path) -> None:
        stage = Stage(tmp_path, SMALL)
        with stage.spark as spark:
            spark.start()
            pid = spark.java_pid
            assert pid is not None
        wait_for(lambda: not is_alive(pid), "the end of Java")
        assert spark._thread is not None
        spark._thread.join(PATIENCE_S)
        assert not spark._thread.is_alive()
        assert stage.kinds() == ["java"]
        assert stage.ending.codes == []

    def test_a_session_that_cannot_be_opened_ends_the_process(self, tmp_path: Path) -> None:
        settings = JobSettings(cores=1, spark_conf={"spark.serializer": "no.such.Serializer"})
        stage = Stage(tmp_path, settings)
        with stage.spark as spark:
            spark.start()
            assert stage.ending.has_left.wait(PATIENCE_S)
            pid = spark.java_pid
            assert pid is not None
            wait_for(lambda: not is_alive(pid), "the end of Java")
        assert stage.ending.codes == [1]
        (error,) = [each for each in stage.reported if each["event"] == "error"]
        assert "the Spark session could not be opened" in error["message"]
        assert "no.such.Serializer" in error["message"]

    def test_the_death_of_java_ends_the_process(self, tmp_path: Path) -> None:
        stage = Stage(tmp_path, SMALL)
        with suppress(Exception), stage.spark as spark:
            _ = spark.session
            assert spark._jvm is not None
            spark._jvm.stop()
            assert stage.ending.has_left.wait(PATIENCE_S)
        assert stage.ending.codes == [1]
        assert "failed" in stage.kinds()

    @pytest.mark.parametrize("place", ["start", "connection", "session"])
    def test_a_java_that_is_killed_while_it_starts_is_reported_with_the_signal(
        self, tmp_path: Path, place: str, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        stage = Stage(tmp_path, SMALL)

        def kill() -> None:
            pid = stage.spark.java_pid
            assert pid is not None
            os.kill(pid, signal.SIGKILL)

        if place != "start":
            owner, name = {
                "connection": (java_gateway, "launch_gateway"),
                "session": (spark_session, "_log_in"),
            }[place]
            original = getattr(owner, name)

            def killed_before(*arguments: Any) -> Any:
                kill()
                return original(*arguments)

            monkeypatch.setattr(owner, name, killed_before)
        with suppress(Exception), stage.spark as spark:
            spark.start()
            if place == "start":
                kill()
            assert stage.ending.has_left.wait(PATIENCE_S)
        assert stage.ending.codes == [1]
        said = [each for each in stage.reported if each["event"] in ("error", "failed")]
        assert ["signal SIGKILL" in json.dumps(each) for each in said] == [True]
