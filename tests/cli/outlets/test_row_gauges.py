"""Rows of results as gauges.

A scrape, read by the parser of Prometheus's client, against the rows.
"""

from __future__ import annotations

import csv
import io
import json
import math
import random
import urllib.request
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest
from prometheus_client import CollectorRegistry, generate_latest
from prometheus_client.parser import text_string_to_metric_families

from gscope.cli.outlets.gauge_columns import gauge_columns
from gscope.cli.outlets.row_gauges import RowGauges
from gscope.cli.status.endpoint import Address, Metrics, served
from gscope.engine.sinks.columns import readable_schema
from gscope.engine.sinks.text import write_csv
from gscope.errors import UsageError
from gscope.queries.compile import CompileContext, QueryText, compile_queries
from gscope.queries.run_folder.snapshot import SnapshotFile

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from gscope.queries.plan.program import Program

FLOWS = """DEFINE {{ query_name {name}; }}
SELECT tb, srcIP, protocol, count(*) AS packets, avg(len) AS mean, max(timestamp) AS last
FROM IP GROUP BY time/60 AS tb, srcIP, protocol"""

Series = dict[tuple[str, frozenset[tuple[str, str]]], float]


def compiled(text: str) -> Program:
    return compile_queries([QueryText(text, "q.gsql")], CompileContext(("a",))).program


class Shown:
    """Gauges of the results of a program, and their scrapes over HTTP."""

    def __init__(
        self, folder: Path, text: str, *names: str, most: int = 10_000, **how: Any
    ) -> None:
        program = compiled(text)
        self.file = folder / "row-metrics.json"
        self.gauges = RowGauges(gauge_columns(program, names), most, SnapshotFile(self.file), **how)
        self.schemas = {name: readable_schema(program.schema(name)) for name in names}

    def write(self, name: str, *rows: Mapping[str, Any]) -> pa.Table:
        table = pa.Table.from_pylist([dict(row) for row in rows], self.schemas[name])
        self.gauges.take(name, table)
        return table

    def close(self, **bounds: float) -> None:
        self.gauges.close_epochs({name: {"tb": bound} for name, bound in bounds.items()})

    def text(self) -> str:
        metrics, registry = Metrics(), CollectorRegistry()
        metrics.show_rows(self.gauges.collect)
        registry.register(metrics)
        return generate_latest(registry).decode()

    def series(self) -> Series:
        found = [
            ((sample.name, frozenset(sample.labels.items())), sample.value)
            for family in text_string_to_metric_families(self.text())
            for sample in family.samples
            if sample.name.startswith("gscope_row_")
        ]
        assert len(dict(found)) == len(found), "a series that is there twice"
        return dict(found)

    def epochs(self) -> dict[str, float]:
        return {
            sample.labels["query"]: sample.value
            for family in text_string_to_metric_families(self.text())
            for sample in family.samples
            if sample.name == "gscope_rows_epoch_timestamp_seconds"
        }

    @property
    def account(self) -> dict[str, Any]:
        (found,) = json.loads(self.file.read_text())["results"]
        return dict(found)

    @property
    def left_out(self) -> dict[str, int]:
        (found,) = self.gauges.accounts()
        return dict(found["left_out_rows_total"])


def flow(
    tb: int | None, source: str | None, packets: int | None = 1, **more: Any
) -> dict[str, Any]:
    return {"tb": tb, "srcIP": source, "protocol": 6, "packets": packets, "mean": 1.5} | more


def packets(series: Series) -> dict[str, float]:
    """The packets of each source, by its label."""
    return {
        dict(labels)["srcIP"]: value
        for (name, labels), value in series.items()
        if name.endswith("_packets")
    }


