"""A relay between logs that are served on this host.

Restarts, refusals, inputs that come and go.
"""

from __future__ import annotations

import shutil
import threading
import time
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any

import pyarrow.parquet as pq
import pytest
from tests.capture.relay.lftas import aggregation, folded, rows_of, selection, table

from gscope.capture.live.stop import LiveStop
from gscope.capture.log.batches import StreamSpec
from gscope.capture.log.budget import AdmitAll
from gscope.capture.log.consumers import Consumer
from gscope.capture.log.description import describe_program
from gscope.capture.log.log import StreamLog, read_log
from gscope.capture.log.remote.address import LogAddress
from gscope.capture.log.remote.client import RemoteLog
from gscope.capture.log.server import LogServer
from gscope.capture.log.stream_heartbeat import StreamHeartbeat
from gscope.capture.log.stream_rows import extents_of
from gscope.capture.relay.endpoints import FixedEndpoint
from gscope.capture.relay.held_rows import BATCH_BYTES, Shelf
from gscope.capture.relay.input_reader import InputReader
from gscope.capture.relay.relay_loop import RelayLoop
from gscope.capture.settings import RelayInput, RelaySettings
from gscope.errors import DisconnectedError
from gscope.queries.catalog.aggregate.partial_op import PartialOp
from gscope.queries.expressions.types import GsqlType
from gscope.queries.plan.program import Program
from gscope.queries.streams.messages import Batch, EndOfStream, Heartbeat, Punctuation

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from gscope.queries.plan.program import Lfta

PATIENCE_S = 12.0

MEMORY_BYTES = 3 * BATCH_BYTES
"""Room for two batches of a few rows: those after them are in files."""

FLOW = aggregation([GsqlType.STRING], [(PartialOp.COUNT, GsqlType.INT)])
PICK = replace(selection(), name="pick")
PROGRAM = Program(("eth0",), (FLOW, PICK), (), (), ())
STREAMS = ("flow@eth0", "pick@eth0")


class Sensor:
    """A log that is served, with what a daemon would write."""

    def __init__(self, folder: Path, program: Program = PROGRAM) -> None:
        self.folder = folder
        self.program = program
        specs = [StreamSpec.from_lfta(lfta, "eth0") for lfta in program.lftas]
        self.log = StreamLog(folder / "log", specs, most_registered=4)
        self.server = LogServer(self.log, folder / "sock", lftas=describe_program(program))
        self.beats = 0

    def write(self, lfta: Lfta, *rows: tuple[Any, ...]) -> None:
        """Log rows at once: those that a killed daemon has in memory are not what is tested."""
        found = table(lfta, rows)
        stream = lfta.stream("eth0")
        latest = self.log.latest.get(stream)
        promises = () if latest is None else latest.punctuations
        beat = StreamHeartbeat(stream, promises)
        self.log.write_rows(found, extents_of(found, lfta), self.beats, self.beats, beat)

    def beat(self, epoch: int) -> None:
        self.beats += 1
        bounds = {
            STREAMS[0]: (Punctuation("tb", epoch), Punctuation("fine", 10 * epoch)),
            STREAMS[1]: (Punctuation("time", 10 * epoch),),
        }
        beats = [StreamHeartbeat(stream, promises) for stream, promises in bounds.items()]
        self.log.write_heartbeat(self.beats, self.beats, beats)

    def end(self) -> None:
        self.log.end(STREAMS)

    def stop(self) -> None:
        if not self.log.is_closed:
            self.log.close()
            self.server.stop()

    def restarted(self) -> Sensor:
        self.stop()
        again = Sensor(self.folder, self.program)
        again.beats = self.beats
        return again


class Relay:
    """A relay in a thread, which can be cut off at any moment as a kill would."""

    def __init__(self, folder: Path, sensors: dict[str, Path], **settings: Any) -> None:
        self.folder = folder
        folder.mkdir(exist_ok=True)
        specs = [StreamSpec.from_lfta(lfta, "eth0") for lfta in PROGRAM.lftas]
        budget = AdmitAll(settings.pop("log_bytes", 1 << 30))
        self.log = StreamLog(folder / "log", specs, consumers=[Consumer("job")], budget=budget)
        inputs = tuple(RelayInput(name, str(path)) for name, path in sensors.items())
        self.reports: list[tuple[str, str]] = []
        self.shelf = Shelf(folder / "rows", settings.pop("limit_bytes", 1 << 30), MEMORY_BYTES)
        self.loop = RelayLoop(
            PROGRAM,
            RelaySettings(inputs, **settings),
            {name: FixedEndpoint(LogAddress(path / "sock")) for name, path in sensors.items()},
            self.log,
            budget,
            self.shelf,
            folder,
            lambda *report: self.reports.append(report),
        )
        self.stopped = LiveStop()
        self.failure: BaseException | None = None
        self.turns = 0
        self.dies_at: int | None = None
        self.thread = threading.Thread(target=self._run, daemon=True)
        self.thread.start()

    def _run(self) -> None:
        try:
            self.loop.run(self.stopped.event, self._turn)
        except BaseException as error:  # the test looks at it
            self.failure = error

    def _turn(self) -> None:
        self.turns += 1
        if self.dies_at is not None:
            raise Killed

    def kill(self) -> None:
        """End it between two turns, with what it has in memory."""
        self.dies_at = self.turns
        self.thread.join(PATIENCE_S)
        self.log.close()

    def read_all(self) -> None:
        """Acknowledge what is in the log of the first LFTA."""
        self.log.acknowledge("job", {STREAMS[0]: self.log.positions[STREAMS[0]].end})

    def join(self) -> None:
        self.thread.join(PATIENCE_S)
        assert not self.thread.is_alive()
        self.log.close()
        if self.failure is not None:
            raise self.failure


