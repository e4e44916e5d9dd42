"""ORDER BY and LIMIT: the first rows of each epoch, whatever computes them.

The oracles are Python's sort and DuckDB over the answers of the same queries without LIMIT. They
are compared row by row: the order is total.
"""

from __future__ import annotations

from dataclasses import replace
from ipaddress import ip_address
from itertools import groupby
from typing import TYPE_CHECKING, Any

import duckdb
import pyarrow as pa
import pytest
from tests.golden.driver import CRASHING, INTERPRETED, answer

from gscope.capture.sources.synthetic import source as synthetic
from gscope.engine.spark import evaluation, task_planner
from gscope.queries.compile import CompileContext, QueryText, compile_queries
from gscope.queries.plan.program import TopNode

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from pathlib import Path

    from pyspark.sql import SparkSession
    from tests.golden.driver import Row

    from gscope.queries.plan.program import Program

LINKS = ("one", "two")
_PAIRS = "FROM IP GROUP BY time/5 AS tb, srcIP, destIP"
_PORTS = "FROM IP GROUP BY time/5 AS tb, protocol, srcPort"
_RUNNING = """SELECT tb, srcIP, running_sum(len) AS total FROM TCP
GROUP BY time/5 AS tb, srcIP CLOSING_WHEN count(*) = 0"""
TEXTS = {
    "pairs": f"SELECT tb, srcIP, destIP, count(*) AS n, avg(len) AS mean {_PAIRS}",
    "top_pairs": f"SELECT tb, srcIP, destIP, count(*) AS n, avg(len) AS mean {_PAIRS} "
    "ORDER BY n DESC, mean LIMIT 3",
    "hidden": f"SELECT destIP, tb {_PAIRS} ORDER BY avg(len) DESC, srcIP DESC LIMIT 2",
    "no_epoch": f"SELECT srcIP, destIP {_PAIRS} ORDER BY count(*), avg(len) DESC LIMIT 2",
    "alone": f"SELECT tb, srcIP, destIP, count(*) AS n, avg(len) AS mean {_PAIRS} LIMIT 2",
    "sum_of_top": "SELECT tb, sum(n) AS n, count(*) AS rows_of FROM top_pairs GROUP BY tb",
    "ports": f"SELECT tb, protocol, srcPort, sum(len) AS bytes, stddev(len) AS spread {_PORTS}",
    "top_ports": f"SELECT tb, protocol, srcPort, sum(len) AS bytes, stddev(len) AS spread {_PORTS}"
    " ORDER BY spread DESC NULLS FIRST, srcPort DESC LIMIT 4",
    "hosts": "SELECT srcIP, count(*) AS n FROM IP GROUP BY srcIP",
    "top_hosts": "SELECT srcIP, count(*) AS n FROM IP GROUP BY srcIP ORDER BY 2 DESC LIMIT 5",
    "running": _RUNNING,
    "top_running": f"{_RUNNING} ORDER BY total DESC LIMIT 2",
    "distinct_ports": "SELECT DISTINCT time/5 AS tb, destPort FROM TCP",
    "top_distinct": "SELECT DISTINCT time/5 AS tb, destPort"
    " FROM TCP ORDER BY destPort DESC LIMIT 3",
    "packets": "SELECT time, len, srcPort, destPort FROM TCP",
    "longest": "SELECT time, len, srcPort, destPort FROM TCP ORDER BY len DESC, destPort LIMIT 9",
    "of_longest": "SELECT count(*) AS n, sum(srcPort) AS ports, sum(destPort) AS others "
    "FROM (SELECT len, srcPort, destPort FROM TCP ORDER BY len DESC, destPort LIMIT 9) AS x",
}


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> dict[str, list[Path]]:
    folder = tmp_path_factory.mktemp("top")
    found = {}
    for seed, link in enumerate(LINKS):
        found[link] = [folder / f"{link}.pcap"]
        profile = synthetic.TrafficProfile(seed=seed, packets_per_second=50.0, flows=60)
        synthetic.write_pcap(profile, found[link][0], 1000)
    return found


def program(*, is_resumable: bool = False) -> Program:
    texts = [f"DEFINE {{ query_name '{n}'; }} {text}" for n, text in TEXTS.items()]
    context = CompileContext(LINKS, only=tuple(TEXTS), is_resumable=is_resumable)
    return compile_queries([QueryText(";\n".join(texts), "top")], context).program


