"""An interface captured by several threads, each with a ring and LFTAs that write the same streams.

The kernel distributes packets by flow. Each *lane* is a thread that takes the packets of its ring.
Only this thread uses the lane's source and LFTAs; other threads send it requests. The interface's
own thread takes no packets: it asks all lanes for their position and promises the minimum::

    is idle  = every lane is idle
    reached  = min over the lanes that are not idle of their latest packet
    promises = min over the lanes, column by column

Counters are sums over the lanes. LFTAs aggregate partially, so answers do not depend on which lane
a packet passes through.
"""

from __future__ import annotations

import threading
import time
from concurrent.futures import Future
from dataclasses import replace
from queue import Empty, SimpleQueue
from typing import TYPE_CHECKING, TypeVar

from gscope.capture.lfta.counters import InterfaceCounters, LftaCounters
from gscope.capture.live.live_interface import LiveInterface
from gscope.errors import UsageError
from gscope.queries.int64 import MAX_TIME_NS, MIN_TIME_NS
from gscope.queries.streams.messages import Punctuation
from gscope.queries.streams.thresholds import least

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from gscope.capture.lfta.runtime import LftaEngine
    from gscope.capture.live.live_interface import RingInterface
    from gscope.capture.live.stop import CaptureLimit
    from gscope.capture.shedding.load_control import InterfaceLoad
    from gscope.capture.sources.af_packet.fanout_rings import FanoutSource
    from gscope.capture.sources.block import Block
    from gscope.queries.plan.program import Lfta
    from gscope.queries.streams.losses import Losses
    from gscope.queries.streams.thresholds import ThresholdSchedule

T = TypeVar("T")

WAIT_S = 0.5
"""Longest time that a lane waits for packets before it checks for a stop; requests wake it."""


class Lane:
    """A thread that takes the packets of one ring, and handles requests that concern them.

    The interface's thread calls all methods but ``run``.

    Args:
        ring: the source and the LFTAs of the lane.

    Attributes:
        blocks: number of blocks taken so far.
        until_ns: time from which on packets are not processed.
        failure: the exception that ended the lane; None while there was none.
    """

    def __init__(self, ring: RingInterface) -> None:
        self.ring = ring
        self.blocks = 0
        self.until_ns = MAX_TIME_NS
        self.failure: BaseException | None = None
        self._questions: SimpleQueue[Callable[[], None]] = SimpleQueue()
        self._is_over = threading.Event()
        self._thread = threading.Thread(target=self.run, name=f"lane of {ring.name}")

    def start(self) -> None:
        """Start taking packets."""
        self._thread.start()

    def stop(self) -> None:
        """Stop taking packets; may be called twice, or before the start."""
        self._is_over.set()
        self.ring.wake()
        if self._thread.is_alive():
            self._thread.join()

    def ask(self, question: Callable[[], T]) -> Future[T]:
        """Let the lane evaluate ``question`` between two blocks; do so here if it does not run."""
        answer: Future[T] = Future()

        def find_out() -> None:
            try:
                answer.set_result(question())
            except BaseException as error:
                answer.set_exception(error)

        if self._thread.is_alive() and not self._is_over.is_set():
            self._questions.put(find_out)
            self.ring.wake()
        else:
            find_out()
        return answer

    def run(self) -> None:
        """Take packets until the stop; a lane that has failed still handles requests."""
        while not self._is_over.is_set():
            if self.failure is None:
                try:
                    self._take()
                except BaseException as error:
                    self.failure = error
            self._answer(0.0 if self.failure is None else WAIT_S)
        self._answer(0.0)

    def _take(self) -> None:
        if self.ring.take(WAIT_S, self.until_ns):
            self.ring.note_lag(time.time_ns())
            self.blocks += 1

    def _answer(self, timeout_s: float) -> None:
        """Handle pending requests; wait up to ``timeout_s`` seconds for the first."""
        try:
            while True:
                self._questions.get(timeout=timeout_s or None, block=timeout_s > 0)()
                timeout_s = 0.0
        except Empty:
            return


