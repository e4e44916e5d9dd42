"""Thresholds that fall and rise at random packets: each answer is the full one, filtered by one hash for each epoch.

The full answer comes from LFTAs that keep every packet. The hash of its rows is computed in plain
Python from their text, the threshold of an epoch by a loop over the packets' schedule.
"""

from __future__ import annotations

import shutil
import tempfile
from collections import Counter
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from functools import partial
from ipaddress import IPv4Address, ip_address
from pathlib import Path
from random import Random
from typing import TYPE_CHECKING
from unittest import mock

import pytest
from tests.differential.traffic import SECOND_NS, Packet, Traffic, _frame
from tests.golden.driver import Job, Variation, replayed
from tests.support.long_form import cases

from gscope.capture.interface.base import Feed
from gscope.capture.lfta.runtime import LftaRuntime
from gscope.capture.shedding.load_control import clocks_of, next_border
from gscope.capture.shedding.moving_thresholds import begin_moving
from gscope.capture.shedding.settings import SheddingMode, SheddingSettings
from gscope.queries.compile import CompileContext, QueryText, compile_queries
from gscope.queries.expressions.expressions import PacketField
from gscope.queries.plan.moving_samples import MovingSample, moving_samples
from gscope.queries.plan.sampling_hash import FULL_THRESHOLD, HashKey, hash_terms
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
QUERIES = """
DEFINE { query_name flows; }
SELECT tb, srcIP, destIP, srcPort, destPort, count(*), sum(len), max(len), min(time_ns)
FROM TCP GROUP BY time/5 as tb, srcIP, destIP, srcPort, destPort;

DEFINE { query_name hosts; }
SELECT tb, srcIP, count(*), or_aggr(tos) FROM IP GROUP BY time/20 as tb, srcIP HAVING count(*) > 2;

DEFINE { query_name pairs; }
SELECT tb, srcIP, destIP, max(len) as m, count(*) as c FROM UDP GROUP BY time/7 as tb, srcIP, destIP;
DEFINE { query_name largest; }
SELECT tb, srcIP, max(m), min(c) FROM pairs GROUP BY tb, srcIP;

DEFINE { query_name answered; }
SELECT S.time/5 as tb, S.srcIP, S.destIP, S.srcPort, S.time_ns, A.time_ns
FROM TCP S LEFT_OUTER_JOIN TCP A
WHERE S.time/5 = A.time/5 and S.srcIP = A.destIP and S.destIP = A.srcIP and S.srcPort = A.destPort;

DEFINE { query_name later; }
SELECT S.time/5 as tb, S.srcIP, S.time_ns, A.time_ns FROM UDP S LEFT_OUTER_JOIN TCP A
WHERE S.time/5 = A.time/5 + 1 and S.srcIP = A.srcIP;
"""
KEYS = {"srcIP": 1, "destIP": 2, "srcPort": 3, "destPort": 4}
"""Where packet fields are in the rows of all queries."""

SECONDS: Mapping[str, tuple[tuple[int, int], ...]] = {
    "flows": ((5, 0),),
    "hosts": ((20, 0),),
    "largest": ((7, 0),),
    "answered": ((5, 0), (5, 0)),
    "later": ((5, 0), (5, 1)),
}
"""For each side the length of an epoch and by how many the side is behind."""


@dataclass
class Mover:
    """Moves thresholds at random while blocks are processed, and notes what each packet was tested by."""

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
        ):
            yield

    def _move(self, feed: Feed, number: int, sample: MovingSample) -> None:
        assert feed.thresholds is not None
        held = feed.thresholds.threshold(number)
        rate = self.random.choice((0.2, 0.5, 0.8, 1.3, 2, 4))
        self.moves += 1
        border = partial(next_border, clocks_of(sample))
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


def compiled(*, samples: bool) -> Program:
    context = CompileContext(("alpha", "beta"), {}, samples=samples)
    return compile_queries([QueryText(QUERIES, "queries")], context).program


