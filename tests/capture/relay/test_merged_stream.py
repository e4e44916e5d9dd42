"""Any split of tuples over inputs, any depth of relays, any kill: the same groups as one daemon."""

from __future__ import annotations

import json
import random
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import Phase, given, settings
from hypothesis import strategies as st
from tests.capture.relay.lftas import aggregation, folded, rows_of, selection, table

from gscope.capture.log.stream_rows import extents_of
from gscope.capture.relay.merged_stream import MOST_LOGS, MergedStream
from gscope.capture.relay.ports import PortKey
from gscope.capture.relay.relay_state import MergeState
from gscope.queries.catalog.aggregate.partial_op import PartialOp
from gscope.queries.expressions.types import GsqlType
from gscope.queries.streams.event_codec import from_plain, to_plain
from gscope.queries.streams.losses import Losses, LossPeriod, LostRows
from gscope.queries.streams.messages import Extent, Punctuation

if TYPE_CHECKING:
    from collections.abc import Sequence

    import pyarrow as pa

    from gscope.capture.relay.merged_stream import Release
    from gscope.queries.plan.program import Lfta

Message = tuple[str, Any]
"""``rows`` with rows, ``beat`` with bounds, ``end``."""

EXAMPLES = settings(max_examples=20, phases=(Phase.explicit, Phase.reuse, Phase.generate))


@dataclass
class HeldRows:
    """Rows in memory, which say when they are read after they were discarded."""

    found: pa.Table
    lfta: Lfta
    is_gone: bool = False
    looks: int = 0

    @property
    def extents(self) -> Any:
        self.looks += 1
        return extents_of(self.found, self.lfta)

    @property
    def num_rows(self) -> int:
        return int(self.found.num_rows)

    def read(self) -> pa.Table:
        assert not self.is_gone
        return self.found

    def discard(self) -> None:
        assert not self.is_gone
        self.is_gone = True


@dataclass
class Output:
    """What a relay has logged; checks each promise against all that follows."""

    lfta: Lfta
    messages: list[Message] = field(default_factory=list)
    bounds: dict[str, int] = field(default_factory=dict)
    has_ended: bool = False

    def take(self, release: Release) -> None:
        assert not self.has_ended
        if release.rows is not None:
            names = release.rows.column_names
            for row in rows_of(release.rows):
                for name, bound in self.bounds.items():
                    value = row[names.index(name.removeprefix("-"))]
                    assert (-value if name.startswith("-") else value) >= bound
            self.messages.append(("rows", rows_of(release.rows)))
        for each in release.punctuations:
            assert each.bound >= self.bounds.get(each.column, each.bound)
            self.bounds[each.column] = each.bound
        self.messages.append(("beat", dict(self.bounds)))
        if release.is_last:
            self.has_ended = True
            self.messages.append(("end", None))

    @property
    def rows(self) -> list[Any]:
        return [row for kind, what in self.messages if kind == "rows" for row in what]


def relayed(lfta: Lfta, inputs: Sequence[list[Message]], choose: Any, **settings: Any) -> Output:
    """Run a relay over the logs of some inputs; ``choose`` interleaves, kills and takes.

    A kill loses all that the relay had in memory; it continues from the state of its last release.
    """
    names = [f"in{n}" for n in range(len(inputs))]
    keys = [PortKey(name, "log", "flow@eth0") for name in names]
    output = Output(lfta)
    state = MergeState()

    def started() -> MergedStream:
        stored = from_plain(MergeState, json.loads(json.dumps(to_plain(state))))
        fresh = MergedStream(lfta, names, stored, **settings)
        for key in keys:
            fresh.on_described(key.input, key.log, {key.stream: 0})
        return fresh

    stream = started()
    while not output.has_ended:
        left = [n for n, key in enumerate(keys) if stream.ports[key].next < len(inputs[n])]
        what = choose(["feed", "feed", "feed", "take", "kill"] if left else ["take"])
        if what == "kill":
            stream = started()
        elif what == "take":
            if (release := stream.take()) is not None:
                output.take(release)
                state = release.state
            elif not left:
                assert stream.is_over, "nothing is left, and nothing comes"
        else:
            number = choose(left)
            key = keys[number]
            position = stream.ports[key].next
            kind, content = inputs[number][position]
            if kind == "rows":
                stream.on_batch(key, position, HeldRows(table(lfta, content), lfta))
            elif kind == "beat":
                beat = [Punctuation(name, bound) for name, bound in content.items()]
                stream.on_heartbeat(key, position, beat, 0)
            else:
                stream.on_end(key, position)
    assert stream.held_rows == 0
    assert sum(port.late_tuples_total for port in stream.ports.values()) == 0
    return output