class Killed(BaseException):
    """Ends a relay where a kill would."""


def eventually(holds: Callable[[], Any]) -> None:
    until = time.monotonic() + PATIENCE_S
    while not holds():
        assert time.monotonic() < until
        time.sleep(0.01)


def logged(folder: Path, lfta: Lfta) -> list[tuple[Any, ...]]:
    """The rows of an LFTA in a log; the promises between them are checked."""
    rows = []
    bounds: dict[str, int] = {}
    names = [column.name for column in lfta.schema.columns]
    for message in read_log(folder / "log"):
        if message.stream != lfta.stream("eth0"):
            continue
        if isinstance(message, Batch):
            found = rows_of(pq.read_table(folder / "log" / message.path).select(names))
            for row in found:
                assert all(row[names.index(name)] >= bound for name, bound in bounds.items())
            rows += found
        elif isinstance(message, Heartbeat):
            bounds |= {each.column: each.bound for each in message.punctuations}
    return rows


@pytest.fixture
def sensors(tmp_path: Path) -> Iterator[dict[str, Sensor]]:
    made = {name: Sensor(_folder(tmp_path, name)) for name in ("a", "b")}
    yield made
    for sensor in made.values():
        sensor.stop()


def _folder(parent: Path, name: str) -> Path:
    (parent / name).mkdir(exist_ok=True)
    return parent / name


def paths(sensors: dict[str, Sensor]) -> dict[str, Path]:
    return {name: sensor.folder for name, sensor in sensors.items()}


def flow(epoch: int, key: bytes, count: int) -> tuple[Any, ...]:
    return (epoch, 10 * epoch, key, count)


def test_rows_of_two_logs_are_one_and_all_is_acknowledged(
    tmp_path: Path, sensors: dict[str, Sensor]
) -> None:
    relay = Relay(tmp_path / "relay", paths(sensors))
    for number, sensor in enumerate(sensors.values()):
        sensor.write(FLOW, flow(1, b"x", 2), flow(1, b"y", 1), flow(2, b"x", 5))
        sensor.write(PICK, (13, number))
        sensor.beat(2)
    eventually(lambda: len(logged(relay.folder, FLOW)) == 2)
    assert sorted(logged(relay.folder, FLOW)) == [flow(1, b"x", 4), flow(1, b"y", 2)]
    for sensor in sensors.values():
        sensor.end()
    relay.join()
    assert sorted(logged(relay.folder, FLOW))[2] == flow(2, b"x", 10)
    assert sorted(logged(relay.folder, PICK)) == [(13, 0), (13, 1)]
    assert all(sensor.log.wait_acknowledged(PATIENCE_S) for sensor in sensors.values())
    ends = [m for m in read_log(relay.folder / "log") if isinstance(m, EndOfStream)]
    assert {end.stream for end in ends} == set(STREAMS)


def test_relays_and_sensors_that_are_killed_lose_and_repeat_nothing(
    tmp_path: Path, sensors: dict[str, Sensor]
) -> None:
    written: list[tuple[Any, ...]] = []
    picked: list[tuple[Any, ...]] = []
    relay = Relay(tmp_path / "relay", paths(sensors))
    for turn in range(6):
        for name, sensor in sensors.items():
            rows = [flow(turn + n, f"k{n}".encode(), 1 + turn) for n in range(3)]
            sensor.write(FLOW, *rows)
            sensor.write(PICK, (10 * turn + 5, turn))
            written += rows
            picked.append((10 * turn + 5, turn))
            sensor.beat(turn)
            if turn % 3 == 1:
                sensors[name] = sensor.restarted()
        if turn % 2:
            relay.kill()
            relay = Relay(tmp_path / "relay", paths(sensors))
        else:
            eventually(partial(has_promised, relay, turn))
    for sensor in sensors.values():
        sensor.end()
    relay.join()
    found = logged(relay.folder, FLOW)
    assert folded(FLOW, found) == folded(FLOW, written)
    assert len(found) == len(folded(FLOW, written))
    assert sorted(logged(relay.folder, PICK)) == sorted(picked)
    assert not any(status["late_tuples_total"] for status in late(relay))