def answered(
    program: Program, captured: Traffic, variation: Variation, shared: SharedSpark
) -> tuple[dict[str, list[Row]], list[Message], int]:
    """The answers, the log, and how many rows the job has trimmed."""
    folder = Path(tempfile.mkdtemp(prefix="gscope-test-"))
    try:
        messages, _ = replayed(program, captured.write(folder), variation, folder / "log")
        job = Job(program, messages, folder, shared.session(), variation)
        answers = job.answers()
        return answers, messages, job.trimmed
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


def check(seed: int, shared: SharedSpark, variation: Variation, packets: int) -> Counter[str]:
    random = Random(seed)
    captured = traffic(random, packets)
    expected, _, _ = answered(compiled(samples=False), captured, variation, shared)
    program = compiled(samples=True)
    samples, refused = moving_samples(program)
    assert not refused
    shedding = SheddingSettings(SheddingMode.AUTO, seed=SEED)
    mover = Mover(program, samples, random, chance=0.1)
    with mover.moving():
        answers, messages, trimmed = answered(
            program, captured, replace(variation, shedding=shedding), shared
        )
    assert mover.moves
    schedules = last_schedules(messages)
    for name, number, time_ns, in_force in mover.tested:
        for lfta in samples[number].lftas:
            step = schedules[f"{lfta}@{name}"].at(time_ns)
            assert step.threshold <= in_force <= step.ceiling
    seen: Counter[str] = Counter(trimmed=trimmed)
    key = HashKey.of_seed(SEED)
    for query, sides in SECONDS.items():
        sample = next(each for each in samples if query in each.sides)
        # What reads a query is cut like that query.
        read = sample.sides["pairs" if query == "largest" else query]
        streams = [side.streams for side in read if side is not None]
        sampling = program.lfta(streams[0][0].partition("@")[0]).sampling
        assert sampling is not None
        terms = sampling.terms
        assert all(isinstance(term, PacketField) for term in terms)
        kept = []
        for row in expected[query]:
            epoch = int(row[0])
            limit = min(
                threshold(
                    [schedules[s] for s in names],
                    (epoch - behind) * length * SECOND_NS,
                    (epoch - behind + 1) * length * SECOND_NS,
                )
                for names, (length, behind) in zip(streams, sides, strict=True)
            )
            texts = [row[KEYS[term.name]] for term in terms if isinstance(term, PacketField)]
            values = [number_of(text) for text in texts]
            if hash_terms(values, [term.type for term in terms], key) <= limit:
                kept.append(row)
        assert Counter(answers[query]) == Counter(kept), query
        seen[f"{query} kept"] = len(kept)
        seen[f"{query} left out"] = len(expected[query]) - len(kept)
    return seen


PLAIN = Variation(
    "moving",
    is_interpreted=True,
    block_bytes=4096,
    batch_rows=20,
    chunks=6,
    interprets_plans=True,
    skew_ns=SECOND_NS // 2,
)


@pytest.mark.spark
@pytest.mark.slow
@pytest.mark.parametrize("seed", cases((1,), range(2, 12)))
def test_an_answer_is_the_full_one_filtered_by_the_threshold_of_each_epoch(
    seed: int, shared_spark: SharedSpark
) -> None:
    variation = replace(PLAIN, seed=seed, crashes=seed % 3, table_slots=4 if seed % 2 else None)
    seen = check(seed, shared_spark, variation, 900)
    assert seen["trimmed"]
    for query in SECONDS:
        assert seen[f"{query} left out"], seen


@pytest.mark.spark
@pytest.mark.slow
@pytest.mark.parametrize("seed", cases((), (21, 22)))
def test_compiled_it_is_as_well(seed: int, shared_spark: SharedSpark) -> None:
    variation = replace(PLAIN, seed=seed, is_interpreted=False, crashes=1)
    assert check(seed, shared_spark, variation, 2000)["trimmed"]
