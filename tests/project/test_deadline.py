"""The time limit of tests: it interrupts every kind of wait, and says who waited for what."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
from contextlib import contextmanager
from typing import TYPE_CHECKING

import pytest
from tests.support.deadline import LIMIT_S, TEARDOWN_S, DeadlineError, deadline

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

SLEEP = [sys.executable, "-c", "import time; time.sleep(600)"]


def join_a_thread() -> None:
    release = threading.Event()
    thread = threading.Thread(target=release.wait, name="never released", daemon=True)
    thread.start()
    try:
        thread.join()
    finally:
        release.set()
        thread.join(10)


def read_a_pipe() -> None:
    reader, writer = os.pipe()
    try:
        os.read(reader, 1)
    finally:
        os.close(reader)
        os.close(writer)


def take_a_lock() -> None:
    lock = threading.Lock()
    with lock:
        lock.acquire()


def await_a_child() -> None:
    subprocess.run(SLEEP, check=False)


def read_what_a_grandchild_may_write() -> None:
    """Wait for the end of a pipe that outlives the child: its own child has it, too."""
    waits = [sys.executable, "-c", "import sys; sys.stdin.read()"]
    program = [sys.executable, "-c", f"import subprocess; subprocess.Popen({waits!r})"]
    reader, writer = os.pipe()
    try:
        subprocess.run(program, stdin=reader, stdout=subprocess.PIPE, check=False)
    finally:
        os.close(reader)
        os.close(writer)


@pytest.mark.parametrize(
    ("wait", "culprit"),
    [
        (join_a_thread, "thread 'never released'"),
        (read_a_pipe, ""),
        (take_a_lock, ""),
        (await_a_child, "time.sleep(600)"),
        (read_what_a_grandchild_may_write, ""),
    ],
)
def test_each_wait_ends_with_who_runs_meanwhile(wait: Callable[[], None], culprit: str) -> None:
    with pytest.raises(DeadlineError, match=r"exceeded 0\.3 s") as caught, deadline(0.3):
        wait()
    assert culprit in str(caught.value)


def test_what_follows_the_failure_is_interrupted_too() -> None:
    ended = []

    @contextmanager
    def fixture() -> Iterator[None]:
        try:
            yield
        finally:
            try:
                read_a_pipe()
            finally:
                ended.append(True)

    with pytest.raises(DeadlineError), deadline(0.2, 0.2), fixture():
        take_a_lock()
    assert ended


def test_an_inner_limit_leaves_the_outer_one_as_it_was() -> None:
    def left() -> float:
        return signal.getitimer(signal.ITIMER_REAL)[0]

    handler = signal.getsignal(signal.SIGALRM)
    with deadline(50.0):
        with pytest.raises(DeadlineError), deadline(0.1):
            read_a_pipe()
        assert 40 < left() <= 50
        with deadline(30.0):
            assert 20 < left() <= 30
        assert 40 < left() <= 50
    assert signal.getsignal(signal.SIGALRM) is handler


@pytest.fixture
def limits() -> Iterator[list[float]]:
    """The limits under which fixtures begin, and their end, which is checked here."""
    yield [signal.getitimer(signal.ITIMER_REAL)[0]]
    assert 0 < signal.getitimer(signal.ITIMER_REAL)[0] <= TEARDOWN_S


def test_every_test_and_its_fixtures_have_a_limit(
    limits: list[float], pytestconfig: pytest.Config
) -> None:
    assert 0 < limits[0] <= LIMIT_S
    assert 0 < signal.getitimer(signal.ITIMER_REAL)[0] <= LIMIT_S
    # The last resort, for a wait in a library, must not come first.
    assert float(pytestconfig.getini("faulthandler_timeout")) > LIMIT_S + TEARDOWN_S
