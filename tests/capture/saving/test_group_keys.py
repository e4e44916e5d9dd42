"""Keys of groups as a set: a set of Python tuples as the oracle."""

from __future__ import annotations

import random
from typing import Any

import pyarrow as pa
import pytest

from gscope.capture.saving.group_keys import GroupKeys

KINDS: list[tuple[Any, Any, list[object]]] = [
    # As answers have the column, and as LFTAs do.
    (pa.int64(), pa.int32(), [0, 1, -7, 2**31 - 1]),
    (pa.binary(), pa.binary(16), [bytes(16), bytes(15) + b"\1", b"\xff" * 16]),
    (pa.binary(), pa.binary(), [b"", b"a", b"\0", b"a\0"]),
    (pa.bool_(), pa.bool_(), [True, False]),
    (pa.int64(), pa.int64(), [-(2**63), 2**63 - 1, 5]),
]


@pytest.mark.parametrize("seed", range(12))
def test_rows_are_found_as_in_a_set_of_tuples(seed: int) -> None:
    chance = random.Random(seed)
    kinds = chance.sample(KINDS, 1 + seed % 4)
    names = [f"k{n}" for n in range(len(kinds))]

    def rows(count: int) -> list[tuple[object, ...]]:
        return [
            tuple(chance.choice([None, *values]) for _, _, values in kinds) for _ in range(count)
        ]

    def columns(found: list[tuple[object, ...]], side: int) -> list[pa.Array]:
        return [pa.array([row[n] for row in found], k[side]) for n, k in enumerate(kinds)]

    wanted = rows(chance.choice([0, 1, 5, 30]))
    asked = rows(200)
    keys = GroupKeys(pa.table(columns(wanted, 0), names))
    batch = pa.record_batch(columns(asked, 1), names)
    assert keys.contain(batch, "up").tolist() == [row in set(wanted) for row in asked]


def test_the_interface_is_a_key_that_all_rows_have() -> None:
    keys = GroupKeys(pa.table({"interface": pa.array([b"up", b"up"]), "k": [1, 2]}))
    batch = pa.record_batch({"k": pa.array([2, 3], pa.int32())})
    assert keys.contain(batch, "up").tolist() == [True, False]
    assert keys.contain(batch, "down").tolist() == [False, False]


def test_without_keys_all_packets_are_of_one_group() -> None:
    batch = pa.record_batch({"c": pa.array([1, 2])})
    assert GroupKeys(pa.table({})).contain(batch, "up").tolist() == [False, False]
    assert GroupKeys(pa.table({"": pa.nulls(1)})).contain(batch, "up").tolist() == [True, True]
