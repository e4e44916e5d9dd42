"""Interfaces advance together; heartbeats are true; late is decided by packets alone."""

from __future__ import annotations

import os
import queue
import threading
from contextlib import contextmanager
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.capture.sources.files.capture_bytes import pcap_of

from gscope.capture.heartbeats.demands import Demands
from gscope.capture.heartbeats.mode import HeartbeatMode
from gscope.capture.lfta.counters import InterfaceCounters, LftaCounters
from gscope.capture.log.batches import StreamSpec
from gscope.capture.log.log import StreamLog, read_log
from gscope.capture.process.observers import CaptureObservers
from gscope.capture.replay import side_by_side, trace_clock
from gscope.capture.replay.side_by_side import PART_BYTES
from gscope.capture.replay.trace_clock import HEARTBEAT_PACKETS, ClockSettings, TraceClock
from gscope.capture.replay.trace_interface import TraceInterface
from gscope.capture.sources.base import NO_RING, InputState, RingUse, SourceStats
from gscope.capture.sources.block import PADDING_BYTES, Block
from gscope.capture.sources.files.file import FileSource
from gscope.capture.sources.read_ahead import RingSource
from gscope.errors import CaptureError
from gscope.queries.expressions.types import Direction
from gscope.queries.int64 import MAX_TIME_NS, MIN_TIME_NS
from gscope.queries.streams.messages import Batch, EndOfStream, Extent, Heartbeat, Punctuation
from gscope.queries.streams.process_events import CaptureProgress

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

SECOND = 1_000_000_000
YEAR = 365 * 86_400 * SECOND


class ScriptedSource:
    """Hands out packets of the given times, a block a list."""

    def __init__(self, name: str, blocks: list[list[int]]) -> None:
        self.name = name
        self.device = name
        self.stats = SourceStats()
        self.size_bytes: int | None = sum(map(len, blocks)) * 100
        self.damage: list[str] = []
        self._blocks = [list(block) for block in blocks]
        self._position = 0

    def open(self) -> None:
        pass

    def next_block(self) -> Block | None:
        if not self._blocks:
            return None
        times = np.array(self._blocks.pop(0), np.int64)
        self.stats.received_packets += times.size
        self._position += 100 * times.size
        numbers = np.arange(times.size)
        return Block(
            np.zeros(PADDING_BYTES, np.uint8),
            numbers.astype(np.int64),
            numbers.astype(np.int32),
            numbers.astype(np.int32),
            times,
            numbers.astype(np.int32),
            times.size,
            self._position,
        )

    def is_ready(self, timeout_s: float) -> bool:
        return True

    def state(self) -> InputState:
        return InputState.READING if self._blocks else InputState.ENDED

    def ring_use(self) -> RingUse:
        return NO_RING

    def close(self) -> None:
        pass


class ScriptedRuntime:
    """Puts out one tuple a packet: its time; promises that nothing below the bound follows."""

    def __init__(self, stream: str, log: StreamLog) -> None:
        self._stream = stream
        self._log = log
        self.bound_ns = MIN_TIME_NS
        self.calls = 0
        self.beats = 0
        self.times: list[int] = []

    def process(self, block: Block, start: int, until_ns: int = MAX_TIME_NS) -> int:
        self.calls += 1
        times = block.time_ns[start : block.count]
        at_or_past = np.flatnonzero(times >= until_ns)
        end = start + (int(at_or_past[0]) if at_or_past.size else times.size)
        done = block.time_ns[start:end].tolist()
        if done:
            self.times += done
            batch = pa.record_batch({"t": pa.array(done, pa.int64())})
            self._log.append(self._stream, batch, (Extent("t", min(done), max(done)),))
        return end

    def heartbeat(self, clock_ns: int, skew_ns: int = 0) -> dict[str, tuple[Punctuation, ...]]:
        self.beats += 1
        return {"all": (Punctuation("t", max(clock_ns - skew_ns, MIN_TIME_NS)),)}

    @property
    def interface_counters(self) -> InterfaceCounters:
        return InterfaceCounters(len(self.times))

    def lfta_counters(self, lfta: str) -> LftaCounters:
        return LftaCounters(matched_tuples=len(self.times))

    def finish(self) -> None:
        pass

    def set_threshold(self, lfta: str, threshold: int) -> None:
        raise AssertionError(lfta, threshold)

    def begin_lane(self, lane: int) -> None:
        raise AssertionError(lane)


