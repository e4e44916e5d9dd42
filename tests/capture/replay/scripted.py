"""Replays of scripted packets: interfaces without kernels, whose tuples are the packets' times."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from gscope.capture.lfta.counters import InterfaceCounters, LftaCounters
from gscope.capture.log.batches import StreamSpec
from gscope.capture.log.log import StreamLog, read_log
from gscope.capture.process.observers import CaptureObservers
from gscope.capture.replay.trace_clock import ClockSettings, TraceClock
from gscope.capture.replay.trace_interface import TraceInterface
from gscope.capture.sources.base import NO_RING, InputState, RingUse, SourceStats
from gscope.capture.sources.block import PADDING_BYTES, Block
from gscope.queries.expressions.types import Direction
from gscope.queries.int64 import MAX_TIME_NS, MIN_TIME_NS
from gscope.queries.streams.messages import Batch, EndOfStream, Extent, Heartbeat, Punctuation

if TYPE_CHECKING:
    import threading
    from collections.abc import Callable
    from pathlib import Path

    from gscope.capture.heartbeats.demands import Demands
    from gscope.queries.streams.process_events import CaptureProgress

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
        skew_ns: int | Callable[[], int | None] = 10 * SECOND,
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
