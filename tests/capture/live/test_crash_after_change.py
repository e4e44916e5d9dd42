"""Daemons that die soon after a threshold changed.

The log knows all thresholds that were in force.
"""

from __future__ import annotations

from contextlib import contextmanager
from random import Random
from typing import TYPE_CHECKING, Any
from unittest import mock

import numpy as np
import pytest
from tests.capture.live.test_live_capture import SECOND, ScriptedSource
from tests.capture.live.test_resume import Crash, Lives
from tests.capture.sources.af_packet.live_frames import udp_frame

from gscope.capture.interface.base import Feed
from gscope.capture.lfta.interpreter import LftaInterpreter
from gscope.capture.live.interface_loop import LiveCapture
from gscope.capture.live.live_interface import LiveInterface
from gscope.capture.log.log import read_log
from gscope.capture.shedding.load_control import InterfaceLoad
from gscope.capture.shedding.settings import SheddingMode, SheddingSettings
from gscope.capture.sources.block import PADDING_BYTES, Block
from gscope.queries.compile import CompileContext, QueryText, compile_queries
from gscope.queries.int64 import MIN_TIME_NS
from gscope.queries.plan.sampling.keyed_hash import FULL_THRESHOLD
from gscope.queries.streams.messages import Heartbeat

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from pathlib import Path

    from gscope.queries.streams.messages import Message
    from gscope.queries.streams.thresholds import ThresholdSchedule

FLOWS = 30
QUERY = "SELECT tb, srcPort, count(*) FROM UDP GROUP BY time/2 as tb, srcPort"
SHEDDING = SheddingSettings(SheddingMode.AUTO, seed=99, min_rate=0.3)


class Flows(ScriptedSource):
    """A ring of packets of many flows: each time of a block is a packet of the next flow."""

    def next_block(self, timeout_s: float) -> Block | None:
        block = super().next_block(timeout_s)
        if block is None:
            return None
        frames = [udp_frame(n, 1000 + n % FLOWS) for n in range(block.count)]
        data = np.frombuffer(b"".join(frames) + bytes(PADDING_BYTES), np.uint8).copy()
        lengths = np.array([len(frame) for frame in frames], np.int32)
        offsets = np.concatenate(([0], np.cumsum(lengths[:-1]))).astype(np.int64)
        links = np.ones(block.count, np.int32)
        return Block(data, offsets, lengths, lengths, block.time_ns, links, block.count)


class Loaded(Lives):
    """A stage whose load changes, and the threshold by which each packet was tested."""

    def __init__(self, folder: Path, random: Random) -> None:
        super().__init__(folder)
        context = CompileContext(("main",), {}, samples=True)
        self.program = compile_queries([QueryText(QUERY, "q")], context).program
        self.sources["main"] = self.source = Flows(self.world)
        self.shedding = SHEDDING
        self.tested: list[tuple[int, int]] = []
        self._random = random
        self.is_calm = False
        self.is_doomed = False
        self._occupancy = 0.0

    @contextmanager
    def loads(self) -> Iterator[None]:
        """The load changes now and then; group tables are small, so that rows are emitted early."""
        process, build = Feed.process, LftaInterpreter.__init__

        def noted(feed: Feed, block: Block, start: int, until_ns: int) -> int:
            reached = process(feed, block, start, until_ns)
            assert feed.thresholds is not None
            in_force = feed.thresholds._components[0].threshold
            if self.is_doomed and self.tested and in_force != self.tested[-1][1]:
                self.is_doomed = False
                self.world.at(self.world.monotonic_ns / SECOND + 0.03, self.crash)
            self.tested += [
                (time_ns, in_force) for time_ns in block.time_ns[start:reached].tolist()
            ]
            return reached

        def load(_: LiveInterface) -> InterfaceLoad:
            if self._random.random() < 0.4:
                self._occupancy = self._random.choice((0.0, 0.0, 0.9))
            return InterfaceLoad(0.0 if self.is_calm else self._occupancy, 0, (0,))

        def built(engine: LftaInterpreter, *arguments: Any, **settings: Any) -> None:
            build(engine, *arguments, **{**settings, "groups": 5})

        with (
            mock.patch.object(Feed, "process", noted),
            mock.patch.object(LiveInterface, "load", load),
            mock.patch.object(LftaInterpreter, "__init__", built),
        ):
            yield

    def crash(self) -> None:
        raise Crash

    def talk(self, begin: float, end: float) -> None:
        time = begin
        while (time := time + 0.15 * self._random.random()) < end:
            self.world.at(
                time,
                lambda: self.source.send(
                    *[self.world.wall_ns - n for n in range(self._random.randrange(1, FLOWS))]
                ),
            )

    @property
    def messages(self) -> list[Message]:
        return read_log(self.folder)

    def ensure_known(self) -> ThresholdSchedule:
        """Every packet was tested by what the last schedule says of its time."""
        *_, schedule = (m.schedule for m in self.messages if isinstance(m, Heartbeat))
        assert schedule is not None
        for time_ns, in_force in self.tested:
            step = schedule.at(time_ns)
            assert step.threshold <= in_force <= step.ceiling, (time_ns, in_force, step)
        return schedule


@pytest.mark.parametrize("seed", range(4))
def test_the_log_knows_the_thresholds_of_a_daemon_that_was_killed(
    tmp_path: Path, seed: int
) -> None:
    random = Random(seed)
    stage = Loaded(tmp_path / "log", random)
    with stage.loads():
        for _ in range(3):
            begin = stage.world.monotonic_ns / SECOND
            stage.talk(begin, begin + 20)
            stage.is_doomed = True
            stage.live_until_crash(begin + 20, batch_rows=6)
            stage.ensure_known()
            stage.world.wait(int(random.uniform(0.1, 3) * SECOND))
        begin = stage.world.monotonic_ns / SECOND
        stage.talk(begin, begin + 12)
        stage.is_calm, stage.is_doomed = True, False
        stage.run(begin + 15, batch_rows=6)
    schedule = stage.ensure_known()
    assert min(in_force for _, in_force in stage.tested) < FULL_THRESHOLD
    assert schedule.steps[-1].threshold == schedule.steps[-1].ceiling


def test_an_announcement_promises_nothing_new_and_seals_no_rows(tmp_path: Path) -> None:
    stage = Loaded(tmp_path / "log", Random(1))
    send = LiveCapture.send_heartbeat
    announced: list[tuple[int, int]] = []

    def noted(
        capture: LiveCapture,
        interface: LiveInterface,
        reached_ns: int,
        changes: Mapping[str, int] | None = None,
    ) -> None:
        (before,) = capture.log.positions.values()
        before_ns = interface.runtime.bound_ns
        send(capture, interface, reached_ns, changes)
        (after,) = capture.log.positions.values()
        if changes and before_ns != MIN_TIME_NS:
            announced.append((interface.runtime.bound_ns - before_ns, after.end - before.end))

    with stage.loads(), mock.patch.object(LiveCapture, "send_heartbeat", noted):
        stage.talk(0, 20)
        stage.run(25)
    # The one message is the announcement.
    assert announced
    assert set(announced) == {(0, 1)}