class Replayed:
    """A finished replay of scripted interfaces, and what it left in the log."""

    def __init__(
        self,
        folder: Path,
        inputs: dict[str, list[list[int]]],
        *,
        skew_ns: int = 10 * SECOND,
        settings: ClockSettings | None = None,
        stop: threading.Event | None = None,
        demands: Demands | None = None,
        monotonic: Callable[[], float] = lambda: 0.0,
    ) -> None:
        self.progress: list[CaptureProgress] = []
        self.specs = [StreamSpec(name, (("t", Direction.INCREASING),)) for name in inputs]
        log = StreamLog(folder, self.specs)
        self.runtimes = {name: ScriptedRuntime(name, log) for name in inputs}
        self.interfaces = {
            name: TraceInterface(
                name, ScriptedSource(name, blocks), self.runtimes[name], {"all": name}, skew_ns
            )
            for name, blocks in inputs.items()
        }
        clock = TraceClock(
            list(self.interfaces.values()),
            log,
            settings or ClockSettings(SECOND),
            stop=stop,
            observers=CaptureObservers(on_progress=self.progress.append),
            demands=demands,
            monotonic=monotonic,
            wall_ns=lambda: 77,
        )
        clock.run()
        log.close()
        self.messages = read_log(folder)

    def check(self) -> None:
        """Every stream ends once, keeps its promises, and clocks never fall."""
        bounds: dict[str, int] = {}
        ended: set[str] = set()
        clock = MIN_TIME_NS
        for message in self.messages:
            assert message.stream not in ended
            match message:
                case Heartbeat():
                    assert message.clock_ns >= clock
                    clock = message.clock_ns
                    (promise,) = message.punctuations
                    assert promise.bound >= bounds.get(message.stream, MIN_TIME_NS)
                    bounds[message.stream] = promise.bound
                case Batch():
                    assert message.extent("t").least >= bounds.get(message.stream, MIN_TIME_NS)
                case EndOfStream():
                    ended.add(message.stream)
        assert ended == set(self.interfaces)


def beats(replayed: Replayed, stream: str) -> list[int]:
    """The clock at each heartbeat but the last, which comes with the end."""
    return [
        m.clock_ns for m in replayed.messages if isinstance(m, Heartbeat) and m.stream == stream
    ][:-1]


EVERY_TICK = ClockSettings(SECOND, heartbeat_every_tick=True)


def test_silent_and_late_beginning_interfaces_beat_with_the_others(tmp_path: Path) -> None:
    replayed = Replayed(
        tmp_path,
        {"a": [[0, SECOND, 2 * SECOND, 3 * SECOND]], "b": [[3 * SECOND]]},
        settings=EVERY_TICK,
    )
    replayed.check()
    assert beats(replayed, "b") == [SECOND, 2 * SECOND, 3 * SECOND]
    hop, _ = next(m for m in replayed.messages if isinstance(m, Heartbeat)).trace
    assert (hop.node, hop.arrived_ns) == ("a", 77)
    assert {"packets_total": 1, "tuples_in_total": 1}.items() <= dict(hop.counters).items()


def test_an_ended_interface_ends_its_streams_at_once(tmp_path: Path) -> None:
    replayed = Replayed(
        tmp_path, {"a": [[0]], "b": [[0, 5 * SECOND], [6 * SECOND]]}, settings=EVERY_TICK
    )
    replayed.check()
    kinds = [(m.stream, type(m)) for m in replayed.messages]
    assert kinds.index(("a", EndOfStream)) < kinds.index(("b", Heartbeat))
    assert beats(replayed, "a") == []