class FanoutInterface(LiveInterface):
    """A live interface with several lanes; see the docstring of the module.

    Args:
        lanes: one lane for each ring of ``source``.
    """

    def __init__(
        self,
        name: str,
        source: FanoutSource,
        lanes: Sequence[Lane],
        streams: Mapping[str, str],
        skew_ns: int,
        limit: CaptureLimit,
    ) -> None:
        super().__init__(name, source, LaneEngines(lanes), streams, skew_ns, limit)
        self._lanes = lanes
        self._processed_ns = MIN_TIME_NS
        self._blocks = 0
        self._woken = threading.Event()

    def start_reading(self) -> None:
        """See ``LiveInterface``."""
        for lane in self._lanes:
            lane.start()

    def stop_reading(self) -> None:
        """See ``LiveInterface``."""
        for lane in self._lanes:
            lane.stop()
        self._collect()

    def take(self, timeout_s: float, until_ns: int = MAX_TIME_NS) -> bool:
        """See ``LiveInterface``: the lanes take packets while this thread waits."""
        for lane in self._lanes:
            lane.until_ns = until_ns
        self._woken.wait(timeout_s)
        self._woken.clear()
        blocks = self._blocks
        self._collect()
        for lane in self._lanes:
            if lane.failure is not None:
                raise lane.failure
        return self._blocks != blocks

    def is_idle(self) -> bool:
        """See ``LiveInterface``."""
        busy = [lane for lane, is_idle in self._answers(lambda ring: ring.is_idle()) if not is_idle]
        latest = [lane.ring.latest_ns for lane in busy]
        self._processed_ns = min(latest, default=self.latest_ns)
        return not busy

    @property
    def processed_ns(self) -> int:
        """See ``LiveInterface``."""
        return self._processed_ns

    def has_passed(self, time_ns: int) -> bool:
        """See ``LiveInterface``."""
        return all(
            passed
            for _, passed in self._answers(lambda ring: ring.is_idle() or ring.has_passed(time_ns))
        )

    def wake(self) -> None:
        """See ``LiveInterface``."""
        self._woken.set()

    @property
    def moves(self) -> bool:
        """See ``Feed``."""
        return any(lane.ring.moves for lane in self._lanes)

    def resume_thresholds(self, clear_ns: int) -> None:
        """See ``LiveInterface``."""
        self._answers(lambda ring: ring.resume_thresholds(clear_ns))

    def threshold_changes(self, thresholds: Sequence[int]) -> dict[str, int]:
        """See ``Feed``; each lane may have taken over another one."""
        answers = self._answers(lambda ring: ring.threshold_changes(thresholds))
        return {lfta: each for _, changes in answers for lfta, each in changes.items()}

    def move_thresholds(
        self, thresholds: Sequence[int], borders: Sequence[Callable[[int], int]]
    ) -> None:
        """See ``Feed``: each lane moves its own, and the least of all counts."""
        self._answers(lambda ring: ring.move_thresholds(thresholds, borders))

    def schedule(self, lfta: str) -> ThresholdSchedule | None:
        """See ``Feed``."""
        found = [made for _, made in self._answers(lambda ring: ring.schedule(lfta)) if made]
        return least(found) if found else None

    @property
    def ring_losses(self) -> tuple[Losses, ...]:
        """See ``LiveInterface``."""
        return tuple(losses for lane in self._lanes for losses in lane.ring.ring_losses)

    def load(self) -> InterfaceLoad:
        """See ``LiveInterface``; each lane is a thread."""
        return replace(super().load(), busy_ns=tuple(lane.ring.busy_ns for lane in self._lanes))

    def note_lag(self, now_ns: int) -> None:  # noqa: ARG002  # each lane measures its own lag
        """See ``LiveInterface``."""
        self.largest_lag_ns = max(lane.ring.largest_lag_ns for lane in self._lanes)

    def _answers(self, question: Callable[[RingInterface], T]) -> list[tuple[Lane, T]]:
        def about(ring: RingInterface) -> Callable[[], T]:
            return lambda: question(ring)

        asked = [(lane, lane.ask(about(lane.ring))) for lane in self._lanes]
        return [(lane, answer.result()) for lane, answer in asked]

    def _collect(self) -> None:
        rings = [lane.ring for lane in self._lanes]
        self._blocks = sum(lane.blocks for lane in self._lanes)
        self.packets = sum(ring.packets for ring in rings)
        self.worked_ns = sum(ring.worked_ns for ring in rings)
        self.latest_ns = max(ring.latest_ns for ring in rings)
        self.earliest_ns = min(ring.earliest_ns for ring in rings)


