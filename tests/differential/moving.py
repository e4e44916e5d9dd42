"""Captures whose thresholds fall and rise at random packets.

With them are plain loops over their schedules.
"""

from __future__ import annotations

import shutil
import tempfile
from collections import defaultdict
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from functools import partial
from ipaddress import IPv4Address, ip_address
from pathlib import Path
from random import Random
from typing import TYPE_CHECKING
from unittest import mock

from tests.differential.thinned_job import ThinnedJob
from tests.differential.traffic import SECOND_NS, Packet, Traffic, _frame
from tests.golden.driver import Job, Variation, replayed, streamed

from gscope.capture.interface.base import Feed
from gscope.capture.lfta.runtime import LftaRuntime
from gscope.capture.replay import side_by_side
from gscope.capture.shedding.load_control import next_border
from gscope.capture.shedding.moving_thresholds import begin_moving
from gscope.capture.shedding.settings import SheddingMode, SheddingSettings
from gscope.queries.compile import CompileContext, QueryText, compile_queries
from gscope.queries.expressions.expressions import PacketField
from gscope.queries.plan.program import StreamInput, node_inputs
from gscope.queries.plan.sampling.keyed_hash import FULL_THRESHOLD, HashKey, hash_terms
from gscope.queries.plan.sampling.moving_samples import MovingSample, moving_samples
from gscope.queries.streams.messages import Heartbeat

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from tests.golden.driver import Row
    from tests.support.shared_spark import SharedSpark

    from gscope.capture.sources.block import Block
    from gscope.queries.plan.program import Program
    from gscope.queries.streams.messages import Message
    from gscope.queries.streams.thresholds import ThresholdSchedule

SEED = 77
PLAIN = Variation(
    "moving",
    is_interpreted=True,
    block_bytes=4096,
    batch_rows=20,
    chunks=6,
    interprets_plans=True,
    skew_ns=SECOND_NS // 2,
)


@dataclass
class Mover:
    """Moves thresholds at random while blocks are processed.

    It notes what each packet was tested by.
    """

    program: Program
    samples: tuple[MovingSample, ...]
    random: Random
    chance: float
    tested: list[tuple[str, int, int, int]] = field(default_factory=list)
    moves: int = 0

    def of_interface(self, feed: Feed) -> None:
        lftas = [[n for n in each.lftas if n in feed.streams] for each in self.samples]
        feed.thresholds = begin_moving(lftas, {}, FULL_THRESHOLD, feed.runtime.set_threshold)

    @contextmanager
    def moving(self) -> Iterator[None]:
        begin, process = Feed.__init__, Feed.process

        def begun(feed: Feed, *arguments: object) -> None:
            begin(feed, *arguments)  # type: ignore[arg-type]
            self.of_interface(feed)

        def moved(feed: Feed, block: Block, start: int, until_ns: int) -> int:
            assert feed.thresholds is not None
            for number, sample in enumerate(self.samples):
                if self.random.random() < self.chance:
                    self._move(feed, number, sample)
            reached = process(feed, block, start, until_ns)
            for number in range(len(self.samples)):
                in_force = feed.thresholds._components[number].threshold
                for time_ns in block.time_ns[start:reached].tolist():
                    self.tested.append((feed.name, number, time_ns, in_force))
            return reached

        with (
            mock.patch.object(Feed, "__init__", begun),
            mock.patch.object(Feed, "process", moved),
            mock.patch.object(LftaRuntime, "kernel_entry", return_value=None),
            # In threads, the interfaces would share the random numbers by chance.
            mock.patch.object(side_by_side, "usable_cores", return_value=1),
        ):
            yield

    def _move(self, feed: Feed, number: int, sample: MovingSample) -> None:
        assert feed.thresholds is not None
        held = feed.thresholds.threshold(number)
        rate = self.random.choice((0.2, 0.5, 0.8, 1.3, 2, 4))
        self.moves += 1
        border = partial(next_border, sample.clocks)
        feed.move_threshold(number, min(FULL_THRESHOLD, int(held * rate) + 1), border)