@st.composite
def logs(draw: st.DrawFn, lfta: Lfta, is_falling: bool) -> list[list[Message]]:
    """The logs of one to four inputs: batches of partial tuples and promises, in order of time."""
    sign = -1 if is_falling else 1
    prefix = "-" if is_falling else ""
    made = []
    for _ in range(draw(st.integers(1, 4))):
        log: list[Message] = []
        clock = 0
        for ahead, count in draw(
            st.lists(st.tuples(st.integers(0, 25), st.integers(0, 3)), max_size=7)
        ):
            if count:
                times = draw(
                    st.lists(st.integers(clock, clock + 35), min_size=1, max_size=4 * count)
                )
                log.append(("rows", [draw(_row(lfta, sign, t)) for t in times]))
            clock += ahead
            if draw(st.booleans()):
                if lfta.is_aggregation:
                    bounds = {"tb": clock // 10 * sign, "fine": clock * sign}
                    bounds = {prefix + name: sign * bound for name, bound in bounds.items()}
                    # A falling epoch of time t is -(t // 10).
                else:
                    bounds = {f"{prefix}time": clock}
                log.append(("beat", bounds))
        log.append(("end", None))
        made.append(log)
    return made


def _row(lfta: Lfta, sign: int, time: int) -> st.SearchStrategy[Any]:
    value = st.one_of(st.none(), st.integers(-5, 5))
    if not lfta.is_aggregation:
        return st.tuples(st.just(sign * time), value)
    key = st.sampled_from([None, b"", b"a", b"b"])
    clocks = (st.just(sign * (time // 10)), st.just(sign * time))
    return st.tuples(*clocks, key, st.integers(1, 3), value, st.sampled_from([b"eth0", b"eth1"]))


def groups(is_falling: bool) -> Lfta:
    folds = [(PartialOp.COUNT, GsqlType.INT), (PartialOp.MAX, GsqlType.INT)]
    return aggregation([GsqlType.STRING], folds, is_falling=is_falling, has_interface=True)


@EXAMPLES
@given(st.data(), st.booleans(), st.sampled_from([1, 4, 1 << 20]))
def test_a_relay_gives_the_groups_of_one_daemon(
    data: st.DataObject, is_falling: bool, limit: int
) -> None:
    ensure_same_groups(data, is_falling, limit)


@pytest.mark.long
@settings(max_examples=3000)
@given(st.data(), st.booleans(), st.sampled_from([1, 4, 1 << 20]))
def test_a_relay_gives_the_groups_of_one_daemon_often(
    data: st.DataObject, is_falling: bool, limit: int
) -> None:
    ensure_same_groups(data, is_falling, limit)


def ensure_same_groups(data: st.DataObject, is_falling: bool, limit: int) -> None:
    lfta = groups(is_falling)
    inputs = data.draw(logs(lfta, is_falling))
    output = relayed(lfta, inputs, _chooser(data), limit_rows=limit)
    tuples = [row for log in inputs for kind, rows in log if kind == "rows" for row in rows]
    assert folded(lfta, output.rows) == folded(lfta, tuples)
    # All parts of a group are one row, although they came from several hosts.
    assert len(output.rows) == len(folded(lfta, tuples))
    epochs = [-row[0] if is_falling else row[0] for row in output.rows]
    assert epochs == sorted(epochs)


@EXAMPLES
@given(st.data(), st.booleans(), st.sampled_from([1, 1 << 20]))
def test_a_relay_passes_each_row_of_a_selection_once(
    data: st.DataObject, is_falling: bool, limit: int
) -> None:
    lfta = selection(is_falling=is_falling)
    inputs = data.draw(logs(lfta, is_falling))
    output = relayed(lfta, inputs, _chooser(data), limit_rows=limit)
    tuples = [row for log in inputs for kind, rows in log if kind == "rows" for row in rows]
    assert sorted(output.rows, key=repr) == sorted(tuples, key=repr)


@EXAMPLES
@given(st.data())
def test_relays_of_relays_give_the_groups_of_one_daemon(data: st.DataObject) -> None:
    lfta = groups(is_falling=False)
    choose = _chooser(data)
    inputs = data.draw(logs(lfta, is_falling=False))
    tuples = [row for log in inputs for kind, rows in log if kind == "rows" for row in rows]
    level = inputs
    for _ in range(data.draw(st.integers(1, 3))):
        cut = data.draw(st.integers(0, len(level) - 1))
        parts = [part for part in (level[:cut], level[cut:]) if part]
        level = [relayed(lfta, part, choose).messages for part in parts]
    rows = relayed(lfta, level, choose).rows
    assert folded(lfta, rows) == folded(lfta, tuples)
    assert len(rows) == len(folded(lfta, tuples))


def _chooser(data: st.DataObject) -> Any:
    return random.Random(data.draw(st.integers(0, 2**32))).choice


# -- inputs that are absent ------------------------------------------------------------------------


def two_inputs() -> tuple[MergedStream, PortKey, PortKey]:
    stream = MergedStream(groups(is_falling=False), ["a", "b"])
    keys = [PortKey(name, "log", "flow@eth0") for name in ("a", "b")]
    return stream, keys[0], keys[1]


def row(epoch: int) -> tuple[Any, ...]:
    return (epoch, 10 * epoch, b"k", 1, None, b"eth0")


def give(stream: MergedStream, key: PortKey, epoch: int) -> HeldRows:
    rows = HeldRows(table(stream.lfta, [row(epoch)]), stream.lfta)
    stream.on_batch(key, stream.ports[key].next, rows)
    return rows


def beat(stream: MergedStream, key: PortKey, epoch: int) -> None:
    promises = [Punctuation("tb", epoch), Punctuation("fine", 10 * epoch)]
    stream.on_heartbeat(key, stream.ports[key].next, promises, 0)


def taken(stream: MergedStream) -> list[int]:
    """The epochs of all rows that can be released."""
    epochs: list[int] = []
    while (release := stream.take()) is not None:
        epochs += [] if release.rows is None else release.rows["tb"].to_pylist()
    return epochs


def test_an_input_that_is_unknown_or_silent_holds_the_rows_of_others() -> None:
    stream, a, b = two_inputs()
    stream.on_described("a", a.log, {a.stream: 0})
    give(stream, a, 1)
    beat(stream, a, 5)
    assert taken(stream) == []
    stream.on_described("b", b.log, {b.stream: 0})
    assert taken(stream) == []
    assert stream.holders() == [b]
    beat(stream, b, 2)
    assert taken(stream) == [1]


def test_an_absent_input_holds_nothing_and_its_late_rows_are_counted() -> None:
    stream, a, b = two_inputs()
    for key in (a, b):
        stream.on_described(key.input, key.log, {key.stream: 0})
    give(stream, a, 1)
    give(stream, b, 1)
    beat(stream, a, 4)
    stream.absent.add("b")
    assert taken(stream) == [1]
    stream.absent.clear()
    late = give(stream, b, 3)
    give(stream, b, 4)
    assert late.is_gone
    assert stream.ports[b].late_tuples_total == 1
    # It has the bound that it had when it left, so it holds back what is still to come.
    beat(stream, a, 9)
    assert taken(stream) == []
    beat(stream, b, 9)
    assert taken(stream) == [4]


def test_rows_that_wait_are_looked_at_only_when_promises_have_risen() -> None:
    stream, a, b = two_inputs()
    for key in (a, b):
        stream.on_described(key.input, key.log, {key.stream: 0})
        beat(stream, key, 2)
    waiting = give(stream, a, 3)
    beat(stream, a, 5)
    taken(stream)
    looks = waiting.looks
    beat(stream, a, 6)
    assert taken(stream) == []
    assert waiting.looks == looks
    beat(stream, b, 4)
    assert taken(stream) == [3]


def test_promises_of_columns_that_are_unknown_are_not_kept() -> None:
    stream, a, _ = two_inputs()
    stream.on_described("a", a.log, {a.stream: 0})
    stream.on_heartbeat(a, 0, [Punctuation("tb", 1), Punctuation("x", 1)], 0)
    assert stream.ports[a].bounds == {"tb": 1}


def test_rows_wait_while_all_inputs_are_absent() -> None:
    stream, a, b = two_inputs()
    for key in (a, b):
        stream.on_described(key.input, key.log, {key.stream: 0})
        beat(stream, key, 1)
        give(stream, key, 1)
        stream.absent.add(key.input)
    assert taken(stream) == []
    assert not stream.is_over


def test_a_new_log_of_an_input_ends_the_streams_of_the_old_one() -> None:
    stream, a, b = two_inputs()
    for key in (a, b):
        stream.on_described(key.input, key.log, {key.stream: 0})
    beat(stream, b, 3)
    give(stream, a, 1)
    assert stream.on_described("a", "new", {a.stream: 0}) == {a.stream: 0}
    new = a._replace(log="new")
    give(stream, new, 2)
    beat(stream, new, 3)
    assert taken(stream) == [1, 2]


def test_an_input_that_returns_to_an_earlier_log_is_waited_for_again() -> None:
    stream, a, b = two_inputs()
    other = a._replace(log="other")
    for key in (a, b, other, a):
        stream.on_described(key.input, key.log, {key.stream: 0})
    for key in (b, other):
        stream.on_end(key, 0)
    assert not stream.is_over
    give(stream, a, 1)
    assert taken(stream) == []
    beat(stream, a, 2)
    assert taken(stream) == [1]
    stream.on_end(a, stream.ports[a].next)
    release = stream.take()
    assert release is not None
    assert release.is_last


def test_an_input_with_ever_new_logs_is_remembered_with_the_latest() -> None:
    stream, a, b = two_inputs()
    stream.on_described("b", b.log, {b.stream: 0})
    for number in range(3 * MOST_LOGS):
        new = a._replace(log=f"{number}")
        stream.on_described("a", new.log, {new.stream: 0})
        give(stream, new, number)
        beat(stream, new, number)
        if number % 2:
            beat(stream, b, number)
            taken(stream)
    logs = [key.log for key in stream.ports if key.input == "a"]
    assert logs == [f"{number}" for number in range(2 * MOST_LOGS, 3 * MOST_LOGS)]
    assert sum(port.rows_total for port in stream.ports.values()) == 3 * MOST_LOGS


def test_rows_of_a_log_that_is_held_are_not_forgotten() -> None:
    stream, a, b = two_inputs()
    stream.on_described("b", b.log, {b.stream: 0})
    for number in range(2 * MOST_LOGS):
        new = a._replace(log=f"{number}")
        stream.on_described("a", new.log, {new.stream: 0})
        give(stream, new, number)
    beat(stream, new, 100)
    beat(stream, b, 100)
    assert taken(stream) == list(range(2 * MOST_LOGS))


def test_rows_that_were_released_before_a_kill_are_not_late() -> None:
    stream, a, b = two_inputs()
    for key in (a, b):
        stream.on_described(key.input, key.log, {key.stream: 0})
    both = [row(1), row(5)]
    stream.on_batch(a, 0, HeldRows(table(stream.lfta, both), stream.lfta))
    for key in (a, b):
        beat(stream, key, 3)
    release = stream.take()
    assert release is not None
    assert release.rows is not None
    assert release.rows["tb"].to_pylist() == [1]
    again = MergedStream(stream.lfta, ["a", "b"], release.state)
    assert again.on_described("a", a.log, {a.stream: 0}) == {a.stream: 0}
    assert again.on_described("b", b.log, {b.stream: 0}) == {b.stream: 1}
    again.on_batch(a, 0, HeldRows(table(stream.lfta, both), stream.lfta))
    assert taken(again) == []
    for key in (a, b):
        again.on_end(key, 2)
    assert taken(again) == [5]
    assert again.ports[a].late_tuples_total == 0


def test_the_end_by_a_stop_releases_epochs_that_are_not_complete() -> None:
    stream, a, b = two_inputs()
    for key in (a, b):
        stream.on_described(key.input, key.log, {key.stream: 0})
        give(stream, key, 7)
    release = stream.take(is_last=True)
    assert release is not None
    assert release.is_last
    assert release.rows is not None
    assert rows_of(release.rows) == [(7, 70, b"k", 2, None, b"eth0")]


def test_a_batch_that_is_received_twice_counts_once() -> None:
    stream, a, _ = two_inputs()
    stream.on_described("a", a.log, {a.stream: 0})
    give(stream, a, 1)
    again = HeldRows(table(stream.lfta, [row(1)]), stream.lfta)
    stream.on_batch(a, 0, again)
    assert again.is_gone
    assert stream.held_rows == 1


def test_losses_of_all_inputs_come_with_the_promise_that_passes_them() -> None:
    stream, a, b = two_inputs()
    for key in (a, b):
        stream.on_described(key.input, key.log, {key.stream: 0})
    dropped, restarted = LossPeriod("kernel", 11, 14, 3), LossPeriod("restart", 30, 45)
    shed = LostRows((Extent("tb", 1, 2), Extent("fine", 10, 29)), 7)
    promises = [Punctuation("tb", 5), Punctuation("fine", 50)]
    stream.on_shed(a, 0, 5, shed)
    stream.on_losses(a, Losses((dropped,)))
    stream.on_heartbeat(a, 1, promises, 0)
    stream.on_losses(b, Losses((restarted,)))
    stream.on_heartbeat(b, 0, promises, 0)
    release = stream.take()
    assert release is not None
    assert ("tb", 5) in [(each.column, each.bound) for each in release.punctuations]
    assert release.state.losses == Losses((dropped, restarted), (shed,))
    # They survive the relay, though it does not receive these messages again.
    stored = from_plain(MergeState, json.loads(json.dumps(to_plain(release.state))))
    again = MergedStream(stream.lfta, ["a", "b"], stored)
    for key in (a, b):
        again.on_described(key.input, key.log, {key.stream: 0})
    # Heartbeats list all losses of a stream again.
    later = LossPeriod("kernel", 70, 71, 1)
    beyond = [Punctuation("tb", 9), Punctuation("fine", 90)]
    again.on_losses(a, Losses((dropped, later)))
    again.on_heartbeat(a, 2, beyond, 0)
    again.on_losses(b, Losses((restarted,)))
    again.on_heartbeat(b, 1, beyond, 0)
    release = again.take()
    assert release is not None
    assert release.state.losses == Losses((dropped, restarted, later), (shed,))
