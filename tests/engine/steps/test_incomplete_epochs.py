"""Incomplete epochs: captures that lose packets at random, and plain loops over what they lost.

A scripted ring overflows while its reader stands still, daemons crash, and the log sheds rows. A
loop over the packets that were sent, and those that the LFTAs' rows stand for, says which epochs of
each query lack any. Each of them must be marked.
"""

from __future__ import annotations

from collections import Counter
from functools import partial
from itertools import pairwise
from random import Random
from typing import TYPE_CHECKING

import pyarrow.parquet as pq
import pytest
from tests.capture.live.test_live_capture import SECOND, START, ScriptedSource
from tests.capture.live.test_resume import Lives

from gscope.capture.log.log import read_log
from gscope.engine.steps.steps import Evaluation, Steps
from gscope.queries.compile import CompileContext, QueryText, compile_queries
from gscope.queries.streams.messages import Batch, Heartbeat

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from tests.capture.live.test_live_capture import World

    from gscope.capture.sources.block import Block
    from gscope.queries.streams.loss_reasons import IncompleteEpochs

QUERIES = """
DEFINE { query_name threes; visibility 'external'; }
SELECT tb, count(*) AS cnt FROM IP GROUP BY time/3 AS tb;
DEFINE { query_name nines; visibility 'external'; }
SELECT tm, sum(cnt) AS total FROM threes GROUP BY tb/3 AS tm;
DEFINE { query_name many; visibility 'external'; }
SELECT tb, cnt FROM threes WHERE cnt > 1;
DEFINE { query_name sliding; visibility 'external'; }
SELECT window_end, count(*) AS cnt FROM IP [RANGE 10 SLIDE 4];
DEFINE { query_name shifted; visibility 'external'; }
SELECT A.tb AS tb, A.cnt AS now, B.cnt AS before FROM threes A, threes B WHERE A.tb = B.tb + 2;
DEFINE { query_name near; visibility 'external'; }
SELECT A.tb AS tb, A.cnt AS now, B.cnt AS other FROM threes A, threes B
WHERE B.tb >= A.tb AND B.tb <= A.tb + 2;
DEFINE { query_name five_of_near; visibility 'external'; }
SELECT tf, count(*) AS pairs FROM near GROUP BY tb/5 AS tf;
"""
SKEW = SECOND // 5


class Ring(ScriptedSource):
    """A ring with room for some packets; what does not fit is dropped, and counted when it is read.

    Attributes:
        sent: times of all packets that came while a daemon captured.
        readings: when the counter was read, and its value.
    """

    def __init__(self, world: World, room: int) -> None:
        super().__init__(world)
        self.sent: list[int] = []
        self.readings: list[tuple[int, int]] = [(world.wall_ns, 0)]
        self._room = room
        self._dropped = 0

    def arrive(self) -> None:
        """A packet arrives now."""
        self.sent.append(self._world.wall_ns)
        if len(self.blocks) < self._room:
            self.send_now()
        else:
            self._dropped += 1

    def next_block(self, timeout_s: float) -> Block | None:
        block = super().next_block(timeout_s)
        self.stats.drops_read_ns = self._world.wall_ns
        self.stats.dropped_packets += self._dropped
        self.stats.received_packets += self._dropped
        self._dropped = 0
        self.readings.append((self._world.wall_ns, self.stats.dropped_packets))
        return block

    def restart(self) -> None:
        """The next daemon opens the device again."""
        self._dropped, self.blocks, self.held = 0, [], 0
        self.stats = type(self.stats)()
        self.readings.append((self._world.wall_ns, 0))


class Lossy(Lives):
    """A stage whose ring overflows while its reader stands still."""

    def __init__(self, folder: Path, random: Random) -> None:
        super().__init__(folder)
        self.program = compile_queries([QueryText(QUERIES, "q")], CompileContext(("main",))).program
        self.ring = Ring(self.world, room=random.choice((1, 3, 6)))
        self.source = self.sources["main"] = self.ring
        self.interface = {"skew_ns": SKEW}
        self.gaps: list[tuple[int, int]] = []

    def live(self, random: Random, seconds: float, *, crashes: bool) -> None:
        begin = self.world.monotonic_ns / SECOND
        time = begin
        while (
            time := time + random.choice((0.05, 0.3, 0.7, 2.5)) * random.random()
        ) < begin + seconds:
            self.world.at(time, self.ring.arrive)
        for _ in range(random.randrange(1, 4)):
            stall_ns = int(random.choice((0.3, 1, 4)) * SECOND * random.random())
            stall = begin + random.random() * seconds
            self.world.at(stall, partial(self.world.wait, stall_ns))
        if crashes:
            self.live_until_crash(begin + seconds - 0.5 * random.random())
            beats = (m for m in read_log(self.folder) if isinstance(m, Heartbeat))
            promised_ns = max(beat.clock_ns for beat in beats) - SKEW
            self.ring.restart()
            down = random.choice((0.1, 2, 7)) * random.random()
            for _ in range(random.randrange(3)):
                self.ring.sent.append(self.world.wall_ns + int(random.random() * down * SECOND))
            self.world.wait(int(down * SECOND))
            self.gaps.append((promised_ns, self.world.wall_ns))
        else:
            self.run(begin + seconds)


