"""Interfaces advance together; heartbeats are true; late is decided by packets alone."""

from __future__ import annotations

import os
import queue
import threading
from contextlib import contextmanager
from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.capture.replay.scripted import (
    SECOND,
    YEAR,
    Replayed,
    ScriptedRuntime,
    beats,
)
from tests.capture.sources.files.capture_bytes import pcap_of

from gscope.capture.heartbeats.demands import Demands
from gscope.capture.heartbeats.mode import HeartbeatMode
from gscope.capture.log.batches import StreamSpec
from gscope.capture.log.log import StreamLog, read_log
from gscope.capture.process.observers import CaptureObservers
from gscope.capture.replay import side_by_side, trace_clock
from gscope.capture.replay.side_by_side import PART_BYTES
from gscope.capture.replay.trace_clock import HEARTBEAT_PACKETS, ClockSettings, TraceClock
from gscope.capture.replay.trace_interface import TraceInterface
from gscope.capture.sources.files.file import FileSource
from gscope.capture.sources.read_ahead import RingSource
from gscope.queries.expressions.types import Direction
from gscope.queries.int64 import MAX_TIME_NS, MIN_TIME_NS
from gscope.queries.streams.messages import EndOfStream, Heartbeat
from gscope.queries.streams.process_events import CaptureProgress

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

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


@given(
    st.lists(st.lists(st.integers(0, 40), min_size=1, max_size=5), min_size=1, max_size=8),
    st.integers(0, 12),
)
def test_nothing_is_promised_before_the_skew_is_known(
    tmp_path_factory: pytest.TempPathFactory, seconds: list[list[int]], calls: int
) -> None:
    """The skew becomes known after some steps: no packet is late, and every promise is kept."""
    times = [[each * SECOND for each in block] for block in seconds]
    flat = [each for block in times for each in block]
    deepest_ns = max(max(flat[: n + 1]) - each for n, each in enumerate(flat))
    asked = 0

    def skew_ns() -> int | None:
        nonlocal asked
        asked += 1
        return deepest_ns if asked > calls else None

    folder = tmp_path_factory.mktemp("log")
    replayed = Replayed(folder, {"a": times}, skew_ns=skew_ns, settings=EVERY_TICK)
    replayed.check()
    assert replayed.runtimes["a"].times == flat
    assert replayed.interfaces["a"].late_packets == 0
    if asked < calls:
        assert beats(replayed, "a") == []
        assert replayed.interfaces["a"].source_state().skew_ns is None


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
            patch.setattr(side_by_side, "PART_BYTES", part_bytes)
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


@pytest.mark.parametrize("skew_ns", [SECOND, lambda: None], ids=["known", "unknown"])
def test_packets_of_a_pipe_that_is_held_open_are_promised_before_the_next_one_comes(
    tmp_path: Path, skew_ns: int | Callable[[], int | None]
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
        [TraceInterface("a", ring, runtime, {"all": "a"}, skew_ns)],
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
            if skew_ns == SECOND:
                assert promised[-1][0].bound >= 2 * SECOND - SECOND
            else:
                # Whatever is promised without a skew says nothing.
                assert promised == []
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


def test_a_demand_waits_until_the_skew_is_known(tmp_path: Path) -> None:
    demands = Demands(["a"])
    demands.ask({"a": {"t": 1}})
    asked = iter(range(1000))
    replayed = Replayed(
        tmp_path,
        {"a": [[n * SECOND] for n in range(20)]},
        settings=ClockSettings(SECOND, mode=HeartbeatMode.ON_DEMAND),
        skew_ns=lambda: 0 if next(asked) > 12 else None,
        demands=demands,
    )
    replayed.check()
    (beat,) = beats(replayed, "a")
    assert 3 * SECOND < beat < 19 * SECOND
    promised = [m.punctuations[0].bound for m in replayed.messages if isinstance(m, Heartbeat)]
    assert promised == [beat, 19 * SECOND]
