"""The fold equals a dictionary of lists, wherever it is cut into steps."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.engine.running.fold_reference import Query, Reference, Row, Tuple, compiled, epoch_rows

from gscope.engine.running.fold import Epochs, fold
from gscope.engine.running.vectors import from_arrow

if TYPE_CHECKING:
    from pathlib import Path

BIG = (1 << 63) - 1
QUERIES = [
    "SELECT tb, ip, sum_of_dups(n), count(*) FROM src GROUP BY tb, ip"
    " CLOSING_WHEN or_aggr(x) = 1 OR count(*) = 0",
    "SELECT tb, ip, i, running_sum(x), running_count(*), running_count(x), sum(x), max(ip), min(n)"
    " FROM src GROUP BY tb, ip, i CLOSING_WHEN running_count(*) > 4 and count(*) = 0",
    "SELECT tb, moving_sum(x, 3), moving_avg(x, 2), moving_avg(f, 3),"
    " moving_sum(f, 1), ewma(f, 0.3)"
    " FROM src GROUP BY tb CLOSING_WHEN moving_sum(n, 4) IS NULL",
    "SELECT tb * 10 as t, n % 2 as odd, ewma(x, 1), running_sum(f), sum_of_dups(f), sum_of_dups(s)"
    " FROM src GROUP BY tb, n HAVING count(*) > 0 AND n <> 3 CLOSING_WHEN count(x) = 1",
    "SELECT tb, s, f, sum_of_dups(ip), count_distinct(n), avg(x) FROM src GROUP BY tb, s, f"
    " CLOSING_WHEN tb % 3 = 0 or length(s) > 2",
    "SELECT tb, i, first(x), last(x), first(s), last(ip), median(n), count_diff(x), stddev(f)"
    " FROM src GROUP BY tb, i CLOSING_WHEN last(x) = 2",
    "SELECT tb, ip, running_count(*), at_end() FROM src GROUP BY tb, ip"
    " HAVING count(*) = 0 OR at_end() CLOSING_WHEN count(*) = 0",
]
TUPLES = st.fixed_dictionaries(
    {
        "tb": st.integers(0, 12) | st.sampled_from([40, 41]),
        "ip": st.sampled_from([0xFFFF0A000001, 0xFFFF0A000002, 1 << 127]),
        "n": st.integers(0, 4),
        "x": st.sampled_from([None, 0, 1, 2, 7, BIG]),
        "f": st.sampled_from([None, 0.0, -0.0, 0.1, 0.7, 1e300, math.inf, math.nan]),
        "s": st.sampled_from([None, b"", b"a", b"\xff\x00", b"abc"]),
        "i": st.sampled_from([b"a", b"b"]),
    }
)
CASES = [compiled(text) for text in QUERIES]


def plain(value: Any) -> Any:
    """Return values that can be compared, NaN with NaN included."""
    return "NaN" if isinstance(value, float) and math.isnan(value) else value


def shown(rows: list[Row]) -> list[Row]:
    return sorted((tuple(plain(v) for v in row) for row in rows), key=repr)


def answers_of(query: Query, tables: list[pa.Table]) -> list[Row]:
    schema = query.node.schema
    rows: list[Row] = []
    for table in tables:
        assert table.column_names == list(schema.names)
        columns = [from_arrow(table[c.name], c.type).to_list() for c in schema.columns]
        rows += zip(*columns, strict=True)
    return rows


@pytest.mark.parametrize("number", range(len(CASES)))
@settings(max_examples=30)
@given(
    tuples=st.lists(TUPLES, max_size=25),
    cuts=st.lists(st.integers(-2, 45), max_size=4),
    last=st.none() | st.integers(0, 45),
)
def test_the_fold_is_the_reference_wherever_it_is_cut(
    number: int, tuples: list[Tuple], cuts: list[int], last: int | None
) -> None:
    query = CASES[number]
    by_epoch: dict[int, list[Tuple]] = {}
    for each in tuples:
        by_epoch.setdefault(each["tb"], []).append(each)
    # A cut is a punctuation: the clock has reached it.
    clock = max([*cuts, *([] if last is None else [last])], default=-math.inf)
    end = max([*by_epoch, clock])
    reference = Reference(query)
    want: list[Row] = []
    if by_epoch:
        for epoch in range(min(by_epoch), int(end) + 1):
            is_last = epoch == end
            want += reference.end_epoch(epoch, by_epoch.get(epoch, []), is_last=is_last)
    tables: list[pa.Table] = []
    state: pa.Table | None = None
    low: float = -math.inf
    for high in [*sorted(set(cuts)), math.inf]:
        released = [t for t in tuples if low <= t["tb"] < high]
        epochs = Epochs(low, high, clock)
        state, _ = fold(query.node, epoch_rows(query.node, released), state, epochs, tables.append)
        low = high
    assert shown(answers_of(query, tables)) == shown(want)


def test_the_state_survives_a_file(tmp_path: Path) -> None:
    query = CASES[0]
    one = {"ip": 5, "n": 1, "x": 0, "f": None, "s": None, "i": b"a"}
    first: list[pa.Table] = []
    state, _ = fold(
        query.node,
        epoch_rows(query.node, [{"tb": 1, **one}, {"tb": 1, **one, "n": 2}]),
        None,
        Epochs(-math.inf, 2),
        first.append,
    )
    pq.write_table(state, tmp_path / "state.parquet")
    state = pq.read_table(tmp_path / "state.parquet")
    second: list[pa.Table] = []
    rows = epoch_rows(query.node, [{"tb": 2, **one}])
    state, _ = fold(query.node, rows, state, Epochs(2, 4), second.append)
    assert answers_of(query, first) == [(1, 5, 0, 2)]
    assert answers_of(query, second) == [(2, 5, 1, 1), (3, 5, 1, 0)]
    assert state.num_rows == 0


def test_no_state_is_kept_behind_the_end_of_the_input() -> None:
    query = CASES[0]
    rows = epoch_rows(
        query.node, [{"tb": 1, "ip": 5, "n": 1, "x": 0, "f": None, "s": None, "i": b"a"}]
    )
    kept = {}
    for high in (2, math.inf):
        state, _ = fold(query.node, rows, None, Epochs(-math.inf, high, 1), lambda _: None)
        kept[high] = state.num_rows
    assert kept == {2: 1, math.inf: 0}


def test_time_in_which_no_group_lives_costs_nothing() -> None:
    query = CASES[0]
    one = {"ip": 5, "n": 1, "x": 0, "f": None, "s": None, "i": b"a"}
    tables: list[pa.Table] = []
    rows = epoch_rows(query.node, [{"tb": 0, **one}, {"tb": 1 << 60, **one}])
    fold(query.node, rows, None, Epochs(-math.inf, 1 << 61), tables.append)
    assert [row[0] for row in answers_of(query, tables)] == [0, 1, 1 << 60, (1 << 60) + 1]


def test_groups_of_both_zeros_are_one_group() -> None:
    query = CASES[4]
    one = {"ip": 5, "n": 1, "x": 3, "s": b"", "i": b"a"}
    tables: list[pa.Table] = []
    rows = epoch_rows(query.node, [{"tb": 1, **one, "f": 0.0}, {"tb": 2, **one, "f": -0.0}])
    fold(query.node, rows, None, Epochs(-math.inf, 3), tables.append)
    # tb % 3 = 0 closes no epoch here, so the group of epoch 1 also has a row for epoch 2.
    assert [row[:3] for row in answers_of(query, tables)] == [(1, b"", 0.0), (2, b"", 0.0)]
