"""Selections of selections are written out, but not without bound."""

from __future__ import annotations

from typing import TYPE_CHECKING

from gscope.queries.compile import CompileContext, QueryText, compile_queries

if TYPE_CHECKING:
    from gscope.queries.plan.program import Program


def chain(length: int, columns: str) -> Program:
    """Each query selects ``columns`` of the one before."""
    queries = ["DEFINE { query_name 'q0'; } SELECT time, len AS x FROM TCP"]
    queries += [
        f"DEFINE {{ query_name 'q{number}'; }} SELECT {columns} FROM q{number - 1}"
        for number in range(1, length)
    ]
    text = QueryText("; ".join(queries), "q.gsql")
    return compile_queries([text], CompileContext(("main1",))).program


def test_a_few_selections_are_one() -> None:
    made = chain(10, "time, x + 1 AS x")
    assert not made.nodes
    assert len(made.lftas) == 1


def test_selections_that_double_stay_apart_before_they_are_huge() -> None:
    made = chain(40, "time, x + x AS x")
    assert made.nodes


def test_a_long_chain_is_no_deep_tree() -> None:
    made = chain(400, "time, x")
    assert made.nodes
