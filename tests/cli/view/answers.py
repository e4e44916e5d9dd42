"""Answers and models of the view, made without a run."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pyarrow as pa

from gscope.cli.config.time_style import TimeStyle
from gscope.cli.view.model import ViewModel
from gscope.cli.view.rows.columns import Answer, answer_of
from gscope.queries.compile import CompileContext, QueryText, compile_queries

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

TALKERS = """DEFINE { query_name talkers; } SELECT minute, srcIP, count(*) AS packets,
sum(len) AS bytes FROM IP GROUP BY minute(time), srcIP"""
PORTS = """DEFINE { query_name ports; } SELECT minute, destPort, count(*) AS packets FROM TCP
GROUP BY minute(time), destPort"""
PACKETS = "DEFINE { query_name packets; } SELECT time, srcIP, len FROM IP"
WHOLE = "DEFINE { query_name whole; } SELECT srcIP, sum(len) AS bytes FROM IP GROUP BY srcIP"
BEGAN = 1_700_000_040
"""A whole minute."""

_MINUTE_NS = 60_000_000_000


def answers(*texts: str) -> dict[str, Answer]:
    """Return what the view knows of the results of ``texts``, by name."""
    program = compile_queries(
        [QueryText("; ".join(texts), "query")], CompileContext(("a",))
    ).program
    return {name: answer_of(program, name, TimeStyle.UTC) for name, _ in program.results}


def model_of(*texts: str, title: str = "run") -> ViewModel:
    model = ViewModel(title, is_live=True)
    for answer in answers(*texts).values():
        model.begin(answer)
    return model


def talkers(minute: int, rows: Sequence[tuple[str | None, int | None, int]]) -> pa.Table:
    """Return rows of ``TALKERS`` in the minute ``minute`` after ``BEGAN``."""
    return of_minute(
        minute,
        {
            "srcIP": pa.array([row[0] for row in rows], pa.string()),
            "packets": pa.array([row[1] for row in rows], pa.int64()),
            "bytes": pa.array([row[2] for row in rows], pa.int64()),
        },
    )


def of_minute(minute: int, columns: Mapping[str, pa.Array]) -> pa.Table:
    length = len(next(iter(columns.values())))
    time_ns = BEGAN * 1_000_000_000 + minute * _MINUTE_NS
    times = pa.array([time_ns] * length, pa.timestamp("ns"))
    return pa.table({"minute": times, **columns})