def test_a_scrape_has_the_rows_that_csv_has_of_the_latest_complete_epoch(tmp_path: Path) -> None:
    shown = Shown(tmp_path, FLOWS.format(name="flows"), "flows")
    chance = random.Random(7)
    table = shown.write(
        "flows",
        *(
            flow(
                *(tb, f"10.0.0.{host}", chance.randrange(1 << 40)),
                protocol=protocol,
                mean=chance.choice([None, math.nan, math.inf, chance.random() * 1e6]),
                last=1_700_000_000_000_000_000 + host * 1_000_000_000,
            )
            for tb in (7, 8)
            for host in range(20)
            for protocol in (6, 17)
        ),
    )
    shown.close(flows=9)
    lines = io.BytesIO()
    write_csv(table, lines)
    text = lines.getvalue().decode()
    expected: Series = {}
    for row in csv.DictReader(io.StringIO(text), fieldnames=table.schema.names):
        if row["tb"] != "8":
            continue
        labels = frozenset({("srcIP", row["srcIP"]), ("protocol", row["protocol"])})
        for column in ("packets", "mean"):
            if row[column]:
                expected[f"gscope_row_flows_{column}", labels] = float(row[column])
        host = int(row["srcIP"].rpartition(".")[2])
        expected["gscope_row_flows_last", labels] = 1_700_000_000.0 + host
    found = shown.series()
    assert found.keys() == expected.keys()
    assert all(
        found[key] == pytest.approx(value, rel=1e-15, nan_ok=True)
        for key, value in expected.items()
    )
    assert len(found) > 80
    assert shown.epochs() == {"flows": 480.0}
    with served(Address("127.0.0.1", 0)) as metrics:
        metrics.show_rows(shown.gauges.collect)
        with urllib.request.urlopen(metrics.url) as answer:
            assert answer.read().decode() == shown.text()


def test_an_epoch_replaces_the_one_before_also_without_rows(tmp_path: Path) -> None:
    shown = Shown(tmp_path, FLOWS.format(name="flows"), "flows")
    assert (shown.series(), shown.epochs()) == ({}, {})
    shown.write("flows", flow(7, "10.0.0.1"), flow(7, "10.0.0.2"))
    assert shown.series() == {}, "not complete"
    shown.close(flows=7.5)
    assert packets(shown.series()) == {"10.0.0.1": 1, "10.0.0.2": 1}
    shown.write("flows", flow(8, "10.0.0.2", 5))
    shown.close(flows=8)
    assert len(packets(shown.series())) == 2, "still the epoch before"
    shown.close(flows=9)
    assert packets(shown.series()) == {"10.0.0.2": 5}
    shown.close(flows=10)
    assert (packets(shown.series()), shown.epochs()) == ({}, {"flows": 540.0})
    shown.write("flows", flow(10, "10.0.0.3"), flow(9, "10.0.0.4"), flow(12, "10.0.0.5"))
    shown.close(flows=11)
    assert (packets(shown.series()), shown.left_out) == ({"10.0.0.3": 1}, {"late": 1})
    shown.gauges.end()
    assert (shown.series(), shown.account["series"]) == ({}, 0)


def test_epochs_are_those_of_the_column(tmp_path: Path) -> None:
    text = """DEFINE { query_name q; }
SELECT tb, count(*) AS n FROM IP GROUP BY (time/60)*60 AS tb"""
    shown = Shown(tmp_path, text, "q")
    shown.write("q", {"tb": 60, "n": 1}, {"tb": 120, "n": 2})
    shown.close(q=121)
    assert (shown.epochs(), list(shown.series().values())) == ({"q": 120.0}, [2.0])
    shown.close(q=180)
    assert list(shown.series().values()) == [2.0], "the next epoch is not complete"
    shown.close(q=181)
    assert shown.series() == {}


def test_rows_beyond_the_limit_are_counted(tmp_path: Path) -> None:
    shown = Shown(tmp_path, FLOWS.format(name="flows"), "flows", most=31)
    shown.write("flows", *(flow(7, f"10.0.0.{n}") for n in range(6)))
    shown.write("flows", *(flow(7, f"10.0.0.{n}") for n in range(6, 25)))
    shown.close(flows=8)
    assert packets(shown.series()).keys() == {f"10.0.0.{n}" for n in range(10)}
    assert shown.left_out == {"limit": 15}
    assert shown.account["left_out_rows_total"] == {"limit": 15}
    assert shown.account["series"] == 20, "last is NULL"


def test_nulls_numbers_and_texts_of_attackers(tmp_path: Path) -> None:
    text = """DEFINE { query_name q; }
SELECT tb, TCP_data AS p, count(*) AS n, sum(len) AS s FROM TCP GROUP BY time/60 AS tb, TCP_data"""
    shown = Shown(tmp_path, text, "q")
    wild = [b'a"b\\c\nd', b"\x00\xff\r", "é\u2028".encode(), b"}", b'",x="']
    assert pa.types.is_binary(shown.schemas["q"].field("p").type)
    shown.write(
        "q",
        *({"tb": 7, "p": each, "n": (1 << 63) - 1, "s": None} for each in wild),
        {"tb": 7, "p": None, "n": -1, "s": 1},
        {"tb": 7, "p": b"", "n": -2, "s": 1},
        {"tb": None, "p": b"x", "n": -3, "s": 1},
    )
    shown.close(q=8)
    assert shown.series() == {
        ("gscope_row_q_n", frozenset({("p", 'a"b\\\\c\\nd')})): 2.0**63,
        ("gscope_row_q_n", frozenset({("p", "\\x00\\xff\\r")})): 2.0**63,
        ("gscope_row_q_n", frozenset({("p", "é\\u2028")})): 2.0**63,
        ("gscope_row_q_n", frozenset({("p", "}")})): 2.0**63,
        ("gscope_row_q_n", frozenset({("p", '",x="')})): 2.0**63,
        ("gscope_row_q_n", frozenset({("p", "")})): -1,
        ("gscope_row_q_s", frozenset({("p", "")})): 1,
    }
    assert shown.left_out == {"repeated": 1, "no_time": 1}


