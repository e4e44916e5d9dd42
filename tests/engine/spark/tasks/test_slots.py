"""Slots for work that holds its rows: never more at a time than there are, the largest first."""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor

import pytest

from gscope.engine.spark.tasks.slots import Slots


def test_the_largest_of_those_that_wait_gets_the_next_slot() -> None:
    slots = Slots(1)
    begun: list[int] = []

    def work(rows: int) -> None:
        with slots.held(rows):
            begun.append(rows)

    with ThreadPoolExecutor(8) as pool, slots.held(1):
        for number, rows in enumerate((5, 9, 2, 9, 7)):
            pool.submit(work, rows)
            while len(slots._waiting) <= number:
                threading.Event().wait(0.001)
    assert begun == [9, 9, 7, 5, 2]


def test_no_more_hold_a_slot_than_there_are() -> None:
    slots = Slots(3)
    lock = threading.Lock()
    held, most = 0, 0

    def work(rows: int) -> None:
        nonlocal held, most
        with slots.held(rows):
            with lock:
                held += 1
                most = max(most, held)
            threading.Event().wait(0.001)
            with lock:
                held -= 1

    with ThreadPoolExecutor(16) as pool:
        list(pool.map(work, range(200)))
    assert most == 3


def test_a_failure_gives_its_slot_back() -> None:
    slots = Slots(1)
    with pytest.raises(ZeroDivisionError), slots.held(1):
        raise ZeroDivisionError
    with slots.held(1):
        pass
