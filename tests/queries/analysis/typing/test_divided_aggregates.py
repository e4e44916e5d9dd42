"""A quotient of an aggregate keeps its fraction.

What is made of columns alone truncates by a constant.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from gscope.queries.analysis.analyze import analyze
from gscope.queries.catalog.evaluate import evaluate
from gscope.queries.expressions.types import GsqlType
from gscope.queries.gsql.parser import parse
from gscope.queries.plan.logical import Project

if TYPE_CHECKING:
    from gscope.queries.expressions.expressions import Expression

GROUPS = {"tb": 28_333_320, "cnt": 7, "sum_len": 123_456_789, "max_time": 1_700_000_030}


def column(expression: str, term: str = "time/60") -> Expression:
    text = f"SELECT {expression} AS x FROM TCP GROUP BY {term} AS tb"
    root = analyze([parse(text)], ("a",), {}, {}).queries[-1].root
    assert isinstance(root, Project)
    return root.columns[0].expression


@pytest.mark.parametrize(
    ("expression", "expected"),
    [
        ("count(*)/1000", 0.007),
        ("(count(*) + 1)/16", 0.5),
        ("-count(*)/2", -3.5),
        ("sum(len)*8/60/1000000", 123_456_789 * 8 / 60 / 1_000_000),
        ("100 * (count(*)/8)", 87.5),
        ("count(*) DIV 2", 3),
        ("sum(len)*8 DIV 60", 16_460_905),
        ("tb/60", 472_222),
        ("count(*) + tb/60", 472_229),
        ("count(*) % 4", 3),
        ("max(time) - max(time) % 60", 1_699_999_980),
    ],
)
def test_only_a_quotient_of_an_aggregate_has_a_fraction(expression: str, expected: float) -> None:
    made = column(expression)
    value = evaluate(made, lambda leaf: GROUPS[leaf.name])
    assert value == expected
    assert made.type is {float: GsqlType.FLOAT, int: GsqlType.INT}[type(expected)]


def test_a_time_of_a_group_divided_by_an_interval_is_still_a_number() -> None:
    assert column("max(timestamp)/INTERVAL '1 min'").type is GsqlType.INT


def test_a_condition_over_groups_divides_in_the_same_way() -> None:
    text = "SELECT tb, count(*) FROM TCP GROUP BY time/60 AS tb HAVING count(*)/10 > 0.65"
    root = analyze([parse(text)], ("a",), {}, {}).queries[-1].root
    assert isinstance(root, Project)
    predicate = root.input.predicate  # type: ignore[union-attr]
    assert evaluate(predicate, lambda leaf: GROUPS[leaf.name]) is True
