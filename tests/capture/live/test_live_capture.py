"""Live capture of scripted packets by a scripted clock.

Silence, steps of the clock, late packets, the end.
"""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow.parquet as pq
import pytest
from tests.capture.replay.test_replay_capture import PACKET, flow_program

from gscope.capture.heartbeats.demands import Demands
from gscope.capture.interface.open_log import open_log
from gscope.capture.lfta.interpreter import LftaInterpreter
from gscope.capture.live.clock import LiveClock
from gscope.capture.live.devices import LiveInputs
from gscope.capture.live.live_capture import capture_live
from gscope.capture.live.stop import LiveStop
from gscope.capture.log.log import read_log
from gscope.capture.process.observers import CaptureObservers
from gscope.capture.settings import CaptureSettings, DeviceSettings, InterfaceSettings
from gscope.capture.shedding.thresholds import initial_sampling
from gscope.capture.sources.base import NO_RING, InputState, RingUse, SourceStats
from gscope.capture.sources.block import PADDING_BYTES, Block
from gscope.errors import CaptureError, UsageError
from gscope.queries.streams.messages import Batch, EndOfStream, Heartbeat

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from gscope.capture.interface.summary import CaptureSummary
    from gscope.capture.lfta.columns import ColumnBatch
    from gscope.capture.shedding.settings import SheddingSettings
    from gscope.queries.plan.split.kernel_filter import Condition

SECOND = 1_000_000_000
MINUTE = 60 * SECOND
START = 1_700_000_000 * SECOND
SKEW = SECOND // 5
STREAM = "flow@main"


class World:
    """Time that passes only where a caller waits, and the events at given times.

    Attributes:
        events: what happens, by the number of seconds after which it does.
    """

    def __init__(self) -> None:
        self.monotonic_ns = 0
        self.step_ns = 0
        self.stop = LiveStop()
        self.events: list[tuple[float, Callable[[], object]]] = []

    @property
    def wall_ns(self) -> int:
        return START + self.monotonic_ns + self.step_ns

    def at(self, seconds: float, event: Callable[[], object]) -> None:
        self.events.append((seconds, event))
        self.events.sort(key=lambda each: each[0])

    def wait(self, ns: int) -> None:
        self.monotonic_ns += ns
        while self.events and self.events[0][0] * SECOND <= self.monotonic_ns:
            self.events.pop(0)[1]()

    def step(self, ns: int) -> None:
        self.step_ns += ns

    def clock(self) -> LiveClock:
        return LiveClock(lambda: self.wall_ns, lambda: self.monotonic_ns)


class ScriptedSource:
    """A ring that the world fills; waiting for a packet passes the world's time.

    Attributes:
        is_filling: a packet is in a block that is not ready.
        has_overflowed: more packets have come before the first is read than there is room for.
    """

    def __init__(self, world: World, name: str = "main") -> None:
        self.name = name
        self.device = name
        self.stats = SourceStats()
        self.damage: list[str] = []
        self.blocks: list[list[int]] = []
        self.held = 0
        self.is_gone = False
        self.is_filling = False
        self.has_overflowed = False
        self.failure = ""
        self._world = world

    def send(self, *times: int) -> None:
        """Packets of these times are in a block that is ready."""
        self.is_filling = False
        self.blocks.append(list(times))
        self.stats.received_packets += len(times)

    def send_now(self) -> None:
        self.send(self._world.wall_ns)

    def open(self) -> None:
        pass

    def narrow(self, condition: Condition) -> None:
        pass

    def start(self) -> None:
        self.blocks.clear()
        self.stats.received_packets = 0

    def prepare(self) -> bool:
        if self.has_overflowed:
            self.start()
        return self.has_overflowed

    def wake(self) -> None:
        pass

    def next_block(self, timeout_s: float) -> Block | None:
        assert self.held == 0
        if not self.blocks:
            self._world.wait(max(1, int(timeout_s * 1e9)))
        if self.is_gone:
            message = f"{self.name} is gone"
            raise CaptureError(message)
        if not self.blocks:
            return None
        times = self.blocks.pop(0)
        self.held += 1
        count = len(times)
        data = np.frombuffer(PACKET + bytes(PADDING_BYTES), np.uint8).copy()
        lengths = np.full(count, len(PACKET), np.int32)
        offsets = np.zeros(count, np.int64)
        stamps = np.array(times, np.int64)
        return Block(data, offsets, lengths, lengths, stamps, np.ones(count, np.int32), count)

    def release(self, block: Block) -> None:
        self.held -= 1

    def is_idle(self) -> bool:
        return not self.blocks and not self.is_filling

    def state(self) -> InputState:
        return InputState.UP

    def ring_use(self) -> RingUse:
        return NO_RING

    def close(self) -> None:
        pass


