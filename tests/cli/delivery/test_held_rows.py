"""Held rows: whatever the steps, one order, and nothing before its time."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gscope.cli.delivery.held_rows import HeldRows
from gscope.engine.sinks.row_order import in_order

if TYPE_CHECKING:
    from collections.abc import Sequence

_ROWS = st.lists(st.tuples(st.integers(0, 12), st.integers(0, 3)), max_size=40)


def table(rows: Sequence[tuple[int, int]]) -> pa.Table:
    columns = list(zip(*rows, strict=True)) or [(), ()]
    return pa.table({name: pa.array(c, pa.int64()) for name, c in zip("tv", columns, strict=True)})


def rows_of(tables: Sequence[pa.Table]) -> list[tuple[int, int]]:
    return [row for each in tables for row in zip(*each.to_pydict().values(), strict=True)]


@pytest.mark.parametrize("falls", [False, True])
@given(rows=_ROWS, cuts=st.lists(st.integers(0, 12), max_size=5), pieces=st.integers(1, 4))
def test_the_steps_in_which_rows_come_do_not_show(
    falls: bool, rows: list[tuple[int, int]], cuts: list[int], pieces: int
) -> None:
    """A step may give rows from its bound on, and some or all of those of the next steps."""
    sign = -1 if falls else 1
    order = ["-t" if falls else "t"]
    held = HeldRows(order)
    delivered: list[tuple[int, int]] = []
    left = [(sign * time, value) for time, value in rows]
    bounds = [*sorted(cuts), math.inf]
    for bound in bounds:
        # Everything below the bound comes now, and every second row behind it.
        now = [row for n, row in enumerate(left) if sign * row[0] < bound or n % 2]
        left = [row for n, row in enumerate(left) if not (sign * row[0] < bound or n % 2)]
        step = in_order(table(now), order)
        size = step.num_rows // pieces + 1
        portions = [step.slice(start, size) for start in range(0, max(1, step.num_rows), size)]
        came = rows_of(list(held.take(portions, bound)))
        assert all(sign * time < bound for time, _ in came)
        delivered += came
        held_back = [row for row in now if sign * row[0] < bound]
        assert not [row for row in held_back if row not in delivered]
    assert delivered == rows_of([in_order(table([(sign * t, v) for t, v in rows]), order)])
    assert list(held.rest()) == []


def test_what_is_held_comes_at_the_end() -> None:
    held = HeldRows(["t"])
    assert rows_of(list(held.take([table([(1, 1), (2, 2)])], 2))) == [(1, 1)]
    assert list(held.take([], -math.inf)) == []
    assert rows_of(list(held.rest())) == [(2, 2)]
    assert list(held.rest()) == []


def test_times_in_nanoseconds_are_compared_exactly() -> None:
    held = HeldRows(["t"])
    time = 1_480_000_000_000_000_001
    step = [table([(time - 1, 0), (time, 1)]), table([(time, 2)])]
    assert rows_of(list(held.take(step, time))) == [(time - 1, 0)]
    assert rows_of(list(held.take([], time + 1))) == [(time, 1), (time, 2)]