def test_the_last_heartbeat_promises_the_time_of_the_last_packet(tmp_path: Path) -> None:
    inputs: dict[str, list[list[int]]] = {
        "a": [[0, 5 * SECOND, 4 * SECOND]],
        "b": [[7 * SECOND]],
        "silent": [[]],
    }
    for settings in (EVERY_TICK, ClockSettings(60 * SECOND)):
        replayed = Replayed(tmp_path / f"{settings.interval_ns}", inputs, settings=settings)
        last = {m.stream: m for m in replayed.messages if isinstance(m, Heartbeat)}
        bounds = {stream: m.punctuations[0].bound for stream, m in last.items()}
        assert bounds["a"] == 5 * SECOND
        assert bounds["b"] == 7 * SECOND
        for stream in ("a", "b"):
            own = [type(m) for m in replayed.messages if m.stream == stream]
            assert own[-2:] == [Heartbeat, EndOfStream]
        assert [type(m) for m in replayed.messages if m.stream == "silent"] == [EndOfStream]


def test_decades_of_silence_are_one_jump(tmp_path: Path) -> None:
    replayed = Replayed(
        tmp_path,
        {f"i{n}": [[n * YEAR // 4, n * YEAR // 4 + SECOND]] for n in range(80)},
        settings=EVERY_TICK,
    )
    replayed.check()
    assert sum(runtime.calls for runtime in replayed.runtimes.values()) <= 160
    assert len(replayed.progress) <= 161


def test_interfaces_stay_together_block_by_block(tmp_path: Path) -> None:
    blocks = [[n * SECOND + k * SECOND // 10 for k in range(10)] for n in range(50)]
    replayed = Replayed(tmp_path, {"a": blocks, "b": blocks})
    replayed.check()
    assert all(runtime.calls <= 60 for runtime in replayed.runtimes.values())


@pytest.mark.parametrize("sparse", [[0], [0, 400], list(range(0, 400, 40))])
def test_no_interface_runs_far_ahead_of_a_denser_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, sparse: list[int]
) -> None:
    """In threads, a step is as long as the densest interface takes for ``PART_BYTES``."""
    monkeypatch.setattr(side_by_side, "usable_cores", lambda: 2)
    for module in (side_by_side, trace_clock):
        monkeypatch.setattr(module, "PART_BYTES", 2000)
    monkeypatch.setattr(trace_clock, "HEARTBEAT_PACKETS", 1)
    dense = [[n * SECOND + k * SECOND // 10 for k in range(10)] for n in range(400)]
    inputs = {"dense": dense, "sparse": [[n * SECOND] for n in sparse]}
    replayed = Replayed(tmp_path, inputs)
    replayed.check()
    assert replayed.runtimes["dense"].times == [time for block in dense for time in block]
    assert replayed.runtimes["sparse"].times == [n * SECOND for n in sparse]
    # 4,000 packets of 100 bytes: two blocks are expected in 2,000 bytes.
    gaps = np.diff([0, *beats(replayed, "dense")])
    assert max(gaps) <= 4 * SECOND
    assert len(gaps) > 100


def test_what_fails_in_a_thread_ends_the_replay(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(side_by_side, "usable_cores", lambda: 2)

    def broken(self: ScriptedRuntime, *_: object) -> int:
        if self._stream == "b":
            raise CaptureError(self._stream)
        return 1

    monkeypatch.setattr(ScriptedRuntime, "process", broken)
    with pytest.raises(CaptureError, match="b"):
        Replayed(tmp_path, {"a": [[1]], "b": [[1]]})


def test_heartbeats_are_coalesced_by_packets_and_time(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(trace_clock, "HEARTBEAT_PACKETS", 50_000)
    inputs = {"a": [[n * SECOND] for n in range(100)]}
    quiet = Replayed(tmp_path / "quiet", inputs)
    assert beats(quiet, "a") == []
    now = iter(range(10_000))
    slow = Replayed(tmp_path / "slow", inputs, monotonic=lambda: next(now) / 16)
    slow.check()
    assert 10 < len(beats(slow, "a")) < 60
    many = Replayed(tmp_path / "many", {"a": [[n * SECOND] * 30_000 for n in range(5)]})
    assert len(beats(many, "a")) == 2


def test_a_far_future_time_makes_what_follows_late(tmp_path: Path) -> None:
    replayed = Replayed(
        tmp_path,
        {"a": [[1, 2, 100 * YEAR, 3], [4, 100 * YEAR - SECOND]], "b": [[1], [5]]},
        settings=EVERY_TICK,
    )
    replayed.check()
    assert replayed.interfaces["a"].late_packets == 2
    assert replayed.runtimes["a"].times == [1, 2, 100 * YEAR, 100 * YEAR - SECOND]
    assert replayed.runtimes["b"].times == [1, 5]


def test_the_ends_of_time_do_not_hang(tmp_path: Path) -> None:
    replayed = Replayed(
        tmp_path,
        {"a": [[MIN_TIME_NS, 0, MAX_TIME_NS, MAX_TIME_NS]], "b": [[MAX_TIME_NS]]},
        settings=EVERY_TICK,
    )
    replayed.check()
    assert len(replayed.runtimes["a"].times) == 4


def test_progress_ends_with_everything(tmp_path: Path) -> None:
    replayed = Replayed(tmp_path, {"a": [[1], [2]], "b": [[]]})
    assert replayed.progress[-1] == CaptureProgress(2, 200, 200, SECOND)


TIMES = st.lists(
    st.lists(st.integers(0, 40).map(lambda n: n * SECOND // 2), max_size=6), max_size=4
)


@given(
    st.dictionaries(st.sampled_from("abc"), TIMES, min_size=1),
    st.integers(0, 12),
    st.booleans(),
    st.sampled_from([1, 2]),
    st.sampled_from([1, 150, 400, PART_BYTES]),
    st.sampled_from([1, HEARTBEAT_PACKETS]),
)
def test_late_is_decided_by_packets_alone_and_all_promises_hold(
    tmp_path_factory: pytest.TempPathFactory,
    inputs: dict[str, list[list[int]]],
    skew: int,
    every_tick: bool,
    cores: int,
    part_bytes: int,
    heartbeat_packets: int,
) -> None:
    for interval in (SECOND, 7 * SECOND // 3):
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(side_by_side, "usable_cores", lambda: cores)
            for module in (side_by_side, trace_clock):
                patch.setattr(module, "PART_BYTES", part_bytes)
            patch.setattr(trace_clock, "HEARTBEAT_PACKETS", heartbeat_packets)
            replayed = Replayed(
                tmp_path_factory.mktemp("log"),
                inputs,
                skew_ns=skew * SECOND,
                settings=ClockSettings(interval, heartbeat_every_tick=every_tick),
            )
        replayed.check()
        for name, blocks in inputs.items():
            wanted, late = _in_time([time for block in blocks for time in block], skew * SECOND)
            assert replayed.runtimes[name].times == wanted
            assert replayed.interfaces[name].late_packets == late


def _in_time(times: list[int], skew_ns: int) -> tuple[list[int], int]:
    wanted: list[int] = []
    latest = MIN_TIME_NS
    for time in times:
        latest = max(latest, time)
        if time >= latest - skew_ns:
            wanted.append(time)
    return wanted, len(times) - len(wanted)


@contextmanager
def running(target: Callable[[], object]) -> Iterator[threading.Thread]:
    thread = threading.Thread(target=target)
    thread.start()
    yield thread
    thread.join(10)
    assert not thread.is_alive()


def test_a_stop_interrupts_the_waiting_of_a_paced_replay(tmp_path: Path) -> None:
    stop = threading.Event()
    done: list[Replayed] = []

    def replay() -> None:
        done.append(
            Replayed(
                tmp_path,
                {"a": [[0, 20 * YEAR]]},
                settings=ClockSettings(SECOND, speed=0.001),
                stop=stop,
            )
        )

    with running(replay):
        stop.set()
    done[0].check()
    assert done[0].runtimes["a"].times == []
    assert done[0].interfaces["a"].unread_packets == 2


def test_packets_of_a_pipe_that_is_held_open_are_promised_before_the_next_one_comes(
    tmp_path: Path,
) -> None:
    """Nothing but a heartbeat lets readers have them, and the writer may be silent for hours."""
    fifo = tmp_path / "fifo"
    os.mkfifo(fifo)
    writer = os.open(fifo, os.O_RDWR)
    os.write(writer, pcap_of([b"abc"] * 3))
    ring = RingSource(FileSource(str(fifo)))
    ring.open()
    log = StreamLog(tmp_path / "log", [StreamSpec("a", (("t", Direction.INCREASING),))])
    runtime = ScriptedRuntime("a", log)
    came: queue.SimpleQueue[CaptureProgress] = queue.SimpleQueue()
    clock = TraceClock(
        [TraceInterface("a", ring, runtime, {"all": "a"}, SECOND)],
        log,
        ClockSettings(SECOND),
        observers=CaptureObservers(on_progress=came.put),
    )
    with running(clock.run):
        try:
            while came.get(timeout=10).packets < 3:
                pass
            promised = [
                m.punctuations for m in read_log(tmp_path / "log") if isinstance(m, Heartbeat)
            ]
            assert promised[-1][0].bound >= 2 * SECOND - SECOND
            assert runtime.times[-1] == 2 * SECOND + 7_000
        finally:
            ring.close()
    log.close()
    os.close(writer)


class PacedClock(threading.Event):
    """An event whose waiting makes time pass."""

    now_s = 0.0

    def wait(self, timeout: float | None = None) -> bool:
        self.now_s += timeout or 0.0
        return False


def test_pace_follows_the_trace_through_silence(tmp_path: Path) -> None:
    paced = PacedClock()
    replayed = Replayed(
        tmp_path,
        {"a": [[0, 4 * SECOND]]},
        settings=ClockSettings(SECOND, speed=2.0),
        stop=paced,
        monotonic=lambda: paced.now_s,
    )
    replayed.check()
    assert paced.now_s == pytest.approx(2.5)
    assert beats(replayed, "a") == [n * SECOND for n in range(1, 5)]


def test_a_fast_pace_takes_decades_of_silence_in_steps_that_it_can_keep_up_with(
    tmp_path: Path,
) -> None:
    paced = PacedClock()
    replayed = Replayed(
        tmp_path,
        {"a": [[0, 10**9 * SECOND]]},
        settings=ClockSettings(SECOND, speed=1e9),
        stop=paced,
        monotonic=lambda: paced.now_s,
    )
    replayed.check()
    assert paced.now_s == pytest.approx(1.0, rel=0.01)
    assert len(beats(replayed, "a")) < 2_000


def every_tick(mode: HeartbeatMode) -> ClockSettings:
    return ClockSettings(SECOND, heartbeat_every_tick=True, mode=mode)


def test_off_an_interface_promises_what_its_own_packets_show(tmp_path: Path) -> None:
    replayed = Replayed(
        tmp_path,
        {"a": [[n * SECOND for n in range(20)]], "b": [[0, 19 * SECOND]], "late": [[18 * SECOND]]},
        settings=every_tick(HeartbeatMode.OFF),
        skew_ns=0,
    )
    replayed.check()
    promised = {stream: [0] for stream in ("a", "b", "late")}
    for message in replayed.messages:
        if isinstance(message, Heartbeat):
            promised[message.stream].append(message.punctuations[0].bound // SECOND)
    assert promised["a"] == [0, *range(20)]
    assert promised["b"] == [0, 0, 19]
    assert promised["late"] == [0, 18]


def test_on_demand_only_the_interface_asked_promises_the_clock(tmp_path: Path) -> None:
    demands = Demands(["a", "b"])
    demands.ask({"b": {"t": 1}})
    replayed = Replayed(
        tmp_path,
        {"a": [[n * SECOND for n in range(10)]], "b": [[9 * SECOND]]},
        settings=every_tick(HeartbeatMode.ON_DEMAND),
        skew_ns=0,
        demands=demands,
    )
    replayed.check()
    assert beats(replayed, "b") == [SECOND]
