"""Heartbeats of live interfaces in every mode, of scripted packets by a scripted clock."""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING, Any

import pyarrow.parquet as pq
import pytest
from tests.capture.live.test_live_capture import SECOND, SKEW, START, STREAM, Stage, epoch

from gscope.capture.heartbeats.demands import Demands
from gscope.capture.heartbeats.mode import HeartbeatMode
from gscope.capture.log.log import read_log
from gscope.errors import StreamError
from gscope.queries.compile import CompileContext, QueryText, compile_queries
from gscope.queries.streams.messages import Batch, EndOfStream, Heartbeat

if TYPE_CHECKING:
    from pathlib import Path

TENS = epoch(START)
END_OF_EPOCH = (TENS + 1) * 10 * SECOND - START
"""When the first epoch of ten seconds ends, after the start."""


class QueryStage(Stage):
    """A stage for a query over the interface ``main``."""

    def __init__(self, folder: Path, text: str) -> None:
        super().__init__(folder)
        query = QueryText(text, "query.gsql")
        self.program = compile_queries([query], CompileContext(self.names)).program
        self.streams = [lfta.stream("main") for lfta in self.program.lftas]
        self.demands = Demands(self.streams)


@pytest.fixture
def stage(tmp_path: Path) -> Stage:
    return Stage(tmp_path / "log")


def beats(stage: Stage) -> list[Heartbeat]:
    return [message for message in read_log(stage.folder) if isinstance(message, Heartbeat)]


def clocks_s(stage: Stage) -> list[float]:
    """Of each heartbeat the clock, in seconds after the start; not of the one at the end."""
    return [(beat.clock_ns - START) / SECOND for beat in beats(stage)[:-1]]


def promised(stage: Stage) -> dict[str, list[int]]:
    """The bounds of every promise, in order; no batch that follows breaks one, and none falls."""
    found: dict[str, list[int]] = {}
    for message in read_log(stage.folder):
        match message:
            case Heartbeat():
                for each in message.punctuations:
                    found.setdefault(each.column, []).append(each.bound)
            case Batch():
                rows = pq.read_table(stage.folder / message.path).to_pylist()
                for name, bounds in found.items():
                    column, sign = name.removeprefix("-"), -1 if name.startswith("-") else 1
                    assert all(sign * int(row[column]) >= bounds[-1] for row in rows)
    assert all(one <= other for bounds in found.values() for one, other in pairwise(bounds))
    return found


# -- off -------------------------------------------------------------------------------------------


def test_off_a_silent_link_says_nothing_until_its_end(stage: Stage) -> None:
    stage.run(60, heartbeat_mode=HeartbeatMode.OFF)
    messages = read_log(stage.folder)
    assert [type(message) for message in messages] == [Heartbeat, EndOfStream]