def has_promised(relay: Relay, epoch: int) -> bool:
    return relay.loop.outlets[0].stream.promised.get("tb", -1) >= epoch


def late(relay: Relay) -> list[dict[str, int]]:
    return [
        {"late_tuples_total": port.late_tuples_total}
        for outlet in relay.loop.outlets
        for port in outlet.stream.ports.values()
    ]


def test_an_input_that_goes_is_reported_and_left_out_when_it_stays_away(
    tmp_path: Path, sensors: dict[str, Sensor]
) -> None:
    times = {"timeout_ns": 300_000_000, "absent_after_ns": 900_000_000}
    relay = Relay(tmp_path / "relay", paths(sensors), **times)
    for sensor in sensors.values():
        sensor.write(FLOW, flow(1, b"x", 1))
        sensor.beat(1)
    eventually(lambda: relay.loop.outlets[0].stream.promised.get("tb") == 1)
    sensors["b"].stop()

    def still_going() -> bool:
        sensors["a"].beat(2)
        time.sleep(0.1)
        return len(logged(relay.folder, FLOW)) == 1

    eventually(still_going)
    reported = [message for name, message in relay.reports if name == "b"]
    assert "answers wait for it" in reported[0]
    assert "answers continue without it" in reported[1]
    assert logged(relay.folder, FLOW) == [flow(1, b"x", 2)]
    sensors["b"] = sensors["b"].restarted()
    sensors["b"].write(FLOW, flow(1, b"late", 1), flow(2, b"y", 1))
    for sensor in sensors.values():
        sensor.end()
    relay.join()
    assert ("b", "answers again") in relay.reports
    assert sorted(logged(relay.folder, FLOW))[1:] == [flow(2, b"y", 1)]
    assert sum(each["late_tuples_total"] for each in late(relay)) == 1


def test_a_stop_closes_epochs_that_are_not_complete(
    tmp_path: Path, sensors: dict[str, Sensor]
) -> None:
    relay = Relay(tmp_path / "relay", paths(sensors))
    for sensor in sensors.values():
        sensor.write(FLOW, flow(3, b"x", 1))
        sensor.beat(3)
        sensor.write(FLOW, flow(3, b"x", 1))
        sensor.write(PICK, (31, 1))
        sensor.beat(3)
    eventually(lambda: len(logged(relay.folder, PICK)) == 2)
    relay.stopped.request()
    relay.join()
    assert logged(relay.folder, FLOW) in ([flow(3, b"x", 2)], [flow(3, b"x", 4)])


def test_all_streams_of_a_sensor_that_began_a_new_log_are_acknowledged(
    tmp_path: Path, sensors: dict[str, Sensor], monkeypatch: pytest.MonkeyPatch
) -> None:
    logs: list[str] = []
    acknowledge = InputReader.acknowledge

    def noted(reader: InputReader, log: str, cursors: Any) -> None:
        if reader.name == "a":
            logs.append(log)
        acknowledge(reader, log, cursors)

    monkeypatch.setattr(InputReader, "acknowledge", noted)
    relay = Relay(tmp_path / "relay", paths(sensors))
    for number in range(2):
        for sensor in sensors.values():
            sensor.write(FLOW, flow(number, b"x", 1))
            sensor.write(PICK, (10 * number, 1))
            sensor.beat(number + 1)
        eventually(partial(has_promised, relay, number + 1))
        if not number:
            sensors["a"].stop()
            shutil.rmtree(sensors["a"].folder / "log")
            sensors["a"] = Sensor(sensors["a"].folder)
            eventually(lambda: relay.loop.statuses["a"].connects_total == 2)
    for sensor in sensors.values():
        sensor.end()
    relay.join()
    assert sorted(logged(relay.folder, FLOW)) == [flow(0, b"x", 2), flow(1, b"x", 2)]
    assert all(sensor.log.wait_acknowledged(0) for sensor in sensors.values())
    # Cursors of both in turn would replace those that are not sent yet.
    new = sensors["a"].log.identity
    assert set(logs[logs.index(new) :]) == {new}


