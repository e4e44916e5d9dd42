"""Spark's configuration on each kind of master, and what users may not set."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from gscope.engine.spark.cluster.master import Master
from gscope.engine.spark.cluster.refused import REFUSED, refusal
from gscope.engine.spark.cluster.settings import ClusterSettings
from gscope.engine.spark.jvm import session
from gscope.errors import UsageError

HOME = Path("/somewhere/pyspark")


def configured(master: str, **settings: object) -> dict[str, str]:
    return ClusterSettings(Master.parse(master), **settings).configuration(HOME)  # type: ignore[arg-type]


def test_a_standalone_cluster_gets_the_secret_and_an_address() -> None:
    found = configured("spark://127.0.0.1:7077", secret="s" * 32)
    assert found["spark.authenticate.secret"] == "s" * 32
    assert found["spark.network.crypto.enabled"] == "true"
    assert found["spark.driver.host"] == found["spark.driver.bindAddress"] == "127.0.0.1"
    found = configured("spark://127.0.0.1:7077", driver_host="probe7")
    assert (found["spark.driver.host"], found["spark.driver.bindAddress"]) == ("probe7", "0.0.0.0")


def test_yarn_gets_what_spark_submit_would_set_and_needs_an_address() -> None:
    conf = {"spark.archives": "hdfs:///env.tar.gz#env", "spark.executor.instances": "4"}
    found = configured("yarn", driver_host="edge1", conf=conf)
    assert found["spark.master"] == "yarn"
    assert found["spark.yarn.isPython"] == "true"
    assert found["spark.executor.failuresValidityInterval"] == "10min"
    assert found["spark.yarn.jars"] == "file:///somewhere/pyspark/jars/*.jar"
    assert found["spark.yarn.dist.archives"] == "hdfs:///env.tar.gz#env"
    assert found["spark.executor.instances"] == "4"
    assert "spark.authenticate.secret" not in found, "Spark makes one for each application"
    with pytest.raises(UsageError, match=r"name it with spark\.driver_host"):
        configured("yarn")


def test_kubernetes_gets_the_image_of_the_user() -> None:
    conf = {"spark.kubernetes.container.image": "example/gscope:1"}
    found = configured("k8s://https://api:6443", driver_host="10.0.0.7", conf=conf)
    assert found["spark.master"] == "k8s://https://api:6443"
    assert found["spark.kubernetes.container.image"] == "example/gscope:1"
    assert "spark.authenticate.secret" not in found


@pytest.mark.parametrize(
    ("master", "settings", "python"),
    [
        ("spark://a:1", {}, sys.executable),
        ("yarn", {}, sys.executable),
        ("k8s://a", {}, "python3"),
        ("yarn", {"conf": {"spark.archives": "env.tar.gz#env"}}, "./env/bin/python"),
        ("yarn", {"conf": {"spark.archives": "e.tgz#env"}, "python": "/py"}, "/py"),
        ("spark://a:1", {"conf": {"spark.archives": "env.tar.gz"}}, sys.executable),
    ],
)
def test_executors_have_the_python_of_their_environment(
    master: str, settings: dict[str, object], python: str
) -> None:
    chosen = ClusterSettings(Master.parse(master), **settings)  # type: ignore[arg-type]
    assert chosen.executor_python == python


def test_users_cannot_set_what_every_session_has() -> None:
    free = {"spark.ui.enabled", "spark.driver.bindAddress"}
    own = {*session._FIXED_CONFIGURATION, *session.INTERPRETED, *REFUSED} - free
    assert [name for name in own if refusal(name) is None] == []
    # Whatever changes the meaning of SQL, also in a later Spark.
    assert refusal("spark.sql.something.new") is not None
    assert refusal("hadoop.fs.defaultFS") == "names of Spark's settings begin with spark."


@pytest.mark.parametrize(
    "name",
    [
        "spark.executor.memory",
        "spark.executor.cores",
        "spark.cores.max",
        "spark.task.maxFailures",
        "spark.kubernetes.container.image",
        "spark.yarn.queue",
        "spark.hadoop.fs.s3a.endpoint",
        "spark.sql.shuffle.partitions",
        "spark.ui.enabled",
        "spark.archives",
        "spark.driver.port",
    ],
)
def test_users_can_set_the_rest(name: str) -> None:
    assert refusal(name) is None