def marked(stage: Lossy, random: Random) -> list[IncompleteEpochs]:
    """What the job marks, in steps of random size, with restarts from its snapshot."""
    waiting = read_log(stage.folder)
    steps = Steps(stage.program)
    found: list[IncompleteEpochs] = []
    while not steps.is_finished:
        if steps.next() is None:
            size = random.randint(1, 4)
            steps.on_messages(waiting[:size])
            waiting = waiting[size:]
            continue
        steps.on_evaluated(Evaluation())
        found += steps.incomplete.mark()
        if random.random() < 0.2:
            saved, number = steps.snapshot(), steps.number
            steps = Steps(stage.program)
            steps.restore(number, saved)
            needed = steps.needed()
            waiting = [m for m in read_log(stage.folder) if m.sequence >= needed[m.stream]]
    return found


def slice_of(second: int) -> int:
    """The slice of ``RANGE 10 SLIDE 4`` that holds a second: they begin at 4k and at 4k + 2."""
    return second // 4 + (second - 2) // 4 + 1


def answers(threes: Mapping[int, int], slices: Mapping[int, int]) -> dict[str, dict[int, object]]:
    """The answers of all queries by epoch, from the packets of each 3 seconds and of each slice."""
    nines: Counter[int] = Counter()
    for tb, packets in threes.items():
        nines[tb // 3] += packets
    sliding: Counter[int] = Counter()
    begin = START // SECOND
    for end in range(begin - begin % 4, begin + 400, 4):
        held = {slice_of(second) for second in range(end - 10, end)}
        sliding[end * SECOND] = sum(slices.get(each, 0) for each in held)
    near = {tb: [threes[n] for n in range(tb, tb + 3) if n in threes] for tb in threes}
    five: Counter[int] = Counter()
    for tb, others in near.items():
        five[tb // 5] += len(others)
    return {
        "threes": dict(threes),
        "nines": dict(nines),
        "many": {tb: packets for tb, packets in threes.items() if packets > 1},
        "sliding": dict(sliding),
        "shifted": {tb: (n, threes[tb - 2]) for tb, n in threes.items() if tb - 2 in threes},
        "near": {tb: (threes[tb], others) for tb, others in near.items()},
        "five_of_near": dict(five),
    }


def full_answers(times_ns: list[int]) -> dict[str, dict[int, object]]:
    """The answers from every packet that was sent."""
    seconds = [time_ns // SECOND for time_ns in times_ns]
    return answers(Counter(s // 3 for s in seconds), Counter(map(slice_of, seconds)))


def given_answers(stage: Lossy) -> dict[str, dict[int, object]]:
    """The answers from the rows of the log."""
    found: dict[str, Counter[int]] = {"threes": Counter(), "sliding": Counter()}
    for message in read_log(stage.folder):
        if isinstance(message, Batch):
            name = message.stream.partition("@")[0]
            for row in pq.read_table(stage.folder / message.path).to_pylist():
                epoch, count = row.values()
                found[name][epoch] += count
    return answers(found["threes"], found["sliding"])


def overlapped(periods: list[tuple[int, int]]) -> set[int]:
    """The epochs of ``threes`` that some periods overlap."""
    return {
        second // 3
        for first_ns, last_ns in periods
        for second in range(first_ns // SECOND, last_ns // SECOND + 1)
    }


@pytest.mark.parametrize("seed", range(24))
def test_epochs_that_lack_packets_are_marked(tmp_path: Path, seed: int) -> None:
    random = Random(seed)
    stage = Lossy(tmp_path / "log", random)
    for _ in range(random.randrange(3)):
        stage.live(random, random.uniform(5, 20), crashes=True)
    stage.live(random, 40, crashes=False)
    epochs: dict[str, set[int]] = {}
    for each in marked(stage, random):
        assert each.first is not None
        assert each.last is not None
        step = 4 * SECOND if each.query == "sliding" else 1
        epochs.setdefault(each.query, set()).update(range(each.first, each.last + 1, step))
    full, given = full_answers(stage.ring.sent), given_answers(stage)
    for query, answered in full.items():
        wrong = {n for n in answered | given[query] if answered.get(n) != given[query].get(n)}
        assert wrong <= epochs.get(query, set()), (query, "wrong, and not marked")
    drops = [
        (before_ns, read_ns)
        for (before_ns, before), (read_ns, dropped) in pairwise(stage.ring.readings)
        if dropped > before
    ]
    found = epochs.get("threes", set())
    assert overlapped([*drops, *stage.gaps]) <= found
    assert found <= overlapped([*((a - SKEW, b) for a, b in drops), *stage.gaps])
