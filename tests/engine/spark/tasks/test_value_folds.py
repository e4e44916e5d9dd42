"""Aggregates over lists of values against the catalog's entries, which take one group at a time."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from gscope.engine.running.halves import joined_halves
from gscope.engine.spark.tasks import value_folds
from gscope.queries.catalog.aggregate.estimates import BUCKETS, sketch_entry
from gscope.queries.catalog.aggregates import AGGREGATES
from gscope.queries.catalog.scalar.hashes import HASHES
from gscope.queries.expressions.types import GsqlType

if TYPE_CHECKING:
    from collections.abc import Callable

BIG = (1 << 63) - 1
ARROW = {
    GsqlType.INT: pa.int64(),
    GsqlType.FLOAT: pa.float64(),
    GsqlType.IP: pa.binary(16),
    GsqlType.STRING: pa.binary(),
    GsqlType.BOOL: pa.bool_(),
}
VALUES: dict[GsqlType, st.SearchStrategy[Any]] = {
    GsqlType.INT: st.integers(-3, 3) | st.sampled_from([BIG, -BIG - 1, 1 << 40]),
    GsqlType.FLOAT: st.sampled_from([0.0, -0.0, 1.5, -2.25, math.nan, math.inf, -math.inf, 1e300])
    | st.floats(),
    GsqlType.IP: st.integers(0, 3) | st.integers(0, (1 << 128) - 1),
    GsqlType.STRING: st.binary(max_size=2),
    GsqlType.BOOL: st.booleans(),
}
COUNTED: list[tuple[str, tuple[GsqlType, ...], Callable[..., pa.Array], tuple[Any, ...]]] = [
    ("count_distinct", tuple(VALUES), value_folds.distinct_count, ()),
    ("count_dups", tuple(VALUES), value_folds.repeated_count, ()),
    ("avg_distinct", (GsqlType.INT,), value_folds.distinct_average, ()),
    *(
        ("quantile", (GsqlType.INT, GsqlType.FLOAT), value_folds.quantile, (part,))
        for part in (0.0, 0.25, 0.5, 0.9, 1.0)
    ),
]
Group = list[tuple[Any, int]]
Sketch = list[tuple[int | None, int | None]]


def groups_of(kind: GsqlType) -> st.SearchStrategy[list[Group]]:
    """Some groups of values with counts; a value may occur several times, or be NULL."""
    pair = st.tuples(st.none() | VALUES[kind], st.integers(1, 5))
    return st.lists(st.lists(pair, max_size=8), max_size=5)


def stored(value: Any, kind: GsqlType) -> Any:
    return value.to_bytes(16) if kind is GsqlType.IP and value is not None else value


def lists(groups: list[Group], kind: GsqlType) -> tuple[pa.Array, pa.Array]:
    """The lists of values and of counts."""
    values = [[stored(value, kind) for value, _ in group] for group in groups]
    counts = [[count for _, count in group] for group in groups]
    return pa.array(values, pa.list_(ARROW[kind])), pa.array(counts, pa.list_(pa.int64()))


def same(a: Any, b: Any) -> bool:
    if isinstance(a, float) and isinstance(b, float):
        return (math.isnan(a) and math.isnan(b)) or (
            a == b and math.copysign(1, a) == math.copysign(1, b)
        )
    return bool(a == b)


@pytest.mark.parametrize(("name", "kinds", "fold", "constants"), COUNTED)
@settings(max_examples=60)
@given(data=st.data())
def test_counted_values(
    name: str,
    kinds: tuple[GsqlType, ...],
    fold: Callable[..., pa.Array],
    constants: tuple[Any, ...],
    data: st.DataObject,
) -> None:
    kind = data.draw(st.sampled_from(kinds))
    groups = data.draw(groups_of(kind))
    values, counts = lists(groups, kind)
    entry = AGGREGATES[name]
    got = fold(*constants, values, counts).to_pylist()
    want = [entry.finish(group, *constants) for group in groups]
    assert len(got) == len(want)
    assert all(map(same, got, want)), (got, want)
    alone = fold(*constants, values).to_pylist()
    want = [entry.evaluate([value for value, _ in group], *constants) for group in groups]
    assert all(map(same, alone, want)), (alone, want)


@given(groups=groups_of(GsqlType.INT))
@example(groups=[[(BIG, 1), (BIG - 1, 1)], [], [(None, 2)], [(-BIG, 1), (-BIG - 1, 1)]])
def test_the_sum_of_different_integers_wraps_and_is_counted(groups: list[Group]) -> None:
    low, high = value_folds.distinct_halves(*lists(groups, GsqlType.INT))
    sums, wrapped = joined_halves(low, high)
    exact = [{value for value, _ in group} - {None} for group in groups]
    assert sums.to_pylist() == [AGGREGATES["sum_distinct"].finish(group) for group in groups]
    assert wrapped == sum(not -BIG - 1 <= sum(values) <= BIG for values in exact)


@pytest.mark.parametrize("kind", [GsqlType.INT, GsqlType.IP, GsqlType.STRING, GsqlType.BOOL])
@settings(max_examples=60)
@given(data=st.data())
def test_ends_and_changes_by_two_orders(kind: GsqlType, data: st.DataObject) -> None:
    place = st.none() | st.integers(-2, 2)
    row = st.tuples(st.none() | VALUES[kind], place, place)
    groups = data.draw(st.lists(st.lists(row, max_size=8), max_size=5))
    columns = [
        pa.array([[stored(row[0], kind) for row in g] for g in groups], pa.list_(ARROW[kind])),
        *(pa.array([[row[n] for row in g] for g in groups], pa.list_(pa.int64())) for n in (1, 2)),
    ]
    for name, got in (
        ("first", value_folds.first(*columns)),
        ("last", value_folds.last(*columns)),
        ("count_diff", value_folds.changes(*columns)),
    ):
        want = [AGGREGATES[name].evaluate(group) for group in groups]
        kept = kind if name != "count_diff" else GsqlType.INT
        assert got.to_pylist() == [stored(value, kept) for value in want], name


@pytest.mark.parametrize("kind", [GsqlType.INT, GsqlType.IP, GsqlType.STRING, GsqlType.FLOAT])
@settings(max_examples=60)
@given(data=st.data())
def test_most_frequent_values(kind: GsqlType, data: st.DataObject) -> None:
    groups, k = data.draw(groups_of(kind)), data.draw(st.integers(1, 4))
    entry = AGGREGATES["approx_top_k"]
    name = kind.value.encode()
    got = value_folds.most_frequent(k, kind, *lists(groups, kind))
    assert got.to_pylist() == [entry.finish(group, k, name) for group in groups]


@pytest.mark.parametrize("count", [0, 1, 50, 4_000, 4_500, 20_000])
def test_estimates_of_few_and_many_values(count: int) -> None:
    """Up to two values a bucket by empty buckets, beyond that by minima."""
    hashed: list[Any] = [HASHES["hash_int"].evaluate(number) for number in range(count)]
    entries: Sketch = [sketch_entry(each) for each in hashed]
    nothing: Sketch = [(1, None), (None, None)]
    check_estimates([[*entries], [], nothing, entries[:7] * 2, [(1, None), *entries[:3]]])


def test_every_number_of_used_buckets() -> None:
    numbers = range(0, BUCKETS + 1, 64)
    check_estimates([[(bucket, 5) for bucket in range(used)] for used in numbers])


def check_estimates(groups: list[Sketch]) -> None:
    buckets, least = (
        pa.array([[entry[n] for entry in group] for group in groups], pa.list_(pa.int64()))
        for n in (0, 1)
    )
    finish = AGGREGATES["approx_count_distinct"].finish
    got = value_folds.estimated_count(buckets, least).to_pylist()
    assert got == [finish(group, b"INT") for group in groups]


def test_nothing_at_all() -> None:
    """No groups, as of a file without rows."""
    values, counts = lists([], GsqlType.INT)
    assert value_folds.distinct_count(values, counts).to_pylist() == []
    assert value_folds.quantile(0.5, values, counts).to_pylist() == []
    assert value_folds.last(values, counts).to_pylist() == []
    assert value_folds.most_frequent(1, GsqlType.INT, values, counts).to_pylist() == []
    assert value_folds.estimated_count(values, counts).to_pylist() == []
