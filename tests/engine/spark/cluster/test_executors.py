"""Executors that are missing, and what is said of those that cannot run the job's tasks."""

from __future__ import annotations

from types import SimpleNamespace
from typing import TYPE_CHECKING, cast

import pytest

from gscope.engine.spark.cluster import executors as module
from gscope.engine.spark.cluster.executors import ExecutorWatch, await_executors, executors_of
from gscope.engine.spark.cluster.master import Master
from gscope.engine.spark.cluster.settings import ClusterSettings
from gscope.errors import EngineError

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

SETTINGS = ClusterSettings(Master.parse("spark://a:7077"), python="/opt/py/bin/python")


class FakeCluster:
    """A session whose status store lists these executors."""

    def __init__(self, *names: str) -> None:
        self.names = ["driver", *names]

    @property
    def session(self) -> SparkSession:
        def listed(is_active: bool) -> SimpleNamespace:
            assert is_active
            found = [SimpleNamespace(id=lambda name=name: name) for name in self.names]
            return SimpleNamespace(size=lambda: len(found), apply=found.__getitem__)

        store = SimpleNamespace(executorList=listed)
        scala = SimpleNamespace(statusStore=lambda: store)
        context = SimpleNamespace(
            _jsc=SimpleNamespace(sc=lambda: scala),
            master="spark://a:7077",
            defaultParallelism=4,
            getConf=lambda: {"spark.driver.host": "10.0.0.9"},
        )
        return cast("SparkSession", SimpleNamespace(sparkContext=context))


def test_the_driver_is_no_executor() -> None:
    assert executors_of(FakeCluster().session) == []
    assert executors_of(FakeCluster("0", "1").session) == ["0", "1"]
    assert await_executors(FakeCluster("0").session) == 4


def test_a_cluster_without_executors_is_an_error_in_bounded_time() -> None:
    with pytest.raises(
        EngineError, match=r"no executor of spark://a:7077 started within 0\.1 s"
    ) as e:
        await_executors(FakeCluster().session, 0.1)
    assert "spark.executor.memory" in str(e.value)
    assert "10.0.0.9" in str(e.value)


def test_a_cluster_that_has_lost_its_executors_fails_the_job_after_a_while() -> None:
    now_s = 0.0
    cluster = FakeCluster("0")
    watch = ExecutorWatch(cluster.session, 100.0, lambda: now_s)
    assert watch.failure() is None
    cluster.names = ["driver"]
    now_s = 1000.0
    assert watch.failure() is None, "the loss is seen now"
    now_s = 1099.0
    assert watch.failure() is None
    cluster.names = ["driver", "1"]
    assert watch.failure() is None
    cluster.names = ["driver"]
    now_s = 1150.0
    assert watch.failure() is None, "another loss"
    now_s = 1250.0
    assert watch.failure() == "spark://a:7077 has had no executor for 100 s"


@pytest.mark.parametrize(
    ("trace", "said"),
    [
        (
            "Job aborted due to stage failure: Task 0 in stage 0.0 failed 4 times, most recent"
            " failure: Lost task 0.3 in stage 0.0 (TID 6) (10.0.0.7 executor 0):"
            ' java.io.IOException: Cannot run program "/no/python": error=2,'
            " No such file or directory"
            "\n\tat java.base/java.lang.ProcessBuilder.start(ProcessBuilder.java:1143)",
            "executors cannot run the Python /no/python (no such file or directory); install",
        ),
        (
            "org.apache.spark.SparkException: \n"
            "Error from python worker:\n  /usr/bin/python3: Error"
            " while finding module specification for 'gscope.engine.spark.jvm.worker_daemon'"
            " (ModuleNotFoundError: No module named 'gscope')\nPYTHONPATH was:\n",
            "the Python /opt/py/bin/python of the executors has no gscope; install",
        ),
        (
            "pyspark.errors.exceptions.base.PySparkRuntimeError: [PYTHON_VERSION_MISMATCH] Python"
            " in worker has different version: 3.13 than that in driver: 3.11",
            "the Python /opt/py/bin/python of the executors is not Python 3.",
        ),
        (
            "\nsomething else\nand more",
            "the executors of spark://a:7077 cannot run Python tasks: something else",
        ),
    ],
)
def test_what_spark_reports_of_a_task_becomes_one_sentence(trace: str, said: str) -> None:
    found = module._explained(trace, SETTINGS)
    assert found.startswith(said)
    assert "\n" not in found
