"""Files of lookups that change while a job runs: each step has one version of each."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import pytest

from gscope.engine.spark.sql.lookups import Lookups
from gscope.errors import EngineError
from gscope.queries.plan.program import Program

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import SparkSession

pytestmark = pytest.mark.spark

ROWS = "VALUES (X'00000000000000000000FFFF0A000001'), (NULL), (X'0000000000000000000000000000000A')"
QUERY = f"SELECT gscope_network_ip(a) AS n FROM {ROWS} AS t(a)"


def program(path: Path) -> Program:
    return Program((), (), (), (), (), lookups=(("networks", str(path)),))


def write(path: Path, text: str) -> None:
    """A file of its own, put in place as a whole."""
    fresh = path.with_suffix(".new")
    fresh.write_bytes(text.encode())
    os.replace(fresh, path)  # noqa: PTH105  # atomic on every system


def answer(spark: SparkSession) -> list[str | None]:
    return [row.n for row in spark.sql(QUERY).collect()]


def test_a_file_that_changes_is_read_again_unless_it_is_invalid(
    spark: SparkSession, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    path = tmp_path / "networks.csv"
    write(path, "10.0.0.0/8,ten\n")
    lookups = Lookups(spark, program(path))
    assert answer(spark) == ["ten", None, None]
    planned = spark.sql(QUERY)
    write(path, "10.0.0.0/8,TEN\n::a,a\n::/8,low\n")
    assert answer(spark) == ["ten", None, None]
    lookups.refresh()
    assert answer(spark) == ["TEN", None, "a"]
    assert [row.n for row in planned.collect()] == ["ten", None, None]
    write(path, "10.0.0.0/8,ten\n::a/129,a\n")
    lookups.refresh()
    assert answer(spark) == ["TEN", None, "a"]
    assert "lookup networks unchanged: " in caplog.text
    assert "networks.csv:2: invalid network '::a/129'" in caplog.text
    path.unlink()
    lookups.refresh()
    assert answer(spark) == ["TEN", None, "a"]
    write(path, "")
    lookups.refresh()
    assert answer(spark) == [None, None, None]


def test_a_job_does_not_begin_without_its_file(spark: SparkSession, tmp_path: Path) -> None:
    with pytest.raises(EngineError, match=r"cannot read networks from .*: no such file"):
        Lookups(spark, program(tmp_path / "absent.csv"))