def test_names_that_collide_are_told_apart(tmp_path: Path) -> None:
    text = """DEFINE { query_name a_b; }
SELECT tb, count(*) AS c FROM IP GROUP BY time/60 AS tb;
DEFINE { query_name a; }
SELECT tb, count(*) AS b_c FROM IP GROUP BY time/60 AS tb"""
    shown = Shown(tmp_path, text, "a_b", "a")
    shown.write("a_b", {"tb": 7, "c": 1})
    shown.write("a", {"tb": 7, "b_c": 2})
    shown.close(a_b=8, a=8)
    assert shown.series() == {
        ("gscope_row_a_b_c", frozenset()): 1,
        ("gscope_row_a_b_c_2", frozenset()): 2,
    }
    assert "# HELP gscope_row_a_b_c_2 Column b_c of the result a, latest" in shown.text()


def test_values_of_queries_over_queries_are_still_values(tmp_path: Path) -> None:
    text = (
        FLOWS.format(name="flows")
        + """;
DEFINE { query_name big; } SELECT tb, srcIP, packets*8 AS eights, protocol FROM flows WHERE packets > 2;
DEFINE { query_name hosts; } SELECT tb, packets, count(*) AS hosts FROM flows GROUP BY tb, packets"""  # noqa: E501
    )
    for name, labels, gauges in (
        ("big", ["srcIP", "protocol"], ["eights"]),
        ("hosts", ["packets"], ["hosts"]),
    ):
        (columns,) = gauge_columns(compiled(text), (name,))
        assert [each.name for each in columns.labels] == labels
        assert [each.column for each in columns.gauges] == gauges


def test_a_window_is_an_epoch_at_its_end() -> None:
    text = """DEFINE { query_name w; }
SELECT window_end, window_start, srcIP, count(*) AS n
FROM TCP [RANGE '1 min' SLIDE '10 sec'] GROUP BY srcIP"""
    (columns,) = gauge_columns(compiled(text), ("w",))
    assert (columns.epoch, columns.step * columns.unit_ns) == ("window_end", 10_000_000_000)
    assert [each.name for each in columns.labels] == ["srcIP"]


def test_a_resumed_run_does_not_show_an_epoch_whose_rows_it_may_have_delivered(
    tmp_path: Path,
) -> None:
    shown = Shown(tmp_path, FLOWS.format(name="flows"), "flows", is_resumed=True)
    shown.write("flows", flow(7, "10.0.0.1"))
    shown.close(flows=8)
    assert (shown.series(), shown.epochs()) == ({}, {})
    shown.write("flows", flow(8, "10.0.0.2"))
    shown.close(flows=9)
    assert (packets(shown.series()), shown.epochs()) == ({"10.0.0.2": 1}, {"flows": 480.0})


@pytest.mark.parametrize(
    ("text", "name", "sentence"),
    [
        ("SELECT time, srcIP FROM IP", "query", "the rows have none"),
        ("SELECT srcIP, count(*) FROM IP GROUP BY time/60 AS tb, srcIP", "query", "have none"),
        ("SELECT tb, srcIP FROM IP GROUP BY time/60 AS tb, srcIP", "query", "computed by an"),
        ("SELECT timestamp, count(*) FROM IP GROUP BY timestamp", "query", "at least a second"),
        ("SELECT tb, count(*) FROM IP GROUP BY time/60 AS tb", "querry", "did you mean query"),
    ],
)
def test_other_results_are_refused(text: str, name: str, sentence: str) -> None:
    program = compiled("DEFINE { query_name query; } " + text)
    with pytest.raises(UsageError, match=f"--metrics-of {name}: .*{sentence}"):
        gauge_columns(program, (name,))