class LaneEngines:
    """The LFTAs of all lanes as one engine; see ``LftaEngine``.

    Counters are read without a request to the lanes: while lanes run, they may differ in time.
    """

    def __init__(self, lanes: Sequence[Lane]) -> None:
        self._lanes = lanes

    @property
    def bound_ns(self) -> int:
        """See ``LftaEngine``."""
        return min(engine.bound_ns for engine in self._engines)

    def process(self, block: Block, start: int, until_ns: int = MAX_TIME_NS) -> int:
        """See ``LftaEngine``; packets that come from no ring are processed by the first lane."""
        first = self._lanes[0]
        return first.ask(lambda: first.ring.runtime.process(block, start, until_ns)).result()

    def heartbeat(self, clock_ns: int, skew_ns: int = 0) -> dict[str, tuple[Punctuation, ...]]:
        """See ``LftaEngine``."""
        promises = self._ask(lambda engine: engine.heartbeat(clock_ns, skew_ns))
        return {
            lfta: least_promises([promised[lfta] for promised in promises]) for lfta in promises[0]
        }

    def finish(self) -> None:
        """See ``LftaEngine``."""
        self._ask(lambda engine: engine.finish())

    def begin_lane(self, lane: int) -> None:
        """Refuse: each lane numbers its own packets."""
        raise AssertionError(lane)

    def set_threshold(self, lfta: str, threshold: int) -> None:
        """See ``LftaEngine``; each lane changes over between two of its blocks."""
        self._ask(lambda engine: engine.set_threshold(lfta, threshold))

    @property
    def interface_counters(self) -> InterfaceCounters:
        """See ``LftaEngine``."""
        total = InterfaceCounters()
        for engine in self._engines:
            counters = engine.interface_counters
            total.accepted_packets += counters.accepted_packets
            total.late_packets += counters.late_packets
            total.shed_packets += counters.shed_packets
            for reason, packets in counters.odd_packets.items():
                total.odd_packets[reason] = total.odd_packets.get(reason, 0) + packets
        return total

    def lfta_counters(self, lfta: str) -> LftaCounters:
        """See ``LftaEngine``."""
        total = LftaCounters()
        for engine in self._engines:
            counters = engine.lfta_counters(lfta)
            for name in LftaCounters.__slots__:
                setattr(total, name, getattr(total, name) + getattr(counters, name))
        return total

    @property
    def _engines(self) -> list[LftaEngine]:
        return [lane.ring.runtime for lane in self._lanes]

    def _ask(self, question: Callable[[LftaEngine], T]) -> list[T]:
        def about(engine: LftaEngine) -> Callable[[], T]:
            return lambda: question(engine)

        return [
            answer.result()
            for answer in [lane.ask(about(lane.ring.runtime)) for lane in self._lanes]
        ]


def least_promises(promised: Sequence[tuple[Punctuation, ...]]) -> tuple[Punctuation, ...]:
    """Return what several streams promise together: the least bound of each common column."""
    bounds = [{p.column: p.bound for p in each} for each in promised]
    return tuple(
        Punctuation(column, min(each[column] for each in bounds))
        for column in bounds[0]
        if all(column in each for each in bounds)
    )


def ensure_orders_survive(interface: str, lftas: Sequence[Lfta]) -> None:
    """Ensure that no LFTA needs the order in which the packets of all lanes arrived.

    Raises:
        UsageError: an LFTA declares an order, which only one thread can check.
    """
    declaring = next(
        (lfta for lfta in lftas if lfta.declared and interface in lfta.interfaces), None
    )
    if declaring is not None:
        message = (
            f"{declaring.query} declares an ordering of packets, which a fanout cannot check "
            f"across its threads; capture {interface} without fanout"
        )
        raise UsageError(message)
