"""Estimates whose packets were kept at different rates: right on average, exact at the rate 1."""

from __future__ import annotations

import math
import re
from collections import defaultdict
from random import Random
from statistics import fmean, stdev
from typing import TYPE_CHECKING

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gscope.engine.running.vectors import Vector, compute
from gscope.engine.spark.tasks.aggregate_task import plain_merge
from gscope.queries.catalog.evaluate import call, evaluate
from gscope.queries.compile import CompileContext, QueryText, compile_queries
from gscope.queries.expressions.expressions import Column, Literal
from gscope.queries.expressions.types import GsqlType
from gscope.queries.int64 import MAX_INT, MIN_INT
from gscope.queries.plan.program import AggregationNode
from gscope.queries.plan.sampling.keyed_hash import HashKey, hash_packet, threshold_of
from gscope.queries.plan.sampling.moving_samples import moving_samples

if TYPE_CHECKING:
    from collections.abc import Sequence

    from gscope.queries.expressions.expressions import Expression, Value
    from gscope.queries.plan.program import Program

QUERY = """
SELECT tb, count(*) as n, n_low, n_high, sum(len) as l, l_low, l_high, avg(len) as m, sample_groups,
sample_rate FROM TCP GROUP BY time/60 as tb
"""
RATES = (1.0, 0.5, 0.25, 0.3125, 0.05, 0.7)
"""The rate of each sixth of the packets of an epoch."""
PACKETS = 600
SEEDS = 220


def compiled(text: str, *, follows_load: bool = True) -> Program:
    context = CompileContext(("a",), {}, samples=True, follows_load=follows_load)
    return compile_queries([QueryText(text, "q")], context).program


def two_nodes(program: Program) -> tuple[AggregationNode, AggregationNode]:
    below, above = program.nodes
    assert isinstance(below, AggregationNode)
    assert isinstance(above, AggregationNode)
    return below, above


def value_of(expression: Expression, values: dict[str, Value]) -> Value:
    return evaluate(expression, lambda leaf: values[leaf.name])


def answered(program: Program, rows: Sequence[tuple[float, int, int]]) -> dict[str, Value]:
    """The answer of an epoch, in plain loops.

    Given are the rate, the number and the bytes of packets.
    """
    below, above = two_nodes(program)
    lfta = program.lftas[0]
    products: dict[str, list[Value]] = defaultdict(list)
    squares = {"count0": 0, "sum1": 1}
    for rate, number, size in rows:
        partials = {p.name: (number, size)[squares.get(p.name, 1)] for p in lfta.partials}
        folded: dict[str, Value] = {"tb": 7, "$sample_rate": rate}
        folded |= {a.name: partials[a.partials[0]] for a in below.aggregates}
        for column in below.columns:
            products[column.name].append(value_of(column.expression, folded))
    totals: dict[str, Value] = {"tb": 7}
    for each in above.aggregates:
        found = products[each.name]
        totals[each.name] = min(found) if each.function == "min" else sum(found)  # type: ignore[type-var,arg-type]
    return {c.name: value_of(c.expression, totals) for c in above.columns}


PLAIN = "SELECT tb, count(*) as n, sum(len) as l, avg(len) as m FROM TCP GROUP BY time/60 as tb"