class Stage:
    """A world with interfaces, and the log that capturing them leaves."""

    def __init__(self, folder: Path, *names: str) -> None:
        self.folder = folder
        self.world = World()
        self.names = names or ("main",)
        self.sources = {name: ScriptedSource(self.world, name) for name in self.names}
        self.source = self.sources[self.names[0]]
        self.program = flow_program(*self.names)
        self.demands = Demands(f"flow@{name}" for name in self.names)
        self.interface: dict[str, Any] = {"skew_ns": SKEW}
        self.timestamps = "kernel"
        self.missing: dict[str, str] = {}
        self.shedding: SheddingSettings | None = None
        self.failures: list[tuple[str, str]] = []
        self.on_ready: Callable[[], object] = lambda: None

    def run(self, stop_s: float, **settings: Any) -> CaptureSummary:
        """Capture until the world's clock has gone on by ``stop_s``."""
        self.world.at(stop_s, self.world.stop.request)
        program = self.program
        chosen = self._settings(**settings)

        def interpreted(
            interface: str, emit: Callable[[str, ColumnBatch], None]
        ) -> LftaInterpreter:
            sampling = initial_sampling(program, self.shedding)
            return LftaInterpreter(program.lftas, interface, emit, sampling=sampling)

        log = open_log(self.folder, program, chosen)
        try:
            return capture_live(
                program,
                chosen,
                log,
                LiveInputs(self.sources, self.missing, self.world.clock),
                engines=interpreted,
                stop=self.world.stop,
                observers=CaptureObservers(
                    on_ready=self.on_ready,
                    on_failure=lambda *failure: self.failures.append(failure),
                ),
                demands=self.demands,
            )
        finally:
            log.close()

    def _settings(self, **settings: Any) -> CaptureSettings:
        interfaces = tuple(
            InterfaceSettings(
                name, device=DeviceSettings(name, timestamps=self.timestamps), **self.interface
            )
            for name in self.names
        )
        return CaptureSettings(interfaces, shedding=self.shedding, **settings)

    @property
    def bounds(self) -> list[tuple[int, int]]:
        """Of each heartbeat the clock and the bound of tb, both from the start, in seconds."""
        return [
            (message.clock_ns - START, punctuation.bound)
            for message in read_log(self.folder)
            if isinstance(message, Heartbeat)
            for punctuation in message.punctuations
        ]

    @property
    def epochs(self) -> dict[int, int]:
        """Packets of each epoch in the log."""
        packets: dict[int, int] = {}
        for message in read_log(self.folder):
            if isinstance(message, Batch):
                for row in pq.read_table(self.folder / message.path).to_pylist():
                    packets[row["tb"]] = packets.get(row["tb"], 0) + row["cnt"]
        return packets


@pytest.fixture
def stage(tmp_path: Path) -> Stage:
    return Stage(tmp_path / "log")


def epoch(time_ns: int) -> int:
    return time_ns // SECOND // 10


def test_a_silent_link_closes_windows_by_the_clock(stage: Stage) -> None:
    stage.world.at(1, stage.source.send_now)
    stage.run(31)
    messages = read_log(stage.folder)
    (row,) = [n for n, message in enumerate(messages) if isinstance(message, Batch)]
    closing = messages[row + 1]
    assert isinstance(closing, Heartbeat)
    end = (epoch(START) + 1) * 10 * SECOND
    assert end + SKEW <= closing.clock_ns <= end + SKEW + SECOND // 10
    assert stage.epochs == {epoch(START): 1}


def test_a_link_that_never_had_a_packet_is_punctuated_every_interval(stage: Stage) -> None:
    stage.run(10.5)
    clocks = [clock for clock, _ in stage.bounds]
    assert len(clocks) == 13  # the first at once, then one a second, the last at the end
    assert all(0 <= after - before <= SECOND for before, after in pairwise(clocks))


