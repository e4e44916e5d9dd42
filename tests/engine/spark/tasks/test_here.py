"""Tasks that run in the job's own process."""

from __future__ import annotations

import threading
from dataclasses import dataclass, field

import pytest
from tests.support.gscope_command import PATIENCE_S

from gscope.engine.spark.tasks.here import TasksHere


@dataclass
class Meeting:
    """A task that ends when the others have begun, too."""

    barrier: threading.Barrier

    def run(self, attempt: str) -> str:
        self.barrier.wait(PATIENCE_S)
        return attempt


@dataclass
class Numbered:
    number: int
    began: list[int] = field(default_factory=list)

    def run(self, attempt: str) -> tuple[int, str]:
        self.began.append(self.number)
        if self.number < 0:
            message = f"task {self.number}"
            raise ValueError(message)
        return self.number, attempt


def test_results_are_in_the_order_of_the_tasks_and_attempts_have_names_of_their_own() -> None:
    here = TasksHere(3)
    first = here.run([Numbered(number) for number in range(20)])
    second = here.run([Numbered(number) for number in range(20)])
    assert [number for number, _ in first] == list(range(20))
    assert len({attempt for _, attempt in (*first, *second)}) == 40
    assert here.ended == 40


def test_as_many_tasks_run_at_a_time_as_there_are_cores() -> None:
    here = TasksHere(3)
    assert len(here.run([Meeting(threading.Barrier(1))])) == 1
    barrier = threading.Barrier(3)
    assert len(here.run([Meeting(barrier) for _ in range(6)])) == 6


def test_without_a_number_all_cores_of_the_process_are_used() -> None:
    assert TasksHere().cores >= 1


def test_a_failure_is_raised_and_tasks_that_wait_do_not_begin() -> None:
    began: list[int] = []
    here = TasksHere(1)
    with pytest.raises(ValueError, match="task -1"):
        here.run(
            [Numbered(1, began), Numbered(-1, began), *(Numbered(9, began) for _ in range(500))]
        )
    assert began[:2] == [1, -1]
    assert len(began) < 502
    assert here.ended == len(began)


def test_no_tasks_give_no_results() -> None:
    assert TasksHere(2).run([]) == []
