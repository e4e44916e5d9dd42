"""Reports of rows that tests make, without a run."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pyarrow as pa

from gscope.cli.config.time_style import TimeStyle
from gscope.cli.report.answers import report_answer
from gscope.cli.report.contents import AnsweredRows, Facts, Report
from gscope.cli.report.page import page_html
from gscope.queries.compile import CompileContext, QueryText, compile_queries

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

    from gscope.cli.report.contents import ReportAnswer

BEGAN = 1_700_000_040
"""A whole minute."""

RATES = """DEFINE { query_name rates; } SELECT second, srcIP, count(*) AS packets,
sum(len) * 8 AS bits, avg(len) AS mean FROM IP GROUP BY second(time), srcIP"""
TOTALS = """DEFINE { query_name totals; } SELECT srcIP, count(*) AS packets, avg(len) AS mean
FROM IP GROUP BY srcIP"""
PACKETS = "DEFINE { query_name packets; } SELECT timestamp, srcIP, srcPort, len FROM TCP"
NAMES = """DEFINE { query_name names; } SELECT second, name, count(*) AS questions
FROM (SELECT time, dns_qname(UDP_data) AS name FROM UDP) AS question GROUP BY second(time), name"""


def answer(text: str, style: TimeStyle = TimeStyle.UTC) -> ReportAnswer:
    """Return what a report knows of the only result of a query."""
    program = compile_queries([QueryText(text, "query")], CompileContext(("a",))).program
    ((query, _),) = program.results
    return report_answer(program, query, style)


def rows_of(
    text: str, columns: Mapping[str, Sequence[Any]], style: TimeStyle = TimeStyle.UTC
) -> AnsweredRows:
    """Return rows of a query.

    A column ``second`` or ``timestamp`` is in seconds after ``BEGAN``.
    """
    rows = AnsweredRows(answer(text, style))
    made = {name: _array(name, values) for name, values in columns.items()}
    rows.add(pa.table(made))
    return rows


def _array(name: str, values: Sequence[Any]) -> pa.Array:
    if name not in ("second", "timestamp"):
        return pa.array(values)
    times = [None if v is None else round((BEGAN + v) * 1_000_000_000) for v in values]
    return pa.array(times, pa.timestamp("ns"))


def report_of(
    *answers: AnsweredRows, title: str = "Report", losses: tuple[str, ...] = ()
) -> Report:
    facts = Facts(title, (("capture", title),), losses, (), ((title, title),), TimeStyle.UTC)
    return Report(facts, answers)


def written(report: Report, path: Path) -> Path:
    path.write_text("\n".join(page_html(report)), encoding="utf-8")
    return path
