"""A join holds in memory what the heap allows, and sorts what is more."""

from __future__ import annotations

from gscope.engine.spark.jvm.heap import joined_rows
from gscope.engine.spark.tasks.task import MAX_TASK_ROWS


def test_a_small_heap_holds_few_rows_and_a_large_one_as_many_as_a_task_may_read() -> None:
    assert joined_rows(256 << 20) == 0
    assert 400_000 < joined_rows(512 << 20) < 600_000
    assert joined_rows(2 << 30) == MAX_TASK_ROWS
    assert joined_rows(64 << 30) == MAX_TASK_ROWS


def test_fewer_long_rows_are_held() -> None:
    assert joined_rows(512 << 20, 64) == joined_rows(512 << 20)
    assert 200 < joined_rows(512 << 20, 256 << 10) < 300
