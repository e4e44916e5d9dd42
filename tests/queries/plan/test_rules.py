"""Each rewrite rule, shown by pairs of queries.

`rules/<rule>.gsql` holds cases "before, -- becomes, after".
"""

from __future__ import annotations

from pathlib import Path

import pytest

from gscope.queries.compile import CompileContext, Compiled, QueryText, compile_queries
from gscope.queries.plan.explain.show_plans import show_tree
from gscope.queries.plan.rules.optimize import RULES

FOLDER = Path(__file__).parent / "rules"


def cases() -> list[tuple[str, str, str]]:
    return [
        (path.stem, before, after)
        for path in sorted(FOLDER.glob("*.gsql"))
        for case in path.read_text().split("-- case\n")
        for before, after in [case.split("-- becomes\n")]
    ]


def compiled(text: str) -> Compiled:
    texts = [QueryText(part.replace(": SELECT", " : SELECT"), "case") for part in [_named(text)]]
    return compile_queries(texts, CompileContext(("main1", "main2")))


def _named(text: str) -> str:
    return "\n".join(f"Query {line}" if ": SELECT" in line else line for line in text.splitlines())


@pytest.mark.parametrize(("rule", "before", "after"), cases())
def test_both_texts_have_the_same_optimized_plan(rule: str, before: str, after: str) -> None:
    left, right = compiled(before), compiled(after)
    first = left.stages[-1][1].queries[-1]
    second = right.stages[-1][1].queries[-1]
    assert list(show_tree(first.root)) == list(show_tree(second.root))
    assert first.root == second.root


@pytest.mark.parametrize(("rule", "before", "after"), cases())
def test_the_rule_takes_part(rule: str, before: str, after: str) -> None:
    assert rule in [name for name, _ in compiled(before).stages]


def test_every_rule_has_a_case() -> None:
    assert {rule.__name__ for rule in RULES} == {rule for rule, _, _ in cases()}