def test_an_acknowledgement_that_is_lost_is_sent_again_while_messages_come(
    tmp_path: Path, sensors: dict[str, Sensor], monkeypatch: pytest.MonkeyPatch
) -> None:
    acknowledge = RemoteLog.acknowledge
    lost: list[str] = []

    def lose_one(log: RemoteLog, cursors: Any) -> None:
        if str(log.address) not in lost:
            lost.append(str(log.address))
            raise DisconnectedError
        acknowledge(log, cursors)

    monkeypatch.setattr(RemoteLog, "acknowledge", lose_one)
    relay = Relay(tmp_path / "relay", paths(sensors), timeout_ns=1 << 60)
    for sensor in sensors.values():
        sensor.write(FLOW, flow(1, b"x", 1))
        sensor.beat(2)
    eventually(lambda: all(acknowledged(sensor) for sensor in sensors.values()))
    assert len(lost) == 2
    relay.stopped.request()
    relay.join()


def test_a_relay_whose_log_is_full_waits_for_its_readers(
    tmp_path: Path, sensors: dict[str, Sensor]
) -> None:
    relay = Relay(tmp_path / "relay", paths(sensors), log_bytes=1)
    for epoch in range(3):
        for sensor in sensors.values():
            sensor.write(FLOW, flow(epoch, b"x", 1))
            sensor.beat(epoch + 1)
        if not epoch:
            eventually(lambda: logged(relay.folder, FLOW))
    turns = relay.turns
    eventually(lambda: relay.turns > turns + 2)
    assert logged(relay.folder, FLOW) == [flow(0, b"x", 2)]
    for sensor in sensors.values():
        sensor.end()

    def ends() -> bool:
        relay.read_all()
        return not relay.thread.is_alive()

    eventually(ends)
    relay.join()
    assert relay.log.totals[STREAMS[0]].tuples_total == 3


def acknowledged(sensor: Sensor) -> bool:
    return any(any(cursors.values()) for cursors in sensor.log.acknowledged.values())


@pytest.mark.parametrize("name", ["", "root"])
def test_inputs_forget_a_relay_that_was_stopped_unless_its_user_has_named_it(
    tmp_path: Path, sensors: dict[str, Sensor], name: str
) -> None:
    relay = Relay(tmp_path / "relay", paths(sensors), consumer=name)
    for sensor in sensors.values():
        sensor.log.register("slow")
        sensor.write(FLOW, flow(3, b"x", 1))
        sensor.beat(4)
    eventually(lambda: logged(relay.folder, FLOW))
    eventually(lambda: all(acknowledged(sensor) for sensor in sensors.values()))
    relay.stopped.request()
    relay.join()
    for sensor in sensors.values():
        assert set(sensor.log.acknowledged) == ({"slow", "root"} if name else {"slow"})
    # The next one of that name begins where it ended, another one with all that there is.
    again = Relay(tmp_path / "again", paths(sensors), consumer=name)
    for sensor in sensors.values():
        sensor.write(FLOW, flow(5, b"y", 1))
        sensor.end()
    again.join()
    earlier = [] if name else [flow(3, b"x", 2)]
    assert logged(again.folder, FLOW) == [*earlier, flow(5, b"y", 2)]


def test_acknowledgements_that_a_kill_at_the_end_lost_are_sent_by_the_next_process(
    tmp_path: Path, sensors: dict[str, Sensor], monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as patched:
        patched.setattr(InputReader, "acknowledge", lambda *_: None)
        relay = Relay(tmp_path / "relay", paths(sensors))
        for sensor in sensors.values():
            sensor.write(FLOW, flow(1, b"x", 1))
            sensor.end()
        relay.join()
    assert not any(sensor.log.wait_acknowledged(0) for sensor in sensors.values())
    Relay(tmp_path / "relay", paths(sensors)).join()
    assert all(sensor.log.wait_acknowledged(0) for sensor in sensors.values())
    assert logged(relay.folder, FLOW) == [flow(1, b"x", 2)]


def test_rows_beyond_the_limit_of_held_rows_do_not_stop_the_input_that_is_awaited(
    tmp_path: Path, sensors: dict[str, Sensor]
) -> None:
    for sensor in sensors.values():
        sensor.beat(0)
    relay = Relay(tmp_path / "relay", paths(sensors), limit_bytes=1)
    eventually(partial(has_promised, relay, 0))
    for epoch in range(1, 21):
        sensors["a"].write(FLOW, *(flow(epoch, f"{n}".encode(), 1) for n in range(100)))
        sensors["a"].beat(epoch)
    # The input waits while the shelf is full: not all of its rows come before the other goes on.
    eventually(lambda: relay.loop.outlets[0].stream.held_rows >= 100)
    turns = relay.turns
    eventually(lambda: relay.turns > turns + 2)
    assert relay.loop.outlets[0].stream.held_rows < 2000
    for epoch in range(1, 21):
        sensors["b"].write(FLOW, flow(epoch, b"0", 1))
        sensors["b"].beat(epoch)
    for sensor in sensors.values():
        sensor.end()
    relay.join()
    assert len(logged(relay.folder, FLOW)) == 2000
    assert list((relay.folder / "rows").iterdir()) == []