def test_off_a_busy_link_closes_epochs_by_its_packets_and_the_end_closes_the_last(
    stage: Stage,
) -> None:
    for second in (1, 2, 13, 14, 15):
        stage.world.at(second, stage.source.send_now)
    stage.run(60, heartbeat_mode=HeartbeatMode.OFF)
    closing = next(b for b in beats(stage) if b.punctuations[0].bound > TENS)
    assert closing.clock_ns - START == pytest.approx(13 * SECOND, abs=SECOND // 5)
    assert max(clocks_s(stage)) <= 15.2
    assert sum(stage.epochs.values()) == 5
    promised(stage)


def test_off_packets_that_no_query_wants_still_advance_the_time(tmp_path: Path) -> None:
    """Their temporal fields are seen before the prefilter leaves them out."""
    stage = QueryStage(tmp_path / "log", "SELECT tb, count(*) FROM TCP GROUP BY time/10 as tb")
    for second in range(1, 30):
        stage.world.at(second, stage.source.send_now)
    stage.run(40, heartbeat_mode=HeartbeatMode.OFF)
    assert stage.epochs == {}
    assert promised(stage)["tb"][-2] == epoch(START + 29 * SECOND - SKEW)


# -- on demand -------------------------------------------------------------------------------------


def test_on_demand_silence_is_silent_but_for_the_first_heartbeat(stage: Stage) -> None:
    stage.run(60, heartbeat_mode=HeartbeatMode.ON_DEMAND)
    assert clocks_s(stage) == pytest.approx([0], abs=0.2)


def test_a_demand_is_answered_by_one_heartbeat_as_soon_as_it_can_be_kept(stage: Stage) -> None:
    stage.world.at(1, lambda: stage.demands.ask({STREAM: {"tb": TENS + 1}}))
    stage.run(30, heartbeat_mode=HeartbeatMode.ON_DEMAND)
    _, answer = clocks_s(stage)
    due = (END_OF_EPOCH + SKEW) / SECOND
    assert due <= answer <= due + 0.01
    assert promised(stage)["tb"][1] == TENS + 1


def test_a_demand_that_can_be_kept_already_is_answered_at_once(stage: Stage) -> None:
    stage.world.at(20, lambda: stage.demands.ask({STREAM: {"tb": TENS + 1}}))
    stage.run(30, heartbeat_mode=HeartbeatMode.ON_DEMAND)
    assert clocks_s(stage)[1:] == pytest.approx([20], abs=0.11)


def test_many_demands_are_one(stage: Stage) -> None:
    def ask() -> None:
        for _ in range(1000):
            stage.demands.ask({STREAM: {"tb": TENS + 1}})

    stage.world.at(1, ask)
    stage.world.at(2, ask)
    stage.run(30, heartbeat_mode=HeartbeatMode.ON_DEMAND)
    assert len(clocks_s(stage)) == 2


def test_a_demand_without_a_bound_is_answered_with_what_there_is(stage: Stage) -> None:
    stage.world.at(5, lambda: stage.demands.ask({STREAM: {}}))
    stage.run(10, heartbeat_mode=HeartbeatMode.ON_DEMAND)
    assert clocks_s(stage)[1:] == pytest.approx([5], abs=0.11)


def test_groups_are_closed_at_the_end_of_their_epoch_although_no_reader_knows_of_them(
    stage: Stage,
) -> None:
    stage.world.at(1, stage.source.send_now)
    stage.run(60, heartbeat_mode=HeartbeatMode.ON_DEMAND)
    due = (END_OF_EPOCH + SKEW) / SECOND
    *_, closing = clocks = clocks_s(stage)
    assert closing == pytest.approx(due, abs=0.01)
    assert len(clocks) <= 3
    assert promised(stage)["tb"][-2] > TENS


def test_rows_of_a_selection_are_seen_as_soon_as_they_are_in_time(tmp_path: Path) -> None:
    stage = QueryStage(tmp_path / "log", "SELECT timestamp, len FROM IP")
    stage.world.at(3, stage.source.send_now)
    stage.run(30, heartbeat_mode=HeartbeatMode.ON_DEMAND)
    messages = read_log(stage.folder)
    (place,) = [n for n, message in enumerate(messages) if isinstance(message, Batch)]
    behind = messages[place + 1]
    assert isinstance(behind, Heartbeat)
    sent = pq.read_table(stage.folder / messages[place].path).to_pylist()[0]["timestamp"]  # type: ignore[union-attr]
    assert 0 <= behind.clock_ns - sent - SKEW <= SECOND // 100
    promised(stage)


def test_rows_that_follow_each_other_share_heartbeats(tmp_path: Path) -> None:
    stage = QueryStage(tmp_path / "log", "SELECT timestamp, len FROM IP")

    def send() -> None:
        now = stage.world.wall_ns
        stage.source.send(*range(now - SECOND // 10, now, SECOND // 1000))

    for tenth in range(10, 20):
        stage.world.at(tenth / 10, send)
    summary = stage.run(5, heartbeat_mode=HeartbeatMode.ON_DEMAND)
    assert summary.interfaces[0].accepted == 1000
    assert len(clocks_s(stage)) <= 60
    promised(stage)


def test_both_beats_every_interval_and_on_demand(stage: Stage) -> None:
    stage.world.at(1, lambda: stage.demands.ask({STREAM: {"tb": TENS + 1}}))
    stage.world.at(4.5, lambda: stage.demands.ask({STREAM: {}}))
    stage.run(30, heartbeat_mode=HeartbeatMode.BOTH)
    clocks = clocks_s(stage)
    assert 31 <= len(clocks) <= 34
    assert any(clock == pytest.approx(4.6, abs=0.15) for clock in clocks)


def test_demands_are_refused_without_a_server_for_them() -> None:
    with pytest.raises(StreamError, match=r"heartbeat\.mode"):
        Demands([STREAM], is_served=False).ask({STREAM: {}})
    with pytest.raises(StreamError, match="unknown stream 'other'"):
        Demands([STREAM]).ask({"other": {}})


# -- times -----------------------------------------------------------------------------------------


def test_on_arrival_promises_do_not_wait_for_the_skew_and_no_packet_is_late(
    tmp_path: Path,
) -> None:
    stage = QueryStage(tmp_path / "log", "SELECT timestamp, len FROM IP")
    stage.timestamps = "arrival"
    stage.world.at(5, lambda: stage.source.send(START + 2 * SECOND))
    (interface,) = stage.run(20).interfaces
    assert (interface.late, interface.accepted) == (0, 1)
    at_once = [b.clock_ns - b.punctuations[0].bound for b in beats(stage)]
    assert set(at_once) == {0}
    promised(stage)


def test_latent_rows_are_seen_at_once(tmp_path: Path) -> None:
    stage = QueryStage(tmp_path / "log", "SELECT timestamp, len FROM IP")
    stage.interface["is_latent"] = True
    stage.world.at(3, stage.source.send_now)
    stage.run(30, heartbeat_mode=HeartbeatMode.ON_DEMAND)
    messages = read_log(stage.folder)
    (place,) = [n for n, message in enumerate(messages) if isinstance(message, Batch)]
    behind = messages[place + 1]
    assert isinstance(behind, Heartbeat)
    assert behind.clock_ns - START == pytest.approx(3 * SECOND, abs=SECOND // 9)


@pytest.mark.parametrize("mode", list(HeartbeatMode))
@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("SELECT -time as t, len FROM IP", {"-t"}),
        ("SELECT time/10 + timestamp/INTERVAL '1 sec' as t, len FROM IP", {"t"}),
        ("SELECT time, timestamp, len FROM IP", {"time", "timestamp"}),
        ("SELECT tb, half, count(*) FROM IP GROUP BY time/10 as tb, time/5 as half", {"tb"}),
        ("SELECT tb, count(*) FROM IP GROUP BY -(time/10) as tb", {"tb"}),
    ],
)
def test_composite_and_decreasing_columns_are_promised_and_kept(
    tmp_path: Path, text: str, names: set[str], mode: HeartbeatMode
) -> None:
    stage = QueryStage(tmp_path / "log", text)
    for second in (1, 2, 7, 11, 12, 13):
        stage.world.at(second, stage.source.send_now)
    (interface,) = stage.run(25, heartbeat_mode=mode).interfaces
    found: dict[str, Any] = promised(stage)
    assert names <= set(found)
    assert interface.accepted == 6


def test_every_column_of_a_heartbeat_can_be_asked_for(tmp_path: Path) -> None:
    text = "SELECT tb, half, count(*) FROM IP GROUP BY time/10 as tb, time/5 as half"
    stage = QueryStage(tmp_path / "log", text)
    (stream,) = stage.streams
    half = START // SECOND // 5 + 3
    stage.world.at(1, lambda: stage.demands.ask({stream: {"half": half}}))
    stage.run(60, heartbeat_mode=HeartbeatMode.ON_DEMAND)
    assert len(clocks_s(stage)) == 2
    assert promised(stage)["half"][1] >= half
