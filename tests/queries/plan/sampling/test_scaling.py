"""Counts and sums are scaled where the program says so, and nothing else is."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gscope.errors import ResolveError
from gscope.queries.catalog.evaluate import call, evaluate
from gscope.queries.compile import CompileContext, QueryText, compile_queries
from gscope.queries.expressions.expressions import Call, Column, Literal, walk
from gscope.queries.expressions.types import GsqlType
from gscope.queries.int64 import MAX_INT, MIN_INT
from gscope.queries.plan.program import AggregationNode, Program
from gscope.queries.plan.program_sampling import NodeSampling, SamplingComponent
from gscope.queries.plan.sampling.scaling import with_rate

FLOWS = """
SELECT tb, srcIP, count(*) as cnt, sum(len) as bytes, max(len) as longest, avg(len) as mean,
    sum(len) / count(*) as ratio
FROM IP GROUP BY time/60 as tb, srcIP HAVING count(*) > 5
"""


def sampled(*scaled: str) -> Program:
    program = compile_queries([QueryText(FLOWS, "flows")], CompileContext(("main",))).program
    (node,) = program.nodes
    component = SamplingComponent(
        tuple(lfta.name for lfta in program.lftas),
        (NodeSampling(node.query, is_whole=False, scaled=scaled, columns=()),),
    )
    return replace(program, sampling=(component,))


def aggregate(program: Program, function: str) -> str:
    (node,) = program.nodes
    assert isinstance(node, AggregationNode)
    return next(each.name for each in node.aggregates if each.function == function)


def answers(program: Program, **values: float) -> list[object]:
    """The row of a group with these aggregates, by function; None if HAVING rejects it."""
    (node,) = program.nodes
    assert isinstance(node, AggregationNode)
    names = {each.name: values.get(each.function, 0) for each in node.aggregates}

    def leaf(part: Column) -> object:
        return names.get(part.name, 1)

    assert node.having is not None
    if evaluate(node.having, leaf) is not True:  # type: ignore[arg-type]
        return []
    return [evaluate(each.expression, leaf) for each in node.columns]  # type: ignore[arg-type]


def test_counts_and_sums_are_multiplied_in_columns_and_in_having() -> None:
    plain = sampled()
    names = aggregate(plain, "count"), aggregate(plain, "sum")
    program = with_rate(sampled(*names), 0.25)
    row = answers(program, count=2, sum=100, max=60, avg=50.0)
    assert row[2:5] == [8, 400, 60]
    assert answers(with_rate(sampled(), 0.25), count=2, sum=100, max=60) == []


def test_a_ratio_of_scaled_sums_is_the_ratio() -> None:
    plain = sampled()
    names = aggregate(plain, "count"), aggregate(plain, "sum")
    full = answers(plain, count=20, sum=1000, max=60)
    scaled = answers(with_rate(sampled(*names), 0.1), count=20, sum=1000, max=60)
    assert scaled[-1] == full[-1]


def test_the_rate_one_changes_nothing() -> None:
    program = sampled(aggregate(sampled(), "count"))
    assert with_rate(program, 1.0) is program


def test_without_scaled_aggregates_a_rate_changes_nothing() -> None:
    program = sampled()
    assert with_rate(program, 0.1) == program


@pytest.mark.parametrize(
    ("value", "rate", "expected"),
    [
        (3, 0.1, 30),
        (7, 1 / 3, 21),
        (-7, 0.1, -70),
        (1, 0.4, 3),
        (0, 0.001, 0),
        (MAX_INT, 0.5, MAX_INT),
        (MIN_INT, 0.5, MIN_INT),
        (None, 0.5, None),
    ],
)
def test_scaled_integers_are_rounded_and_bounded(
    value: int | None, rate: float, expected: int | None
) -> None:
    arguments = Literal(value, GsqlType.INT), Literal(1 / rate, GsqlType.FLOAT)
    assert evaluate(call("scaled_int", *arguments), lambda _: None) == expected


@given(st.integers(-(2**52), 2**52), st.integers(1, 1000))
def test_whole_factors_are_exact(value: int, factor: int) -> None:
    arguments = Literal(value, GsqlType.INT), Literal(float(factor), GsqlType.FLOAT)
    scaled = evaluate(call("scaled_int", *arguments), lambda _: None)
    assert scaled == pytest.approx(value * factor, rel=2**-52)


def compiled(text: str) -> Program:
    context = CompileContext(("main",), samples=True)
    return compile_queries([QueryText(text, "query")], context).program


RATED = [
    "SELECT tb, srcIP, count(*) as cnt, sample_rate FROM IP GROUP BY time/60 as tb, srcIP",
    "SELECT tb, count(*) as cnt, 2 * Sample_Rate as r FROM IP GROUP BY time/60 as tb",
    "SELECT time, srcIP, sample_rate as r FROM TCP WHERE SYN = 1",
    "SELECT tb, srcIP, max(len) as m FROM IP GROUP BY time/60 as tb, srcIP HAVING sample_rate < 1",
]


def rates(program: Program) -> set[object]:
    """The constants that a node has, and calls that are not bound."""
    (node,) = program.nodes
    having = getattr(node, "having", None)
    expressions = [each.expression for each in node.columns] + ([having] if having else [])  # type: ignore[union-attr]
    parts = [part for expression in expressions for part in walk(expression)]
    bound = {part.value for part in parts if isinstance(part, Literal)}
    return bound | {p.function for p in parts if isinstance(p, Call) and not p.arguments}


@pytest.mark.parametrize("text", RATED)
def test_the_rate_is_a_column_that_the_job_binds(text: str) -> None:
    program = compiled(text)
    assert "sample_rate" in rates(program)
    assert program.sampling
    bound = rates(with_rate(program, 0.25))
    assert 0.25 in bound
    assert "sample_rate" not in bound


def test_a_query_that_is_not_sampled_has_the_rate_one() -> None:
    text = "SELECT tb, max(len) as m, sample_rate FROM IP GROUP BY time/60 as tb"
    program = compiled(text)
    assert not program.sampling
    assert "sample_rate" in rates(with_rate(program, 0.25))
    assert evaluate(call("sample_rate"), lambda _: None) == 1.0


def test_a_column_of_an_input_comes_before_the_rate() -> None:
    text = """
    DEFINE { query_name 'low'; } SELECT tb, srcIP, count(*) as sample_rate FROM IP
        GROUP BY time/60 as tb, srcIP;
    DEFINE { query_name 'high'; } SELECT tb, max(sample_rate) as m FROM low GROUP BY tb
    """
    assert compiled(text).schema("high")["m"].type is GsqlType.INT


def test_other_names_are_still_unknown() -> None:
    with pytest.raises(ResolveError, match="no column sample_rates"):
        compiled("SELECT time, sample_rates FROM TCP")
