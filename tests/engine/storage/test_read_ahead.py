"""Outputs that are read before their turn are those that would be read in turn."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING

import pyarrow as pa
import pytest

from gscope.engine.storage.read_ahead import MOST_BYTES, ReadAhead

if TYPE_CHECKING:
    from collections.abc import Iterator

WAIT_S = 30


def _table(number: int) -> pa.Table:
    return pa.table({"n": [number]})


def _pieces(number: int) -> Iterator[pa.Table]:
    for piece in range(number % 3):
        yield _table(10 * number + piece)


def test_rows_are_the_same_in_the_same_order() -> None:
    sizes = {number: (MOST_BYTES + 1 if number % 4 == 1 else 1) for number in range(40)}
    with ReadAhead(sizes, _pieces) as ahead:
        found = [table["n"][0].as_py() for number in sizes for table in ahead.tables(number)]
    assert found == [10 * number + piece for number in sizes for piece in range(number % 3)]


def test_the_next_is_read_while_one_is_delivered() -> None:
    is_read = {number: threading.Event() for number in range(4)}

    def read(number: int) -> Iterator[pa.Table]:
        yield _table(number)
        is_read[number].set()

    with ReadAhead(dict.fromkeys(is_read, 1), read) as ahead:
        next(ahead.tables(0))
        assert all(is_read[number].wait(WAIT_S) for number in (1, 2, 3))


def test_only_a_few_are_in_memory() -> None:
    begun = []
    all_begun = threading.Semaphore(0)

    def read(number: int) -> Iterator[pa.Table]:
        begun.append(number)
        all_begun.release()
        yield _table(number)

    with ReadAhead(dict.fromkeys(range(20), 1), read) as ahead:
        for number in range(20):
            for _ in ahead.tables(number):
                for _ in range(min(20, number + 4) - len(begun)):
                    assert all_begun.acquire(timeout=WAIT_S)
                assert max(begun) <= number + 3
    assert sorted(begun) == list(range(20))


def test_long_outputs_wait_for_their_turn() -> None:
    threads = {}

    def read(number: int) -> Iterator[pa.Table]:
        threads[number] = threading.current_thread()
        yield _table(number)

    with ReadAhead({0: 1, 1: MOST_BYTES + 1, 2: 1}, read) as ahead:
        for number in range(3):
            list(ahead.tables(number))
    assert threads[1] is threading.current_thread()
    assert threading.current_thread() not in (threads[0], threads[2])


def test_an_error_is_raised_when_its_output_is_due() -> None:
    def read(number: int) -> Iterator[pa.Table]:
        if number == 1:
            message = "damaged"
            raise OSError(message)
        yield _table(number)

    with ReadAhead({0: 1, 1: 1, 2: 1}, read) as ahead:
        assert len(list(ahead.tables(0))) == 1
        with pytest.raises(OSError, match="damaged"):
            list(ahead.tables(1))


def test_after_the_end_no_thread_reads() -> None:
    before = threading.active_count()
    with ReadAhead(dict.fromkeys(range(9), 1), _pieces):
        pass
    assert threading.active_count() == before