def firsts(
    rows: Iterable[Row], limit: int, key: Callable[[Row], Any], epoch: Callable[[Row], Any]
) -> list[Row]:
    """The first rows of each epoch, by Python's sort; epochs ascend."""
    ordered = sorted(rows, key=lambda row: (epoch(row), key(row)))
    return [
        row
        for _, each in groupby(ordered, epoch)
        for number, row in enumerate(each)
        if number < limit
    ]


def address(text: str) -> tuple[int, int]:
    found = ip_address(text)
    return (0xFFFF << 32 | int(found), 4) if found.version == 4 else (int(found), 6)


def by_pair(row: Row) -> tuple[Any, ...]:
    return address(row[1]), address(row[2])


def tb(row: Row) -> int:
    return int(row[0])


def check(found: dict[str, list[Row]]) -> None:
    """Compare every limited answer with the first rows of the whole one."""
    pairs = found["pairs"]
    assert len({tb(row) for row in pairs}) > 3
    top = firsts(pairs, 3, lambda r: (-int(r[3]), float(r[4]), by_pair(r)), tb)
    assert found["top_pairs"] == top
    means = firsts(pairs, 2, lambda r: (-float(r[4]), -address(r[1])[0], address(r[2])), tb)
    assert found["hidden"] == [(row[2], row[0]) for row in means]
    rare = firsts(pairs, 2, lambda r: (int(r[3]), -float(r[4]), by_pair(r)), tb)
    assert found["no_epoch"] == [(row[1], row[2]) for row in rare]
    assert found["alone"] == firsts(pairs, 2, by_pair, tb)
    sums = [
        (epoch, str(sum(int(row[3]) for row in rows)), str(len(rows)))
        for epoch, rows in ((e, list(each)) for e, each in groupby(top, lambda r: r[0]))
    ]
    assert found["sum_of_top"] == sums
    hosts = firsts(found["hosts"], 5, lambda r: (-int(r[1]), address(r[0])), lambda _: 0)
    assert found["top_hosts"] == hosts
    totals = firsts(found["running"], 2, lambda r: (-int(r[2]), address(r[1])), tb)
    assert found["top_running"] == totals
    ports = firsts(found["distinct_ports"], 3, lambda r: -int(r[1]), tb)
    assert found["top_distinct"] == ports
    longest = sorted(
        (tuple(map(int, row)) for row in found["packets"]),
        key=lambda r: (-r[1], r[3], r[0], r[2]),
    )[:9]
    assert [tuple(map(int, row)) for row in found["longest"]] == longest
    assert found["of_longest"] == [
        ("9", str(sum(row[2] for row in longest)), str(sum(row[3] for row in longest)))
    ]
    assert found["top_ports"] == by_duckdb(found["ports"])


def by_duckdb(rows: list[Row]) -> list[Row]:
    """``top_ports``, by DuckDB from the rows of ``ports``, which it looks up by number."""
    numbers = [tuple(float(text) if text else None for text in row) for row in rows]
    names = ("tb", "protocol", "port", "bytes", "spread")
    table = pa.table(dict(zip(names, map(list, zip(*numbers, strict=True)), strict=True)))
    table = table.append_column("number", pa.array(range(len(rows))))
    order = "spread DESC NULLS FIRST, port DESC, protocol, bytes"
    text = f"""SELECT number FROM ports
    QUALIFY row_number() OVER (PARTITION BY tb ORDER BY {order}) <= 4 ORDER BY tb, {order}"""
    with duckdb.connect() as connection:
        connection.register("ports", table)
        return [rows[number] for (number,) in connection.execute(text).fetchall()]


@pytest.mark.spark
def test_tasks_and_delivery_give_the_first_rows(
    files: dict[str, list[Path]], spark: SparkSession
) -> None:
    check(answer(program(), files, INTERPRETED, spark))


@pytest.mark.spark
def test_sql_and_operators_give_the_same_rows_over_crashes(
    files: dict[str, list[Path]], spark: SparkSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A live run leaves the order of selections to operators; here steps count as large, too."""
    of_live = program(is_resumable=True)
    assert {n.query for n in of_live.nodes if isinstance(n, TopNode)} >= {"longest", "top_running"}
    monkeypatch.setattr(evaluation, "SMALL_STEP_ROWS", 0)
    monkeypatch.setattr(evaluation, "BRANCH_ROWS", 1)
    monkeypatch.setattr(evaluation, "MAX_BRANCHES", 3)
    monkeypatch.setattr(task_planner, "MAX_TASK_ROWS", -1)
    # Each of its steps evaluates a dozen queries in SQL.
    way = replace(CRASHING, is_interpreted=True, chunks=4, crashes=2)
    check(answer(of_live, files, way, spark))