def test_heartbeats_come_right_behind_the_end_of_an_epoch(stage: Stage) -> None:
    stage.run(25)
    end = epoch(START) * 10 * SECOND + 10 * SECOND - START
    first = next(clock for clock, bound in stage.bounds if bound > epoch(START))
    assert end + SKEW <= first <= end + SKEW + SECOND // 100


def test_packets_that_break_the_skew_are_late_and_counted(stage: Stage) -> None:
    stage.world.at(25, lambda: stage.source.send(START + 3 * SECOND))
    stage.world.at(26, lambda: stage.source.send(stage.world.wall_ns - SKEW // 2))
    (interface,) = stage.run(30).interfaces
    assert (interface.received, interface.late, interface.accepted) == (2, 1, 1)
    assert stage.epochs == {epoch(START + 26 * SECOND - SKEW // 2): 1}


def test_packets_that_step_back_within_the_skew_are_in_time(stage: Stage) -> None:
    stage.world.at(
        3, lambda: stage.source.send(stage.world.wall_ns, stage.world.wall_ns - SKEW // 2)
    )
    (interface,) = stage.run(30).interfaces
    assert (interface.late, interface.accepted) == (0, 2)


def test_a_backlog_keeps_the_promise_behind_its_packets(stage: Stage) -> None:
    def late_ring() -> None:
        for second in range(3, 20):
            stage.source.send(START + second * SECOND)

    stage.world.at(2.9, lambda: stage.world.wait(20 * SECOND))
    stage.world.at(2.8, late_ring)
    (interface,) = stage.run(60).interfaces
    assert (interface.late, interface.accepted) == (0, 17)


def test_while_a_block_fills_promises_stay_behind_the_last_packet(stage: Stage) -> None:
    stage.world.at(1, stage.source.send_now)
    stage.world.at(9, lambda: setattr(stage.source, "is_filling", True))
    stage.world.at(29, lambda: stage.source.send(START + 9 * SECOND))
    (interface,) = stage.run(30).interfaces
    assert (interface.late, interface.accepted) == (0, 2)


def test_the_clock_stepped_back_makes_packets_late_until_it_has_caught_up(stage: Stage) -> None:
    stage.world.at(30, lambda: stage.world.step(-2 * MINUTE))
    for second in (10, 50, 100, 170):
        stage.world.at(second, stage.source.send_now)
    (interface,) = stage.run(180).interfaces
    assert (interface.received, interface.late, interface.accepted) == (4, 2, 2)
    bounds = [bound for _, bound in stage.bounds]
    assert bounds == sorted(bounds)


def test_the_clock_stepped_ahead_is_followed_and_nothing_is_late(stage: Stage) -> None:
    stage.world.at(30, lambda: stage.world.step(5 * MINUTE))
    for second in (10, 31, 32, 50):
        stage.world.at(second, stage.source.send_now)
    (interface,) = stage.run(60).interfaces
    assert (interface.received, interface.late, interface.accepted) == (4, 0, 4)
    assert max(bound for _, bound in stage.bounds) >= epoch(START + 5 * MINUTE + 50 * SECOND)


def test_a_step_ahead_that_is_taken_back_makes_nothing_late(stage: Stage) -> None:
    stage.world.at(30, lambda: stage.world.step(5 * MINUTE))
    stage.world.at(32, lambda: stage.world.step(-5 * MINUTE))
    for second in (10, 31, 33, 50):
        stage.world.at(second, stage.source.send_now)
    (interface,) = stage.run(60).interfaces
    assert (interface.late, interface.accepted) == (0, 4)


def test_the_end_closes_windows_and_ends_the_stream(stage: Stage) -> None:
    stage.world.at(1, stage.source.send_now)
    summary = stage.run(1.05)
    *_, batch, beat, end = read_log(stage.folder)
    assert isinstance(batch, Batch)
    assert isinstance(beat, Heartbeat)
    assert isinstance(end, EndOfStream)
    assert summary.is_stopped
    (interface,) = summary.interfaces
    assert (interface.received, interface.accepted, interface.damage) == (1, 1, ())


def test_what_was_stamped_before_the_stop_is_answered_and_nothing_after_it(stage: Stage) -> None:
    stage.world.at(1.05, lambda: stage.source.send(START + SECOND - 1, START + 2 * SECOND))
    stage.world.at(0.9, lambda: setattr(stage.source, "is_filling", True))
    (interface,) = stage.run(1).interfaces
    assert (interface.received, interface.accepted, interface.damage) == (1, 1, ())


def test_a_count_ends_it_at_exactly_that_packet(stage: Stage) -> None:
    for second in (1, 2, 3):
        stage.world.at(second, lambda: stage.source.send(*[stage.world.wall_ns] * 4))
    (interface,) = stage.run(10, packets=6).interfaces
    assert (interface.received, interface.accepted, interface.unread) == (6, 6, 0)
    assert stage.world.monotonic_ns < 3 * SECOND


def test_a_duration_ends_it(stage: Stage) -> None:
    stage.run(100, duration_ns=7 * SECOND)
    assert 7 * SECOND <= stage.world.monotonic_ns <= 8 * SECOND


def test_packets_that_come_while_kernels_are_compiled_are_answered(stage: Stage) -> None:
    stage.on_ready = stage.source.send_now
    (interface,) = stage.run(15).interfaces
    assert stage.epochs == {epoch(START): 1}
    assert interface.received == 1


def test_if_too_many_come_meanwhile_none_of_them_is_answered(stage: Stage) -> None:
    stage.source.has_overflowed = True
    stage.on_ready = stage.source.send_now
    stage.world.at(1, stage.source.send_now)
    (interface,) = stage.run(15).interfaces
    assert stage.epochs == {epoch(START): 1}
    assert interface.received == 1


def test_a_duration_is_that_since_packets_are_let_in(stage: Stage) -> None:
    stage.on_ready = lambda: stage.world.wait(3 * SECOND)
    stage.run(100, duration_ns=7 * SECOND)
    assert 7 * SECOND <= stage.world.monotonic_ns <= 8 * SECOND


def test_kernel_drops_are_in_the_sum(stage: Stage) -> None:
    def drop() -> None:
        stage.source.send_now()
        stage.source.stats.received_packets += 7
        stage.source.stats.dropped_packets += 7

    stage.world.at(1, drop)
    (interface,) = stage.run(5).interfaces
    assert (interface.received, interface.dropped, interface.accepted) == (8, 7, 1)


def test_an_interface_that_is_gone_ends_alone(tmp_path: Path) -> None:
    stage = Stage(tmp_path / "log", "main", "gone")
    stage.sources["gone"].is_gone = True
    stage.world.at(3, stage.source.send_now)
    summary = stage.run(20)
    assert [interface.damage for interface in summary.interfaces] == [(), ("gone is gone",)]
    assert [interface.accepted for interface in summary.interfaces] == [1, 0]
    assert stage.failures == list(summary.failed.items()) == [("gone", "gone is gone")]
    ended = [m.stream for m in read_log(stage.folder) if isinstance(m, EndOfStream)]
    assert sorted(ended) == ["flow@gone", STREAM]


def test_a_failure_of_one_interface_stops_all(
    stage: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: object) -> bool:
        raise RuntimeError

    monkeypatch.setattr(stage.source, "is_idle", fail)
    with pytest.raises(RuntimeError):
        stage.run(5)
    assert stage.world.stop.event.is_set()


def test_the_skew_of_a_device_is_at_least_what_the_kernel_may_hold_back() -> None:
    with pytest.raises(UsageError, match="skew of the live interface 'a'"):
        CaptureSettings((InterfaceSettings("a", skew_ns=1, device=DeviceSettings("a")),))


def test_files_and_devices_do_not_mix() -> None:
    live = InterfaceSettings("a", skew_ns=SKEW, device=DeviceSettings("a"))
    with pytest.raises(UsageError, match="others are live"):
        CaptureSettings((live, InterfaceSettings("b", ("b.pcap",))))


def test_settings_of_devices_survive_json() -> None:
    device = DeviceSettings("eth0", snaplen=96, is_promiscuous=False, filter="tcp")
    settings = CaptureSettings(
        (InterfaceSettings("a", skew_ns=SKEW, device=device),), packets=7, duration_ns=SECOND
    )
    assert CaptureSettings.from_json(settings.to_json()) == settings
