"""The order of rows, compared with Python's sort, for any order of the input."""

from __future__ import annotations

import math
import random
import struct
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gscope.engine.sinks.row_order import first_rows, in_order
from gscope.queries.plan.row_order import SortKey

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

_INTEGERS = st.one_of(
    st.integers(0, 3),
    st.integers(-(2**63), 2**63 - 1),
    st.sampled_from([-(2**63), -1, 0, 2**31, 2**32 - 1, 2**32, 2**63 - 1]),
)
_ADDRESSES = st.one_of(
    st.integers(0, 3).map(lambda n: bytes(10) + b"\xff\xff\x0a\x00\x00" + bytes([n])),
    st.binary(min_size=16, max_size=16),
)
_FLOATS = st.one_of(st.sampled_from([0.0, -0.0, float("inf"), -float("inf")]), st.floats())
_COLUMNS: dict[pa.DataType, st.SearchStrategy[Any]] = {
    pa.int64(): _INTEGERS,
    pa.int32(): st.integers(-(2**31), 2**31 - 1),
    pa.bool_(): st.booleans(),
    pa.float64(): _FLOATS,
    pa.binary(16): _ADDRESSES,
    pa.binary(): st.one_of(_ADDRESSES, st.binary(max_size=3)),
    pa.string(): st.text(st.characters(max_codepoint=255), max_size=3),
}


def _float_rank(value: float) -> int:
    if math.isnan(value):
        return 1 << 63
    (bits,) = struct.unpack(">q", struct.pack(">d", value))
    return int(bits) if bits >= 0 else int(bits) ^ ((1 << 63) - 1)


_RANKS: dict[pa.DataType, Callable[[Any], Any]] = {
    pa.float64(): _float_rank,
    pa.string(): lambda text: text.encode("iso-8859-1"),
}


def rank(kind: pa.DataType, value: Any) -> tuple[bool, Any]:
    return (False, 0) if value is None else (True, _RANKS.get(kind, lambda known: known)(value))


@st.composite
def tables(draw: st.DrawFn) -> pa.Table:
    kinds = draw(st.lists(st.sampled_from(list(_COLUMNS)), min_size=1, max_size=5))
    rows = draw(st.integers(0, 30))
    columns = {}
    for number, kind in enumerate(kinds):
        values = _COLUMNS[kind]
        values = draw(st.sampled_from([values, st.one_of(st.none(), values)]))
        few = draw(st.lists(values, min_size=1, max_size=4))
        column = draw(st.lists(st.sampled_from(few), min_size=rows, max_size=rows))
        columns[f"c{number}"] = pa.array(column, kind)
    return pa.table(columns)


def shown(table: pa.Table) -> list[str]:
    return [
        repr(row) for row in zip(*(column.to_pylist() for column in table.columns), strict=True)
    ]


def by_python(table: pa.Table, names: Sequence[str]) -> list[str]:
    """Return rows sorted by the columns ``names``, by repeated stable sorts, last column first."""
    places = list(range(table.num_rows))
    for name in reversed(names):
        kind, values = table.schema.field(name).type, table[name].to_pylist()
        places.sort(key=lambda place: rank(kind, values[place]))
    rows = shown(table)
    return [rows[place] for place in places]


@given(tables())
def test_rows_ascend_by_all_columns_from_left_to_right(table: pa.Table) -> None:
    assert shown(in_order(table)) == by_python(table, table.column_names)


@given(tables(), st.data())
def test_temporal_columns_decide_first(table: pa.Table, data: st.DataObject) -> None:
    last = table.column_names[-1]
    others = [name for name in table.column_names if name != last]
    assert shown(in_order(table, [last])) == by_python(table, [last, *others])


@given(tables(), st.randoms(use_true_random=False), st.integers(1, 5))
def test_neither_the_order_in_which_rows_come_nor_their_pieces_show(
    table: pa.Table, chance: random.Random, pieces: int
) -> None:
    places = list(range(table.num_rows))
    chance.shuffle(places)
    size = len(places) // pieces + 1
    shuffled = pa.concat_tables(
        table.take(pa.array(places[start : start + size], pa.int64()))
        for start in range(0, max(1, len(places)), size)
    )
    assert shown(in_order(shuffled)) == shown(in_order(table))