def traffic(random: Random, packets: int) -> Traffic:
    """Packets of some hosts, two interfaces, steps back of half a second."""
    clock, made = 1_700_000_003 * SECOND_NS, []
    for n in range(packets):
        clock += random.choice(
            (0, 1, random.randrange(SECOND_NS // 4), random.randrange(SECOND_NS // 4))
        )
        time_ns = clock - random.choice((0, 0, random.randrange(SECOND_NS // 2)))
        data = _frame(random, n)
        made.append(Packet(random.choice(("alpha", "beta")), time_ns, len(data), data))
    return Traffic(("alpha", "beta"), tuple(made), SECOND_NS // 2)


def compiled(text: str, *, samples: bool) -> Program:
    context = CompileContext(("alpha", "beta"), {}, samples=samples, follows_load=samples)
    return compile_queries([QueryText(text, "queries")], context).program


LogCut = tuple[str, int, int, int]


@dataclass(frozen=True)
class Moved:
    """The answers of a capture whose thresholds moved, and of one that keeps every packet.

    Attributes:
        program: the program that sampled.
        full: the rows of each result from every packet.
        answers: the rows of each result.
        schedules: the last schedule of each stream.
        captured: the packets.
        tested: by interface and LFTA, the threshold by which each packet was tested, in order.
        trimmed: the rows that the job has left out.
        cuts: what the log was thinned to: a stream, a threshold, and its first time and end.
        thinned: the rows that the log has removed.
    """

    program: Program
    full: dict[str, list[Row]]
    answers: dict[str, list[Row]]
    schedules: dict[str, ThresholdSchedule]
    trimmed: int
    captured: Traffic
    tested: dict[tuple[str, str], list[int]]
    cuts: tuple[LogCut, ...] = ()
    thinned: int = 0

    def lfta(self, query: str, side: int = 0) -> str:
        """The LFTA that a side of a node reads."""
        source = node_inputs(self.program.node(query))[side]
        assert isinstance(source, StreamInput), source
        return source.lfta

    def threshold(self, lfta: str, first_s: int, end_s: int) -> int:
        """The least threshold of the streams of an LFTA from a second up to another."""
        streams, first, end = (
            self.program.lfta(lfta).streams,
            first_s * SECOND_NS,
            end_s * SECOND_NS,
        )
        cuts = [
            limit
            for stream, limit, from_ns, until_ns in self.cuts
            if stream in streams and from_ns < end and first < until_ns
        ]
        return min([threshold([self.schedules[s] for s in streams], first, end), *cuts])

    def hashed(self, lfta: str, texts: Mapping[str, str]) -> int:
        """The hash of a row, given the texts of packet fields."""
        sampling = self.program.lfta(lfta).sampling
        assert sampling is not None
        fields = [term for term in sampling.terms if isinstance(term, PacketField)]
        assert len(fields) == len(sampling.terms)
        values = [number_of(texts[field.name]) for field in fields]
        return hash_terms(values, [field.type for field in fields], HashKey.of_seed(SEED))


def moved(
    text: str,
    seed: int,
    shared: SharedSpark,
    variation: Variation,
    packets: int,
    *,
    thins: bool = False,
) -> Moved:
    """Answer queries with thresholds that move at random, and from every packet.

    With ``thins``, the log is thinned at random, too, while the job reads it.
    """
    random = Random(seed)
    captured = traffic(random, packets)
    full, _, _ = answered(compiled(text, samples=False), captured, variation, shared, Job)
    program = compiled(text, samples=True)
    samples, refused = moving_samples(program)
    assert not refused
    shedding = SheddingSettings(SheddingMode.AUTO, seed=SEED)
    mover = Mover(program, samples, random, chance=0.1)
    with mover.moving():
        moving = replace(variation, shedding=shedding)
        kind = ThinnedJob if thins else Job
        answers, messages, job = answered(program, captured, moving, shared, kind)
    assert mover.moves
    schedules = last_schedules(messages)
    for name, number, time_ns, in_force in mover.tested:
        for lfta in samples[number].lftas:
            step = schedules[f"{lfta}@{name}"].at(time_ns)
            assert step.threshold <= in_force <= step.ceiling
    tested = defaultdict(list)
    for name, number, _, in_force in mover.tested:
        for lfta in samples[number].lftas:
            tested[name, lfta].append(in_force)
    run = Moved(program, full, answers, schedules, job.trimmed, captured, tested)
    if not isinstance(job, ThinnedJob):
        return run
    return replace(run, cuts=tuple(job.cuts), thinned=job.thinned_tuples)


def answered(
    program: Program,
    captured: Traffic,
    variation: Variation,
    shared: SharedSpark,
    kind: type[Job],
) -> tuple[dict[str, list[Row]], list[Message], Job]:
    """The answers, the log, and the job that has read it."""
    folder = Path(tempfile.mkdtemp(prefix="gscope-test-"))
    try:
        messages, _ = replayed(program, captured.write(folder), variation, folder / "log")
        job = kind(program, messages, folder, shared.session(), variation)
        answers = job.answers()
        answers |= {
            query: streamed(program, query, source, messages, folder / "log")
            for query, source in program.results
            if isinstance(source, StreamInput)
        }
        return answers, messages, job
    finally:
        shutil.rmtree(folder)


def last_schedules(messages: list[Message]) -> dict[str, ThresholdSchedule]:
    return {m.stream: m.schedule for m in messages if isinstance(m, Heartbeat) and m.schedule}


def threshold(schedules: list[ThresholdSchedule], first_ns: int, end_ns: int) -> int:
    """The least threshold of some streams from a time up to another."""
    found = []
    for schedule in schedules:
        times = [first_ns, *(s.from_ns for s in schedule.steps if first_ns <= s.from_ns < end_ns)]
        found += [schedule.at(time).threshold for time in times]
    return min(found)


def number_of(text: str) -> int:
    """The number that LFTAs have for a value; decision 24 says what that is of a mapped address."""
    if not set(text) & {".", ":"}:
        return int(text)
    address = ip_address(text)
    if isinstance(address, IPv4Address):
        return 0xFFFF << 32 | int(address)
    mapped = address.ipv4_mapped
    return int(address) if mapped is None else 0xFFFE << 32 | int(mapped)
