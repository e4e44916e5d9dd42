"""The order of long tables against Python's sort.

They are sorted in other ways than short ones.
"""

from __future__ import annotations

import random
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pytest

from gscope.engine.sinks.order_words import OrderWords, sorted_places
from gscope.engine.sinks.row_order import first_rows, in_order
from gscope.queries.plan.row_order import SortKey

if TYPE_CHECKING:
    from collections.abc import Sequence

_V4 = bytes(10) + b"\xff\xff"
_BORDERS = [
    bytes(16),
    bytes(15) + b"\1",
    bytes(10) + b"\xff\xfe" + b"\xff" * 4,
    _V4 + bytes(4),
    _V4 + b"\xff" * 4,
    bytes(9) + b"\1" + bytes(6),
    bytes(9) + b"\1\xff\xff" + b"\7" * 4,
    bytes(7) + b"\1" + bytes(8),
    b"\1" + bytes(15),
    b"\xff" * 16,
]
"""Addresses next to the block in which IPv4 addresses are stored."""


def _addresses(chance: random.Random, distinct: int) -> list[bytes]:
    made = [
        _V4 + chance.randbytes(4)
        if chance.random() < 0.6
        else b"\x20\x01\x0d\xb8" + bytes(7) + chance.randbytes(5)
        for _ in range(distinct)
    ]
    return [*_BORDERS, *made][:distinct]


def _sorted(rows: list[tuple[Any, ...]], keys: Sequence[SortKey], names: str) -> list[Any]:
    """Return rows sorted by ``keys``, by repeated stable sorts, last key first."""
    for key in reversed(keys):
        at = names.index(key.name)
        missing = [row for row in rows if row[at] is None]
        known = [row for row in rows if row[at] is not None]
        known.sort(key=lambda row: row[at], reverse=key.is_descending)
        rows = [*missing, *known] if key.has_nulls_first else [*known, *missing]
    return rows


def _table(rows: list[tuple[Any, ...]]) -> pa.Table:
    kinds = {"a": pa.binary(16), "b": pa.binary(16), "n": pa.int32(), "w": pa.int64()}
    columns = zip(*rows, strict=True)
    return pa.table({name: pa.array(next(columns), kind) for name, kind in kinds.items()})


@pytest.mark.parametrize("has_nulls", [False, True])
@pytest.mark.parametrize("distinct", [4, 700, 1 << 20])
@pytest.mark.parametrize("count", [2_047, 2_500, 20_000, 70_000])
def test_addresses_ascend_by_their_bytes(count: int, distinct: int, has_nulls: bool) -> None:
    chance = random.Random(count + distinct)
    some: list[bytes | None] = [*_addresses(chance, min(distinct, count))]
    if has_nulls:
        some[1] = None
    words = [None, -(2**63), -1, 0, 2**63 - 1] if has_nulls else [-(2**63), 0, 1, 2**40]
    rows = [
        (chance.choice(some), chance.choice(some), chance.randrange(3), chance.choice(words))
        for _ in range(count)
    ]
    keys = [
        SortKey("n", chance.random() < 0.5),
        SortKey("a", chance.random() < 0.5, chance.random() < 0.5),
        SortKey("b", chance.random() < 0.5, chance.random() < 0.5),
        SortKey("w", chance.random() < 0.5, chance.random() < 0.5),
    ]
    expected = _sorted(rows, keys, "abnw")
    table = _table([*rows[:5], *rows]).slice(5)
    assert in_order(table, keys=keys).equals(_table(expected))
    assert in_order(first_rows(table, keys, 40), keys=keys).equals(_table(expected[:40]))


def test_a_number_continues_in_the_next_word() -> None:
    chance = random.Random(1)
    columns = [[chance.getrandbits(48) for _ in range(3)] for _ in range(5)]
    rows = [tuple(chance.choice(few) for few in columns) for _ in range(20_000)]
    keys = [(pa.array(column), SortKey("")) for column in zip(*rows, strict=True)]
    places = sorted_places(keys, len(rows))
    assert sorted(places) == list(range(len(rows)))
    assert [rows[place] for place in places] == sorted(rows)


def test_a_word_has_the_first_bits_of_a_number_that_does_not_fit() -> None:
    numbers = [pa.array([0, 2**40 - 1, 5]), pa.array([0, 2**32 - 1, 3 << 8])]
    words = OrderWords([(each, SortKey("")) for each in numbers])
    word, bits = words.next(np.zeros(3, np.uint64))
    assert bits == 64
    assert word.tolist() == [0, 2**64 - 1, 5 << 24 | 3]
    words.keep(np.array([1, 2]))
    word, bits = words.next(np.array([0, 1], np.uint64))
    assert (word.tolist(), bits) == ([0xFF, 1 << 8], 9)
    assert words.is_complete


def test_what_lies_under_a_null_does_not_decide() -> None:
    hidden = pa.Array.from_buffers(
        pa.int64(), 3, [pa.py_buffer(b"\5"), pa.array([7, -(2**63), 9]).buffers()[1]]
    )
    table = pa.table({"x": hidden, "y": [1, 2, 3]})
    assert in_order(table)["y"].to_pylist() == [2, 1, 3]
    assert in_order(table, keys=[SortKey("x", is_descending=True)])["y"].to_pylist() == [3, 1, 2]
