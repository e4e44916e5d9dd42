"""Rounds are found in a few steps, wherever the rows are in time."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from gscope.cli.delivery import rounds as rounds_module
from gscope.cli.delivery.rounds import Rounds
from gscope.queries.compile import CompileContext, QueryText, compile_queries

if TYPE_CHECKING:
    from gscope.engine.watermarks.bounds import Bound
    from gscope.queries.plan.program import Program

MINUTES = """
DEFINE { query_name minutes; }
SELECT tb, srcIP, count(*) FROM IP GROUP BY time/60 AS tb, srcIP;
"""
SECONDS = "DEFINE { query_name seconds; } SELECT time, len FROM IP;"
BEGIN = 1_700_000_040
"""The first second of a minute."""


@pytest.mark.parametrize(
    ("query", "column", "value", "expected"),
    [
        ("minutes", "tb", BEGIN // 60, BEGIN + 60),
        ("minutes", "tb", 0, 60),
        ("minutes", "tb", -1, 0),
        ("seconds", "time", BEGIN, BEGIN + 1),
        ("seconds", "time", 0, 1),
    ],
)
def test_the_round_of_a_row_is_that_of_the_end_of_its_epoch(
    query: str, column: str, value: int, expected: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[int] = []
    bounds_at = rounds_module._bounds_at

    def counted(program: Program, query: str, number: int) -> dict[str, Bound]:
        asked.append(number)
        return bounds_at(program, query, number)

    monkeypatch.setattr(rounds_module, "_bounds_at", counted)
    program = compile_queries([QueryText(MINUTES + SECONDS, "q")], CompileContext(("up",))).program
    rounds = Rounds(program)
    assert rounds.of(query, column, value) == expected
    assert rounds.bound(query, column, expected) > value
    if expected:
        assert rounds.bound(query, column, expected - 1) <= value
    # From 1970 on it would take sixty.
    assert len(asked) <= 16, asked


def test_a_round_found_for_another_result_is_tried_first(monkeypatch: pytest.MonkeyPatch) -> None:
    """The column rises by a minute at once, which its unit does not show."""
    asked: list[str] = []
    bounds_at = rounds_module._bounds_at

    def counted(program: Program, query: str, number: int) -> dict[str, Bound]:
        asked.append(query)
        return bounds_at(program, query, number)

    monkeypatch.setattr(rounds_module, "_bounds_at", counted)
    text = "".join(
        f"DEFINE {{ query_name {name}; }}"
        "SELECT begin, srcIP, count(*) FROM IP GROUP BY time/60*60 AS begin, srcIP;"
        for name in ("one", "other")
    )
    program = compile_queries([QueryText(text, "q")], CompileContext(("up",))).program
    rounds = Rounds(program)
    assert [rounds.of(query, "begin", BEGIN) for query in ("one", "other")] == [BEGIN + 60] * 2
    # The last bound, the expected round, the one that was found, and the one before it.
    assert asked.count("other") <= 4 < asked.count("one")
