"""Joins with watchlists as Spark runs them, and files that change while a job runs."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import pytest

from gscope.engine.spark.sql import watchlist_join
from gscope.engine.spark.sql.inputs import Sources
from gscope.engine.spark.sql.watchlists import Watchlists
from gscope.errors import EngineError
from gscope.queries.compile import CompileContext, QueryText, compile_queries
from gscope.queries.plan.program import Program, WatchlistJoinNode

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import SparkSession

pytestmark = pytest.mark.spark

QUERY = """
DEFINE { query_name 'bad'; filename 'bad.csv'; } WATCHLIST FIELDS { IP addr; uint score; string why };
Query q: SELECT time, why, len - score as over FROM TCP, bad WHERE srcIP = addr and len > score
"""  # noqa: E501
ROWS = (
    "(SELECT * FROM VALUES (1L, 100L, X'00000000000000000000FFFF0A000001'),"
    " (2L, 5L, X'00000000000000000000FFFF0A000001'),"
    " (3L, 100L, X'00000000000000000000FFFF0A000002') AS t(time, len, srcIP))"
)


def compiled(folder: Path) -> Program:
    text = QueryText(QUERY, str(folder / "q.gsql"))
    return compile_queries([text], CompileContext(("m",))).program


def answer(spark: SparkSession, program: Program) -> list[tuple[object, ...]]:
    (node,) = program.nodes
    assert isinstance(node, WatchlistJoinNode)
    return sorted(
        tuple(row) for row in spark.sql(watchlist_join.lower(node, Sources((ROWS,)))).collect()
    )


def write(path: Path, text: str) -> None:
    """A file of its own, put in place as a whole."""
    fresh = path.with_suffix(".new")
    fresh.write_bytes(text.encode())
    os.replace(fresh, path)  # noqa: PTH105  # atomic on every system


def test_every_row_of_the_table_that_fits_gives_one(spark: SparkSession, tmp_path: Path) -> None:
    program = compiled(tmp_path)
    write(tmp_path / "bad.csv", "10.0.0.1,10,ä\n10.0.0.1,90,b\n10.0.0.3,1,c\n,1,d\n")
    Watchlists(spark, program)
    assert answer(spark, program) == [(1, "b", 10), (1, "Ã¤", 90)]


def test_a_file_that_changes_is_read_again_unless_it_is_wrong(
    spark: SparkSession, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    program = compiled(tmp_path)
    path = tmp_path / "bad.csv"
    write(path, "10.0.0.2,1,a\n")
    watchlists = Watchlists(spark, program)
    assert answer(spark, program) == [(3, "a", 99)]
    write(path, "10.0.0.1,1,b\n")
    watchlists.refresh()
    assert answer(spark, program) == [(1, "b", 99), (2, "b", 4)]
    write(path, "10.0.0.1,much,c\n")
    watchlists.refresh()
    assert answer(spark, program) == [(1, "b", 99), (2, "b", 4)]
    assert "invalid INT: 'much'" in caplog.text
    path.unlink()
    watchlists.refresh()
    write(path, "")
    watchlists.refresh()
    assert answer(spark, program) == []


def test_a_job_does_not_begin_without_its_table(spark: SparkSession, tmp_path: Path) -> None:
    with pytest.raises(EngineError, match="cannot read"):
        Watchlists(spark, compiled(tmp_path))
