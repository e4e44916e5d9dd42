"""Compiled kernels put each row where the definition of partitions puts its values."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
from hypothesis import given, settings
from hypothesis import strategies as st

from gscope.capture.kernels import row_partitions
from gscope.capture.kernels.row_partitions import order_by_range
from gscope.queries.expressions.types import GsqlType
from gscope.queries.plan.partitioning.partition_hash import ValueColumn, partition_of_values

if TYPE_CHECKING:
    import pytest

    from gscope.queries.expressions.expressions import Value

GUARD_BYTES = 4096
WORDS = st.integers(-(2**63), 2**63 - 1)
ADDRESSES = st.one_of(
    st.integers(0, 2**32 - 1),
    st.integers(0, 2**32 - 1).map(lambda low: 0xFFFF << 32 | low),
    st.integers(0, 2**128 - 1),
)
KINDS: dict[GsqlType, tuple[Any, Any]] = {
    GsqlType.INT: (WORDS, pa.int64()),
    GsqlType.MAC: (st.integers(-(2**31), 2**31 - 1), pa.int32()),
    GsqlType.BOOL: (st.booleans(), pa.bool_()),
    GsqlType.IP: (ADDRESSES, pa.binary(16)),
}
KIND = st.sampled_from(list(KINDS))


@st.composite
def tables(draw: st.DrawFn) -> tuple[list[tuple[GsqlType, ...]], list[list[Value]]]:
    """Return the types of members, of one or two values, and rows with a value for each."""
    members: list[tuple[GsqlType, ...]] = draw(
        st.lists(
            st.one_of(KIND.map(lambda k: (k,)), KIND.map(lambda k: (k, k))), min_size=1, max_size=3
        )
    )
    values = [st.one_of(st.none(), KINDS[kind][0]) for member in members for kind in member]
    return members, draw(st.lists(st.tuples(*values).map(list), max_size=30))


def column_of(values: list[Value], kind: GsqlType, skipped: int) -> ValueColumn:
    """Return a column that does not begin at the beginning of its memory."""
    stored = [int(v).to_bytes(16) if kind is GsqlType.IP and v is not None else v for v in values]
    whole = pa.array([None] * skipped + stored, KINDS[kind][1])
    return ValueColumn.from_arrow(whole.slice(skipped), kind)


@settings(max_examples=60, deadline=None)
@given(tables(), st.integers(0, 3), st.sampled_from([(2, 2), (7, 3), (64, 8), (1024, 8)]))
def test_rows_are_ordered_by_the_ranges_of_their_partitions(
    made: tuple[list[tuple[GsqlType, ...]], list[list[Value]]], skipped: int, sizes: tuple[int, int]
) -> None:
    members, rows = made
    partitions, ranges = sizes
    kinds = [kind for member in members for kind in member]
    columns = iter(
        [column_of([row[n] for row in rows], kind, skipped) for n, kind in enumerate(kinds)]
    )
    of_partition = (np.arange(partitions) * ranges // partitions).astype(np.uint8)
    order, ends = order_by_range(
        [[next(columns) for _ in member] for member in members], of_partition, ranges
    )
    expected: list[list[int]] = [[] for _ in range(ranges)]
    for number, row in enumerate(rows):
        values = iter(row)
        partition = partition_of_values(
            [[(next(values), kind) for kind in member] for member in members], partitions
        )
        expected[partition * ranges // partitions].append(number)
    assert order.tolist() == [number for part in expected for number in part]
    assert ends.tolist() == np.cumsum([len(part) for part in expected]).tolist()


def test_loading_writes_to_no_memory_but_its_own(monkeypatch: pytest.MonkeyPatch) -> None:
    guards: list[tuple[np.ndarray[Any, Any], bytes]] = []

    def at(array: np.ndarray[Any, Any]) -> int:
        """Return the address of a copy between bytes that are known."""
        guarded = np.full(array.nbytes + 2 * GUARD_BYTES, 0xA5, np.uint8)
        guarded[GUARD_BYTES : GUARD_BYTES + array.nbytes] = array.view(np.uint8)
        guards.append((guarded, guarded.tobytes()))
        return int(guarded.ctypes.data) + GUARD_BYTES

    monkeypatch.setattr(row_partitions, "_at", at)
    row_partitions.load_kernels()
    assert guards
    assert all(guarded.tobytes() == before for guarded, before in guards)