def test_estimates_are_right_on_average_whatever_the_rates_were() -> None:
    random, program = Random(4), compiled(PLAIN)
    sizes = [random.choice((60, 60, 300, 1500)) for _ in range(PACKETS)]
    found = defaultdict(list)
    for seed in range(SEEDS):
        key = HashKey.of_seed(seed)
        start = key.of_interface("a")
        kept: dict[float, list[int]] = defaultdict(list)
        for number, size in enumerate(sizes):
            rate = RATES[number * len(RATES) // PACKETS]
            if hash_packet(number, start, key) <= threshold_of(rate):
                kept[rate].append(size)
        answer = answered(program, [(p, len(own), sum(own)) for p, own in kept.items()])
        for name in ("n", "l"):
            value = answer[name]
            assert isinstance(value, int)
            found[name].append(value)
        plain = sum(1 / p * len(own) for p, own in kept.items())
        assert found["n"][-1] == math.floor(plain + 0.5)
        assert answer["m"] == pytest.approx(found["l"][-1] / plain, rel=1e-3)
    for name, truth in (("n", PACKETS), ("l", sum(sizes))):
        error = stdev(found[name]) / math.sqrt(SEEDS)
        assert 0 < error < truth / 50
        assert abs(fmean(found[name]) - truth) < 4 * error, name
    values = (s * s if name == "l" else 1 for name in ("l",) for s in sizes)
    shares = (RATES[n * len(RATES) // PACKETS] for n in range(PACKETS))
    variance = sum((1 - p) / p * x for p, x in zip(shares, values, strict=True))
    assert stdev(found["l"]) == pytest.approx(math.sqrt(variance), rel=0.2)


@pytest.mark.parametrize("number", [0, 7, 2**53 + 1, MAX_INT])
def test_at_the_rate_1_an_answer_is_that_of_all_packets_to_the_last_digit(number: int) -> None:
    answer = answered(compiled(PLAIN), [(1.0, number, number)])
    assert (answer["n"], answer["l"]) == (number, number)


def test_estimates_of_one_rate_are_those_of_a_fixed_rate() -> None:
    for rate in RATES:
        for number in (0, 1, 2, 3, 17, 1001):
            fixed = call(
                "scaled_int", Literal(number, GsqlType.INT), Literal(1 / rate, GsqlType.FLOAT)
            )
            expected = evaluate(fixed, lambda _: None)
            assert answered(compiled(PLAIN), [(rate, number, number)])["n"] == expected


@given(
    st.integers(MIN_INT, MAX_INT), st.floats(1, 1e4, allow_nan=False) | st.sampled_from((1.0, 2.0))
)
def test_numpy_scales_as_the_catalog_does(value: int, factor: float) -> None:
    columns = {
        "x": Vector(np.array([value, value]), np.array([True, False])),
        "f": Vector(np.array([factor, factor]), np.array([True, True])),
    }
    x = Column("x", GsqlType.INT, is_nullable=True)
    f = Column("f", GsqlType.FLOAT, is_nullable=False)
    for function in ("scaled_whole", "scaled_rest"):
        made = compute(call(function, x, f), columns.__getitem__, 2)
        literals = Literal(value, GsqlType.INT), Literal(factor, GsqlType.FLOAT)
        assert made.values[0] == evaluate(call(function, *literals), lambda _: None)
        assert made.valid.tolist() == [True, False]


def test_tasks_compute_both_nodes_without_sql() -> None:
    text = "SELECT tb, count(*) as n, sum(len), avg(len), sample_rate FROM TCP GROUP BY time as tb"
    program = compiled(text)
    below, above = two_nodes(program)
    assert plain_merge(below, program.lftas[0].stream_schema) is not None
    assert plain_merge(above, below.schema) is not None


def test_a_rate_is_a_column_only_where_it_moves_and_nothing_else_shows_it() -> None:
    fixed, moving = compiled(QUERY, follows_load=False), compiled(QUERY)
    (before,), (lfta,) = fixed.lftas, moving.lftas
    assert lfta.stream_schema.names == (*before.stream_schema.names, "$sample_rate")
    assert not before.has_rate_column
    assert (lfta.keys, lfta.partials) == (before.keys, before.partials)
    whole = compiled("SELECT tb, srcIP, count(*) FROM TCP GROUP BY time/60 as tb, srcIP")
    assert not whole.lftas[0].has_rate_column
    assert compiled("SELECT tb, max(len) FROM TCP GROUP BY time/60 as tb") == compiled(
        "SELECT tb, max(len) FROM TCP GROUP BY time/60 as tb", follows_load=False
    )


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        (
            "SELECT tb, var(len) as v FROM IP GROUP BY time/60 as tb",
            r"q computes var \(var_len\), which needs one rate",
        ),
        (
            "SELECT tb, avg(time_ns) FROM IP GROUP BY time/60 as tb",
            "q averages values of 64 bits, whose sums can wrap",
        ),
        (
            "DEFINE { query_name hosts; } SELECT time, srcIP FROM IP SAMPLE BY srcIP;"
            "DEFINE { query_name query; }"
            "SELECT tb, count(*) as n, n_low FROM hosts GROUP BY time/60 as tb",
            r"query has an interval \(x_low, x_high\) of packets that are sampled by groups",
        ),
        (
            "SELECT tb, r, count(*) FROM IP GROUP BY time/60 as tb, sample_rate > 0.5 as r",
            "q groups or chooses packets by sample_rate",
        ),
        (
            "SELECT window_end, count(*) FROM IP [RANGE 20 SLIDE 10]",
            "q does not answer packet by packet",
        ),
    ],
)
def test_what_needs_one_rate_keeps_every_packet(text: str, reason: str) -> None:
    found, reasons = moving_samples(compiled(text))
    assert not found
    assert re.search(reason, "; ".join(reasons.values()))
