"""Inputs that send all the time, and that the relay does not read.

They are neither silent nor absent.
"""

from __future__ import annotations

import multiprocessing
import os
import signal
import threading
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from tests.capture.relay.test_relay_loop import (
    FLOW,
    PATIENCE_S,
    STREAMS,
    Relay,
    Sensor,
    flow,
    late,
    logged,
)

from gscope.capture.relay.held_rows import BATCH_BYTES
from gscope.capture.relay.input_status import InputState, InputStatus

if TYPE_CHECKING:
    from collections.abc import Iterator
    from multiprocessing.connection import Connection

ABSENT_NS = 1_000_000_000
TIMES = {"timeout_ns": ABSENT_NS // 2, "absent_after_ns": ABSENT_NS}


@pytest.fixture
def sensors(tmp_path: Path) -> Iterator[dict[str, Sensor]]:
    for name in "ab":
        (tmp_path / name).mkdir()
    made = {name: Sensor(tmp_path / name) for name in "ab"}
    yield made
    for sensor in made.values():
        sensor.stop()


class Traffic:
    """What both sensors write, an epoch every 30 ms."""

    def __init__(self, sensors: dict[str, Sensor], rows: dict[str, int]) -> None:
        self.sensors = sensors
        self.rows = rows
        self.epoch = 1
        self.written: list[tuple[Any, ...]] = []

    def go_on(self, seconds: float) -> None:
        until = time.monotonic() + seconds
        while time.monotonic() < until:
            for name, sensor in self.sensors.items():
                found = [flow(self.epoch, f"{name}{n}".encode(), 1) for n in range(self.rows[name])]
                if found:
                    sensor.write(FLOW, *found)
                    self.written += found
                sensor.beat(self.epoch + 1)
            self.epoch += 1
            time.sleep(0.03)

    def end(self) -> None:
        for sensor in self.sensors.values():
            sensor.end()


def relay_process(folder: str, sensors: dict[str, str], pipe: Connection) -> None:
    """Run a relay until its inputs have ended, and send what it has reported and lost."""
    paths = {name: Path(path) for name, path in sensors.items()}
    relay = Relay(Path(folder), paths, **TIMES)
    pipe.send("ready")
    pipe.recv()
    relay.join()
    pipe.send((relay.reports, sum(each["late_tuples_total"] for each in late(relay))))


def test_a_relay_that_stands_still_discards_no_rows(
    tmp_path: Path, sensors: dict[str, Sensor]
) -> None:
    here, there = multiprocessing.Pipe()
    paths = {name: str(sensor.folder) for name, sensor in sensors.items()}
    process = multiprocessing.get_context("spawn").Process(
        target=relay_process, args=(str(tmp_path / "relay"), paths, there), daemon=True
    )
    process.start()
    assert process.pid is not None
    assert here.recv() == "ready"
    # All heartbeats of a sensor without rows come at once, those of the other one batch by batch.
    traffic = Traffic(sensors, {"a": 0, "b": 1})
    traffic.go_on(1)
    for _ in range(2):
        os.kill(process.pid, signal.SIGSTOP)
        traffic.go_on(2 * ABSENT_NS / 1e9)
        os.kill(process.pid, signal.SIGCONT)
        traffic.go_on(1)
    traffic.end()
    here.send("join")
    reports, late_tuples = here.recv()
    process.join(PATIENCE_S)
    assert (reports, late_tuples) == ([], 0)
    assert sorted(logged(tmp_path / "relay", FLOW)) == sorted(traffic.written)


def test_inputs_that_a_full_relay_holds_back_are_not_absent(
    tmp_path: Path, sensors: dict[str, Sensor]
) -> None:
    paths = {name: sensor.folder for name, sensor in sensors.items()}
    limits = {"log_bytes": 20_000, "limit_bytes": 6 * BATCH_BYTES}
    relay = Relay(tmp_path / "relay", paths, **limits, **TIMES)
    is_there, is_over = threading.Event(), threading.Event()
    read = 0

    def job() -> None:
        nonlocal read
        cursor = 0
        while not is_over.is_set():
            if not is_there.wait(0.1):
                continue
            for message in relay.log.read({STREAMS[0]: cursor}, timeout_s=0.1):
                read += getattr(message, "rows", 0)
                cursor = message.sequence + 1
            if cursor:
                relay.log.acknowledge("job", {STREAMS[0]: cursor})

    reader = threading.Thread(target=job)
    reader.start()
    try:
        traffic = Traffic(sensors, {"a": 20, "b": 20})
        is_there.set()
        traffic.go_on(1)
        is_there.clear()
        traffic.go_on(3 * ABSENT_NS / 1e9)
        assert any(each.is_held_back for each in relay.loop.readers.values())
        is_there.set()
        traffic.go_on(1)
        traffic.end()
        until = time.monotonic() + PATIENCE_S
        while read < len(traffic.written) and time.monotonic() < until:
            time.sleep(0.05)
    finally:
        is_over.set()
        reader.join()
    assert relay.reports == []
    assert [each["late_tuples_total"] for each in late(relay)] == [0] * 4
    assert read == len(traffic.written)
    relay.join()


def test_silence_is_counted_while_an_input_is_read() -> None:
    now_ns = 0
    status = InputStatus("a", "here", 2, 5, monotonic_ns=lambda: now_ns)
    status.on_received(None)
    now_ns = 100
    status.on_unread(99)
    assert (status.silent_ns, status.look()) == (1, None)
    status.on_unread(99)
    assert status.silent_ns == 0
    states = []
    while now_ns < 105:
        now_ns += 1
        status.look()
        states.append(status.state)
    assert states == [InputState.UP, *[InputState.FAILED] * 3, InputState.ABSENT]
