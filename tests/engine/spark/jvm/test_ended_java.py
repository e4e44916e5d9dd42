"""Why Java ended before executors were ready, as its log tells."""

from __future__ import annotations

from types import SimpleNamespace
from typing import TYPE_CHECKING, cast

import pytest
from py4j.protocol import Py4JNetworkError

from gscope.engine.spark.cluster.master import Master
from gscope.engine.spark.jvm.ended_java import explained_end, why_java_ended
from gscope.errors import EngineError

if TYPE_CHECKING:
    from gscope.engine.spark.jvm.gateway import JvmProcess


@pytest.mark.parametrize(
    ("master", "log", "said"),
    [
        (
            "k8s://https://a:6443",
            "2026 ERROR ExecutorPodsLifecycleManager:"
            " Max number of executor failures (3) reached\n",
            "executors of k8s://https://a:6443 failed more than 3 times before one was ready;"
            " --spark-conf spark.kubernetes.executor.deleteOnTermination=false keeps their pods,"
            " whose logs say why",
        ),
        (
            "yarn",
            "a line\njava.lang.OutOfMemoryError: Java heap space\n\tat a.b(C.java:1)\n",
            "Java ended before an executor of yarn was ready: java.lang.OutOfMemoryError: Java heap"
            " space",
        ),
    ],
)
def test_a_java_that_ends_while_it_waits_is_explained(master: str, log: str, said: str) -> None:
    jvm = cast("JvmProcess", SimpleNamespace(log_since_start=lambda: log))
    assert why_java_ended(Master.parse(master), jvm) == said


@pytest.mark.parametrize(
    "error", [Py4JNetworkError("no answer"), ConnectionResetError(104, "reset")]
)
def test_a_lost_connection_to_java_becomes_one_sentence(error: Exception) -> None:
    jvm = cast("JvmProcess", SimpleNamespace(log_since_start=lambda: "Killed\n"))
    with (
        pytest.raises(EngineError, match="Java ended before an executor of yarn was ready: Killed"),
        explained_end(Master.parse("yarn"), jvm),
    ):
        raise error
