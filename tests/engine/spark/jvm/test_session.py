"""One JVM for the whole file: session, answer, quiet, end."""

from __future__ import annotations

import importlib
import json
import os
import signal
import sys
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.parquet as pq
import pyspark
import pytest
from tests.support.shared_spark import archived

from gscope.engine.spark.jvm.gateway import launch_jvm
from gscope.engine.spark.jvm.java import find_java
from gscope.engine.spark.jvm.jvm_settings import JvmSettings
from gscope.engine.spark.jvm.session import SessionSettings, start_session, stop_session
from gscope.errors import EngineError

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from pyspark.sql import SparkSession
    from tests.support.shared_spark import SharedSpark

    from gscope.engine.spark.jvm.gateway import JvmProcess

pytestmark = [pytest.mark.spark, pytest.mark.own_session]


@pytest.fixture(scope="module")
def jvm(
    tmp_path_factory: pytest.TempPathFactory, shared_spark: SharedSpark
) -> Iterator[JvmProcess]:
    shared_spark.release()
    settings = archived(JvmSettings(find_java(), heap_bytes=1 << 30))
    here = tmp_path_factory.mktemp("here")
    (here / "json.py").write_text("raise SystemExit('imported from the working directory')\n")
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(here)
        started = launch_jvm(settings, tmp_path_factory.mktemp("run"))
    with started as process:
        yield process


@pytest.fixture(scope="module")
def session(jvm: JvmProcess) -> Iterator[SparkSession]:
    handler = signal.getsignal(signal.SIGINT)
    opened = start_session(jvm, SessionSettings(cores=2))
    assert signal.getsignal(signal.SIGINT) is handler
    yield opened
    stop_session(opened, jvm)
    assert jvm.wait() is not None
    assert not jvm.directory.exists()


def test_a_parquet_file_is_grouped_and_comes_back_as_arrow(
    session: SparkSession, tmp_path: Path
) -> None:
    path = tmp_path / "rows.parquet"
    table = pa.table(
        {
            "port": pa.array([i % 3 for i in range(9)], pa.int32()),
            "addr": pa.array([bytes([i % 3] * 16) for i in range(9)], pa.binary(16)),
            "cnt": pa.array(range(9), pa.int64()),
        }
    )
    pq.write_table(table, path)
    rows = session.read.schema("port INT, addr BINARY, cnt BIGINT").parquet(str(path))
    answer = rows.groupBy("port", "addr").agg({"cnt": "sum"}).toArrow()
    expected = [(i, bytes([i] * 16), 9 + 3 * i) for i in range(3)]
    assert sorted(tuple(row.values()) for row in answer.to_pylist()) == expected


def test_names_may_differ_in_case_alone(session: SparkSession) -> None:
    (row,) = session.sql("SELECT t, T FROM (SELECT 1 AS t, 2 AS T)").collect()
    assert tuple(row) == (1, 2)


def test_tasks_import_the_installed_pyspark_and_nothing_from_the_working_directory(
    session: SparkSession,
) -> None:
    def imported(name: str) -> str:
        return str(importlib.import_module(name).__file__)

    files = session.sparkContext.parallelize(["pyspark", "json"], 1).map(imported).collect()
    assert files == [pyspark.__file__, json.__file__]


def test_the_configuration_is_the_designed_one(session: SparkSession, jvm: JvmProcess) -> None:
    conf = session.sparkContext.getConf()
    assert conf.get("spark.master") == "local[2]"
    assert conf.get("spark.local.dir") == str(jvm.directory / "local")
    assert session.conf.get("spark.sql.session.timeZone") == "UTC"
    assert session.conf.get("spark.sql.ansi.enabled") == "false"
    assert session.sparkContext.pythonExec == sys.executable
    assert session.sparkContext.uiWebUrl is None


def test_the_secret_of_the_gateway_is_not_left_in_the_environment(session: SparkSession) -> None:
    assert not [key for key in os.environ if key.startswith("PYSPARK_GATEWAY")]


def test_a_second_session_is_refused(session: SparkSession, jvm: JvmProcess) -> None:
    with pytest.raises(EngineError, match="open already"):
        start_session(jvm)


def test_nothing_is_written_to_the_terminal(
    session: SparkSession, capfd: pytest.CaptureFixture[str]
) -> None:
    session.range(3).count()
    assert capfd.readouterr() == ("", "")
