"""What aggregates are by definition, against the standard library and by hand."""

from __future__ import annotations

import math
import random
import statistics
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gscope.queries.catalog.aggregate.estimates import STANDARD_ERROR
from gscope.queries.catalog.aggregates import AGGREGATES

LARGE = st.lists(st.integers(-(1 << 63), (1 << 63) - 1), min_size=2, max_size=20)


@given(values=LARGE)
def test_the_variance_of_integers_is_that_of_exact_arithmetic(values: list[int]) -> None:
    for name, exact in (
        ("var", statistics.variance(map(Fraction, values))),
        ("var_pop", statistics.pvariance(map(Fraction, values))),
    ):
        assert AGGREGATES[name].evaluate(values) == pytest.approx(float(exact), rel=1e-15)


@given(values=st.lists(st.floats(-1e6, 1e6), min_size=2, max_size=20))
def test_the_deviation_of_floats_is_that_of_the_standard_library(values: list[float]) -> None:
    found = AGGREGATES["stddev"].evaluate(values)
    assert found == pytest.approx(statistics.stdev(values), rel=1e-9, abs=1e-9)


def test_one_value_has_no_sample_variance() -> None:
    assert AGGREGATES["var"].evaluate([5]) is None
    assert AGGREGATES["stddev"].evaluate([5.0]) is None
    assert AGGREGATES["var_pop"].evaluate([5]) == 0


def test_the_variance_of_what_is_not_finite_is_no_number() -> None:
    for values in ([1.0, math.inf], [math.nan, 2.0]):
        found = AGGREGATES["var"].evaluate(values)
        assert isinstance(found, float)
        assert math.isnan(found)


@given(values=st.lists(st.integers(-1000, 1000), min_size=2, max_size=30))
def test_quantiles_are_those_of_the_standard_library(values: list[int]) -> None:
    quarters = statistics.quantiles(values, n=4, method="inclusive")
    found = [AGGREGATES["quantile"].evaluate(values, part) for part in (0.25, 0.5, 0.75)]
    assert found == pytest.approx(quarters)
    assert AGGREGATES["median"].evaluate(values) == statistics.median(values)


def test_the_ends_of_a_group_are_those_in_time() -> None:
    rows = [(5, 20), (None, 1), (7, 10), (6, 10), (9, 20), (None, 30)]
    assert AGGREGATES["first"].evaluate(rows) == 6
    assert AGGREGATES["last"].evaluate(rows) == 9


def test_changes_are_counted_along_time() -> None:
    rows = [(1, 1), (1, 2), (None, 3), (2, 4), (1, 5), (1, 6)]
    assert AGGREGATES["count_diff"].evaluate(rows) == 3


def test_the_most_frequent_come_first_and_the_least_of_equals() -> None:
    top = AGGREGATES["approx_top_k"].evaluate
    assert top([80, 443, 443, 53, 80, 22], 3, b"INT") == b"80=2, 443=2, 22=1"
    assert top([0xFFFF0A000001], 3, b"IP") == b"10.0.0.1=1"
    assert top([b"b", b"a", b"b"], 9, b"STRING") == b"b=2, a=1"


@pytest.mark.parametrize("count", [1, 10, 100, 1000, 3000, 5000, 20_000])
def test_the_estimate_keeps_its_error(count: int) -> None:
    """The mean square of some estimates; a single one may err by three standard errors."""
    chance = random.Random(count)
    errors = []
    for _ in range(6):
        values = [chance.getrandbits(63) for _ in range(count)]
        found = AGGREGATES["approx_count_distinct"].evaluate(values, b"INT")
        assert isinstance(found, int)
        errors.append(found / count - 1)
    assert max(map(abs, errors)) < 3 * STANDARD_ERROR
    assert math.sqrt(statistics.fmean(e * e for e in errors)) < 1.5 * STANDARD_ERROR


def test_the_estimate_is_as_good_for_numbers_in_a_row() -> None:
    found = AGGREGATES["approx_count_distinct"].evaluate(list(range(10_000)) * 2, b"INT")
    assert found == pytest.approx(10_000, rel=3 * STANDARD_ERROR)
