"""The columns that identify a group, in results of all kinds of nodes that group or read groups."""

from __future__ import annotations

import pytest

from gscope.queries.compile import CompileContext, QueryText, compile_queries
from gscope.queries.plan.group_columns import group_columns

GROUPED = (
    "DEFINE { query_name g; } SELECT tb, srcIP, destPort, count(*) AS n, max(len) AS most FROM TCP"
    " GROUP BY time/60 AS tb, srcIP, destPort"
)


def found(*texts: str) -> list[str] | None:
    queries = [QueryText(text, f"q{n}") for n, text in enumerate(texts)]
    program = compile_queries(queries, CompileContext(("a",))).program
    source = dict(program.results)[program.results[-1][0]]
    columns = group_columns(program, source, has_computed=True)
    plain = group_columns(program, source)
    assert (plain is None) == (columns is None)
    # Of the columns here, those that are computed have these names.
    assert plain == (None if columns is None else columns - {"p", "x"})
    return None if columns is None else sorted(columns)


@pytest.mark.parametrize(
    ("texts", "expected"),
    [
        ([GROUPED], ["destPort", "srcIP", "tb"]),
        ([GROUPED + " ORDER BY n DESC LIMIT 3"], ["destPort", "srcIP", "tb"]),
        (
            [GROUPED, "SELECT tb, srcIP AS who, destPort/1000 AS p, n, destPort + n AS x FROM g"],
            ["p", "tb", "who"],
        ),
        ([GROUPED, "SELECT tb, n FROM g WHERE n > 3"], ["tb"]),
        (
            ["SELECT tb, srcIP, count(*) AS n FROM IP GROUP BY time/60 AS tb, srcIP, destIP"],
            ["srcIP", "tb"],
        ),
        (
            [
                "SELECT tb, srcIP, running_sum(len) AS s FROM IP GROUP BY time/60 AS tb, srcIP"
                " CLOSING_WHEN count(*) = 0"
            ],
            ["srcIP", "tb"],
        ),
        (["SELECT time, srcIP, len FROM IP"], None),
    ],
)
def test_keys_and_what_they_determine(texts: list[str], expected: list[str] | None) -> None:
    assert found(*texts) == expected