def test_a_falling_column_falls_and_null_stays_first() -> None:
    table = pa.table({"n": ["b", "a", "c", "d"], "f": pa.array([7, None, -7, 7], pa.int64())})
    assert in_order(table, ["-f"])["n"].to_pylist() == ["a", "b", "d", "c"]


@pytest.mark.parametrize("wide", [1, 4])
def test_many_ties_of_wide_values_are_broken_by_the_last_column(wide: int) -> None:
    chance = random.Random(3)
    rows = 5000
    few = [chance.getrandbits(63) for _ in range(3)]
    columns = {f"w{n}": [chance.choice(few) for _ in range(rows)] for n in range(wide)}
    columns["last"] = [chance.getrandbits(63) - 2**62 for _ in range(rows)]
    table = pa.table(columns)
    assert shown(in_order(table)) == by_python(table, table.column_names)


_NEGATIVE_NAN = struct.unpack(">d", b"\xff\xf8" + bytes(6))[0]


@st.composite
def keys_of(draw: st.DrawFn, table: pa.Table) -> list[SortKey]:
    names = draw(st.permutations(table.column_names))
    return [SortKey(name, draw(st.booleans()), draw(st.booleans())) for name in names]


def sorted_by(table: pa.Table, keys: Sequence[SortKey]) -> list[int]:
    """Return the places of rows sorted by ``keys``, by repeated stable sorts, last key first."""
    places = list(range(table.num_rows))
    for key in reversed(keys):
        kind, values = table.schema.field(key.name).type, table[key.name].to_pylist()
        ranks = [rank(kind, value)[1] for value in values]
        known = [place for place in places if values[place] is not None]
        missing = [place for place in places if values[place] is None]
        known.sort(key=ranks.__getitem__, reverse=key.is_descending)
        places = [*missing, *known] if key.has_nulls_first else [*known, *missing]
    return places


@given(tables(), st.data(), st.integers(1, 12))
def test_the_first_rows_are_those_of_the_sorted_table(
    table: pa.Table, data: st.DataObject, limit: int
) -> None:
    keys = data.draw(keys_of(table))
    expected = [shown(table)[place] for place in sorted_by(table, keys)]
    assert shown(in_order(table, keys=keys)) == expected
    first = in_order(first_rows(table, keys, limit), keys=keys)
    assert shown(first) == expected[:limit]


@given(tables(), st.data(), st.integers(1, 3))
def test_the_first_rows_of_each_epoch_are_those_of_its_rows_alone(
    table: pa.Table, data: st.DataObject, limit: int
) -> None:
    epochs = data.draw(
        st.lists(st.integers(0, 3), min_size=table.num_rows, max_size=table.num_rows)
    )
    keys = [SortKey("epoch", has_nulls_first=True), *data.draw(keys_of(table))]
    table = table.append_column("epoch", pa.array(epochs, pa.int64()))
    places = sorted_by(table, keys)
    expected = [
        shown(table)[place]
        for epoch in sorted(set(epochs))
        for place in [each for each in places if epochs[each] == epoch][:limit]
    ]
    assert shown(in_order(first_rows(table, keys, limit, "epoch"), keys=keys)) == expected


def test_nan_of_either_sign_is_greater_than_any_number() -> None:
    values = [math.inf, _NEGATIVE_NAN, 1.0, math.nan, None, -0.0, 0.0]
    table = pa.table({"x": values, "n": list(range(len(values)))})
    ascending = in_order(table, keys=[SortKey("x")])["n"].to_pylist()
    descending = in_order(table, keys=[SortKey("x", is_descending=True)])["n"].to_pylist()
    assert ascending == [5, 6, 2, 0, 1, 3, 4]
    assert descending == [1, 3, 0, 2, 6, 5, 4]
