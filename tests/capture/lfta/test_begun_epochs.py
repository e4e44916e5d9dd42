"""What is promised of several temporal columns while an epoch is under way."""

from __future__ import annotations

import pytest

from gscope.capture.lfta.punctuation import punctuations
from gscope.queries.compile import CompileContext, QueryText, compile_queries

TEXT = "SELECT tb, t, count(*) as cnt FROM IP GROUP BY time/10 as tb, time as t"


@pytest.mark.parametrize(
    ("bound_ns", "promised"),
    [
        (999_999_999_999, {"tb": 99, "t": 999}),
        (1_000_000_000_000, {"tb": 100, "t": 1000}),
        (1_000_500_000_000, {"tb": 100, "t": 1000}),
        (1_000_999_999_999, {"tb": 100, "t": 1000}),
    ],
)
def test_promises_hold_from_the_first_moment_of_the_epoch_on(
    bound_ns: int, promised: dict[str, int]
) -> None:
    program = compile_queries([QueryText(TEXT, "q")], CompileContext(("main",))).program
    made = punctuations(program.lftas[0], bound_ns)
    assert {each.column: each.bound for each in made} == promised
