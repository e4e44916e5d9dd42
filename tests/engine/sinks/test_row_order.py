"""The order of rows, compared with Python's sort, for any order of the input."""

from __future__ import annotations

import random
import struct
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gscope.engine.sinks.row_order import in_order

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
