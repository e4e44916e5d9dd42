"""What runs on all hosts against plain loops: the union of the parts' answers is the answer."""

from __future__ import annotations

import random
from typing import TYPE_CHECKING, Any

import pytest
from tests.queries.analysis.partitioning.test_sets import value
from tests.queries.analysis.sampling.plain_answers import PlainAnswers
from tests.queries.analysis.sampling.random_queries import packets, query_set
from tests.support.long_form import cases

from gscope.queries.analysis.partitioning.operators import operators_of
from gscope.queries.analysis.partitioning.placement import Place
from gscope.queries.analysis.partitioning.search import search
from gscope.queries.analysis.partitioning.traffic import rows_of
from gscope.queries.compile import CompileContext, QueryText, compile_queries

if TYPE_CHECKING:
    from gscope.queries.plan.logical import LogicalPlan

HOSTS = 3


@pytest.mark.parametrize("seed", cases(range(60), range(60, 2000)))
def test_the_parts_of_a_divided_query_make_its_answer(seed: int) -> None:
    source = random.Random(seed)
    text = query_set(source, by_tuples=False)
    traffic = packets(source)
    compiled = compile_queries([QueryText(text, "")], CompileContext(("eth0",)))
    plan = compiled.stages[0][1]
    operators = operators_of(plan, tuple(name for name, _ in compiled.program.results))
    for placement in search(operators, rows_of(operators), HOSTS).candidates:
        hosts: dict[Any, int] = {}
        parts: list[list[dict[str, Any]]] = [[] for _ in range(HOSTS)]
        for packet in traffic:
            key = value(placement.given, packet) if placement.given else id(packet)
            parts[hosts.setdefault(key, source.randrange(HOSTS))].append(packet)
        for operator, where in zip(operators, placement.places, strict=True):
            if operator.is_root and where is Place.HOSTS:
                found = [row for part in parts for row in answer(plan, operator.query, part)]
                expected = answer(plan, operator.query, traffic)
                assert sorted(found) == sorted(expected), (operator.query, placement.given, text)


def answer(plan: LogicalPlan, query: str, traffic: list[dict[str, Any]]) -> list[str]:
    return [repr(sorted(row.values.items())) for row in PlainAnswers(plan, traffic).answer(query)]
