"""What a merged stream says that it lacks: the epochs that a plain loop finds, whatever happens."""

from __future__ import annotations

import random

import pytest
from tests.capture.relay.lftas import aggregation

from gscope.capture.relay.merged_stream import MergedStream
from gscope.capture.relay.ports import PortKey
from gscope.queries.catalog.aggregate.partial_op import PartialOp
from gscope.queries.expressions.types import GsqlType
from gscope.queries.int64 import MAX_TIME_NS, MIN_TIME_NS
from gscope.queries.streams.gaps import MOST_GAPS, HostGap, with_gap
from gscope.queries.streams.messages import Punctuation

FLOW = aggregation([GsqlType.STRING], [(PartialOp.COUNT, GsqlType.INT)])
EPOCH = str(FLOW.epoch)
LAST = 60


class Host:
    """An input that counts its promises as a plain loop does."""

    def __init__(self, name: str, merged: MergedStream) -> None:
        self.name = name
        self.sequence = 0
        self.promised: int | None = None
        self.log = f"{name}-log"
        self.captured: set[int] = set()
        self._merged = merged

    def describe(self, begun: int = 0) -> None:
        self._merged.on_described(self.name, self.log, {"flow@up": 0}, {"flow@up": begun})

    def promise(self, bound: int) -> None:
        """Promise that it has sent all epochs below ``bound``, all of which it has captured."""
        first = 0 if self.promised is None else self.promised
        self.captured |= set(range(first, bound))
        self.skip(bound)

    def skip(self, bound: int) -> None:
        """The same, of epochs in which it did not capture."""
        key = PortKey(self.name, self.log, "flow@up")
        self._merged.on_heartbeat(key, self.sequence, [Punctuation(EPOCH, bound)], 0)
        self.sequence += 1
        self.promised = bound


def marked(gaps: tuple[HostGap, ...], host: str) -> set[int]:
    return {
        epoch
        for gap in gaps
        if gap.host == host
        for epoch in range(max(gap.least, 0), min(gap.end, LAST + 2))
    }


@pytest.mark.parametrize("seed", range(40))
def test_epochs_that_went_on_without_a_host_are_those_that_it_had_not_promised(seed: int) -> None:
    chance = random.Random(seed)
    merged = MergedStream(FLOW, ["a", "b", "c"])
    hosts = [Host(name, merged) for name in "abc"]
    for host in hosts:
        host.describe()
    lacking: dict[str, set[int]] = {host.name: set() for host in hosts}
    answered = 0
    for now in range(1, LAST + 1):
        merged.absent = {host.name for host in hosts[1:] if chance.random() < 0.3}
        for host in hosts:
            if host.name not in merged.absent and chance.random() < 0.8:
                host.promise(now)
        merged.take()
        reached = merged.promised.get(EPOCH, 0)
        for epoch in range(answered, reached):
            for host in hosts:
                if host.promised is None or host.promised <= epoch:
                    lacking[host.name].add(epoch)
        answered = max(answered, reached)
    assert {host.name: marked(merged.gaps, host.name) for host in hosts} == lacking
    assert not lacking["a"]
    assert any(lacking.values()) or seed


def test_a_host_that_was_never_there_is_missing_from_the_beginning() -> None:
    merged = MergedStream(FLOW, ["a", "b"])
    merged.absent = {"b"}
    host = Host("a", merged)
    host.describe()
    host.promise(5)
    merged.take()
    assert merged.gaps == (HostGap("b", EPOCH, MIN_TIME_NS, 5),)
    assert merged.take(is_last=True) is not None
    assert merged.gaps == (HostGap("b", EPOCH, MIN_TIME_NS, MAX_TIME_NS),)


def test_nothing_is_missing_while_the_stream_waits() -> None:
    merged = MergedStream(FLOW, ["a", "b"])
    hosts = [Host(name, merged) for name in "ab"]
    for host in hosts:
        host.describe()
        host.promise(3)
    hosts[0].promise(9)
    merged.take()
    assert merged.promised[EPOCH] == 3
    assert merged.gaps == ()


@pytest.mark.parametrize("is_redelivered", [False, True])
def test_epochs_between_two_processes_of_a_host_are_missing(is_redelivered: bool) -> None:
    """Messages that the first one had logged may still come after the second one has begun."""
    merged = MergedStream(FLOW, ["a"])
    host = Host("a", merged)
    host.describe()
    host.promise(4)
    if is_redelivered:
        host.describe(begun=host.sequence + 1)
        host.promise(5)
    else:
        host.promise(5)
        host.describe(begun=host.sequence)
    host.skip(9)  # a new process, which began in epoch 9
    host.promise(12)
    host.describe(begun=2)  # the connection was lost, but the process is the same
    host.promise(14)
    merged.take()
    assert marked(merged.gaps, "a") == set(range(5, 10))


def test_epochs_between_two_logs_of_a_host_are_missing() -> None:
    merged = MergedStream(FLOW, ["a"])
    host = Host("a", merged)
    host.describe()
    host.promise(4)
    merged.take()
    host.log, host.sequence = "another", 0
    host.describe()
    host.skip(7)
    host.promise(9)
    merged.take()
    assert marked(merged.gaps, "a") == {4, 5, 6, 7}


def test_gaps_survive_a_restart_of_the_relay() -> None:
    merged = MergedStream(FLOW, ["a", "b"])
    merged.absent = {"b"}
    host = Host("a", merged)
    host.describe()
    host.promise(5)
    release = merged.take()
    assert release is not None
    again = MergedStream(FLOW, ["a", "b"], release.state)
    assert again.gaps == merged.gaps != ()


def test_gaps_that_touch_are_one_and_their_number_is_bounded() -> None:
    gaps: tuple[HostGap, ...] = ()
    for least, end in ((5, 7), (1, 2), (2, 3), (6, 9)):
        gaps = with_gap(gaps, HostGap("a", "tb", least, end))
    assert gaps == (HostGap("a", "tb", 1, 3), HostGap("a", "tb", 5, 9))
    for number in range(3 * MOST_GAPS):
        gaps = with_gap(gaps, HostGap("a", "tb", 100 + 2 * number, 101 + 2 * number))
        gaps = with_gap(gaps, HostGap("b", "tb", 0, 1))
    assert len(gaps) == MOST_GAPS + 1
    assert gaps[0].least == 1
    assert gaps[-2].end == 100 + 2 * 3 * MOST_GAPS - 1
