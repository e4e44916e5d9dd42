"""A live capture that is killed goes on in its log: promises, numbers, counters, the end."""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING, Any

import pytest
from tests.capture.live.test_live_capture import MINUTE, SECOND, SKEW, START, STREAM, Stage, epoch

from gscope.capture.interface.resume_state import ResumeState, caught_up
from gscope.capture.interface.summary import InterfaceSummary
from gscope.capture.live.resume import ended_interfaces, with_earlier
from gscope.capture.live.stop import LiveStop
from gscope.capture.log.log import read_log
from gscope.queries.streams.messages import Batch, EndOfStream, Heartbeat

if TYPE_CHECKING:
    from pathlib import Path

    from gscope.capture.interface.summary import CaptureSummary
    from gscope.queries.streams.messages import Message


class Crash(BaseException):
    """The daemon is killed."""


class Lives(Stage):
    """A stage on which a daemon can die and another one go on."""

    def live_until_crash(self, crash_s: float, **settings: Any) -> None:
        def crash() -> None:
            raise Crash

        self.world.at(crash_s, crash)
        with pytest.raises(Crash):
            self.run(10**6, **settings)
        self.world.events = []
        self.world.stop = LiveStop()
        for source in self.sources.values():
            source.held = 0
            source.blocks = []

    @property
    def counters(self) -> dict[str, int]:
        """Those of the last heartbeat."""
        *_, beat = (m for m in read_log(self.folder) if isinstance(m, Heartbeat))
        return dict(beat.trace[0].counters)

    @property
    def logged(self) -> int:
        return sum(m.rows for m in read_log(self.folder) if isinstance(m, Batch))


@pytest.fixture
def lives(tmp_path: Path) -> Lives:
    return Lives(tmp_path / "log")


def ensure_contract(folder: Path) -> None:
    """Bounds never fall, no batch breaks one, numbers rise by one, and what ended has ended."""
    bounds: dict[tuple[str, str], int] = {}
    numbers: dict[str, int] = {}
    identities: dict[str, int] = {}
    for message in read_log(folder):
        assert message.sequence == numbers.get(message.stream, -1) + 1
        numbers[message.stream] = message.sequence
        match message:
            case Heartbeat():
                assert message.identity > identities.get(message.stream, 0)
                identities[message.stream] = message.identity
                for promise in message.punctuations:
                    key = message.stream, promise.column
                    assert promise.bound >= bounds.get(key, promise.bound)
                    bounds[key] = promise.bound
            case Batch():
                for extent in message.extents:
                    bound = bounds.get((message.stream, extent.column))
                    assert bound is None or extent.least >= bound
            case EndOfStream():
                numbers[message.stream] = 10**9


def ensure_sum(summary: CaptureSummary) -> None:
    """Put out or in a group = logged + shed + lost + late."""
    for stream, counters in summary.lftas.items():
        put_out = counters["tuples_out_total"] + counters["live_groups"]
        lost = counters.get("lost_in_crash_tuples_total", 0) + counters.get("late_tuples_total", 0)
        assert put_out == summary.logged[stream]["tuples_total"] + lost


def test_the_next_daemon_keeps_the_contract_of_the_stream(lives: Lives) -> None:
    for second in (1, 4, 9, 13):
        lives.world.at(second, lives.source.send_now)
    lives.live_until_crash(14.5)
    for second in (16, 22, 35):
        lives.world.at(second, lives.source.send_now)
    summary = lives.run(40)
    ensure_contract(lives.folder)
    ensure_sum(summary)
    assert isinstance(read_log(lives.folder)[-1], EndOfStream)


def test_counters_go_on_and_report_what_was_lost(lives: Lives) -> None:
    for second in (1, 2, 12):
        lives.world.at(second, lives.source.send_now)
    lives.live_until_crash(15.5)
    before = lives.counters
    assert (before["packets_total"], before["live_groups"]) == (3, 1)
    lives.world.wait(2 * SECOND)
    lives.world.at(20, lives.source.send_now)
    summary = lives.run(40)
    after = summary.lftas[STREAM]
    assert after["packets_total"] == 4
    assert after["crashes_total"] == 1
    assert after["lost_in_crash_tuples_total"] == 1
    assert 2 * SECOND < after["uncaptured_ns_total"] < 4 * SECOND
    assert lives.epochs == {epoch(START + SECOND): 2, epoch(START + 20 * SECOND): 1}
    ensure_sum(summary)


def test_what_several_crashes_took_is_reported_together(lives: Lives) -> None:
    for crash in range(1, 4):
        begin = crash * 10
        lives.world.at(begin + 1, lives.source.send_now)
        lives.live_until_crash(begin + 5.5)
        lives.world.wait(SECOND)
    summary = lives.run(60)
    counters = summary.lftas[STREAM]
    assert counters["crashes_total"] == 3
    assert counters["packets_total"] == 3
    ensure_contract(lives.folder)
    ensure_sum(summary)


def test_packets_from_before_the_last_promise_are_late(lives: Lives) -> None:
    lives.live_until_crash(15.5)
    lives.world.at(17, lives.source.send_now)
    lives.world.at(17, lambda: lives.source.send(START + 12 * SECOND))
    (interface,) = lives.run(30).interfaces
    assert (interface.late, interface.accepted) == (1, 1)


def test_the_clock_stepped_back_while_no_daemon_lived(lives: Lives) -> None:
    lives.live_until_crash(30.5)
    lives.world.step(-2 * MINUTE)
    lives.world.wait(SECOND)
    for second in (40, 100, 160):
        lives.world.at(second, lives.source.send_now)
    (interface,) = lives.run(180).interfaces
    assert (interface.late, interface.accepted) == (2, 1)
    ensure_contract(lives.folder)


def test_the_clock_stepped_ahead_while_no_daemon_lived(lives: Lives) -> None:
    lives.live_until_crash(30.5)
    lives.world.step(5 * MINUTE)
    for second in (32, 40, 50):
        lives.world.at(second, lives.source.send_now)
    (interface,) = lives.run(60).interfaces
    assert (interface.late, interface.accepted) == (0, 3)
    assert max(bound for _, bound in lives.bounds) >= epoch(START + 5 * MINUTE + 50 * SECOND)
    ensure_contract(lives.folder)


def test_a_step_ahead_around_a_crash_that_is_taken_back_makes_nothing_late(lives: Lives) -> None:
    lives.world.at(29, lambda: lives.world.step(5 * MINUTE))
    lives.live_until_crash(30.5)
    lives.world.at(32, lambda: lives.world.step(-5 * MINUTE))
    for second in (31, 33, 50):
        lives.world.at(second, lives.source.send_now)
    (interface,) = lives.run(60).interfaces
    assert (interface.late, interface.accepted) == (0, 3)


def test_a_count_is_one_of_all_daemons(lives: Lives) -> None:
    for second in (1, 2, 3):
        lives.world.at(second, lambda: lives.source.send(*[lives.world.wall_ns] * 4))
    lives.live_until_crash(5.5, packets=20)
    for second in (7, 8, 9):
        lives.world.at(second, lambda: lives.source.send(*[lives.world.wall_ns] * 4))
    summary = lives.run(100, packets=20)
    assert summary.lftas[STREAM]["packets_total"] == 20
    assert lives.world.monotonic_ns < 9 * SECOND


def test_killed_after_the_end_it_captures_no_more_and_reports_the_same(lives: Lives) -> None:
    lives.world.at(1, lives.source.send_now)
    first = lives.run(5)
    ended = read_log(lives.folder)
    assert ended_interfaces(lives.folder, lives.names) == {"main"}
    lives.sources = {}
    again = lives.run(10)
    assert read_log(lives.folder) == ended
    expected = first.lftas[STREAM]
    assert {name: again.lftas[STREAM][name] for name in expected} == expected
    assert again.lftas[STREAM]["crashes_total"] == 0


def test_an_interface_whose_streams_ended_is_not_captured_again(tmp_path: Path) -> None:
    lives = Lives(tmp_path / "log", "main", "gone")
    lives.sources["gone"].is_gone = True
    lives.world.at(3, lives.source.send_now)
    lives.live_until_crash(15.5)
    assert ended_interfaces(lives.folder, lives.names) == {"gone"}
    assert ended_interfaces(tmp_path / "nothing", lives.names) == frozenset()
    del lives.sources["gone"]
    lives.world.at(17, lives.source.send_now)
    summary = lives.run(30)
    assert [interface.name for interface in summary.interfaces] == ["main", "gone"]
    assert summary.lftas[STREAM]["packets_total"] == 2
    ends = [m.stream for m in read_log(lives.folder) if isinstance(m, EndOfStream)]
    assert sorted(ends) == ["flow@gone", STREAM]


@pytest.mark.parametrize("crash_s", [0.05, 1.5, 9.99, 10.05, 10.25, 19.5])
def test_whenever_it_is_killed_no_packet_is_counted_twice(lives: Lives, crash_s: float) -> None:
    def send_every(seconds: float, begin: float, end: float) -> None:
        for number in range(int((end - begin) / seconds)):
            lives.world.at(begin + number * seconds, lives.source.send_now)

    send_every(0.3, 0, crash_s)
    lives.live_until_crash(crash_s)
    logged_before = sum(lives.epochs.values())
    sent_again = 20
    send_every(0.3, crash_s + 1, crash_s + 1 + sent_again * 0.3)
    summary = lives.run(crash_s + 30)
    assert sum(lives.epochs.values()) == logged_before + sent_again
    ensure_contract(lives.folder)
    ensure_sum(summary)


def test_what_was_reported_before_is_added_and_the_sum_closes() -> None:
    now = InterfaceSummary("a", 11, 1, 0, 0, 2, {"cut": 1}, 5, 1, ("now",), unsupported={"new": 1})
    earlier = {
        "received_packets": 10,
        "dropped_packets": 1,
        "malformed_packets": {"cut": 1, "bad": 1},
        "unsupported_packets": {"new": 2, "deep": 1},
        "accepted_packets": 2,
        "unread_packets": 2,
        "damage": ["before"],
    }
    total = with_earlier(now, earlier)
    assert total.received == 21
    terms = (total.dropped, total.filtered, total.shed, total.late, total.accepted, total.unread)
    assert sum(terms) + sum(total.malformed.values()) + sum(total.unsupported.values()) == 21
    assert total.malformed == {"cut": 2, "bad": 1}
    assert total.unsupported == {"new": 3, "deep": 1}
    assert total.damage == ("before", "now")
    assert with_earlier(now, {}) == now


def test_what_the_last_heartbeat_reports_is_younger_than_the_file() -> None:
    reported = {
        "packets_total": 28,
        "late_packets_total": 3,
        "shed_packets_total": 6,
        "malformed_packets_total": 4,
        "unsupported_packets_total": 2,
    }
    earlier = {
        "received_packets": 14,
        "late_packets": 2,
        "shed_packets": 2,
        "malformed_packets": {"cut": 3},
        "accepted_packets": 4,
        "unread_packets": 3,
    }
    caught = caught_up(earlier, ResumeState(counters={"a": reported, "b": reported}))
    assert caught == {
        "received_packets": 28,
        "late_packets": 3,
        "shed_packets": 6,
        "malformed_packets": {"cut": 3, "unknown": 1},
        "unsupported_packets": {"unknown": 2},
        "accepted_packets": 13,
        "unread_packets": 0,
    }
    assert caught_up(caught, ResumeState(counters={"a": reported})) == caught
    assert caught_up({}, ResumeState())["received_packets"] == 0


def test_intervals_of_heartbeats_go_on(lives: Lives) -> None:
    lives.live_until_crash(10.3)
    lives.run(20.5)
    clocks = [clock for clock, _ in lives.bounds]
    assert all(0 <= after - before <= SECOND + SKEW for before, after in pairwise(clocks))


def test_the_streams_of_a_device_that_is_gone_end_and_report_what_was_lost(lives: Lives) -> None:
    for second in (1, 3):
        lives.world.at(second, lives.source.send_now)
    lives.live_until_crash(8.5)
    lives.sources = {}
    lives.missing = {"main": "it is gone"}
    first = lives.run(10)
    assert lives.failures == list(first.failed.items()) == [("main", "it is gone")]
    lives.missing = {}
    for summary in (first, lives.run(12)):
        counters = summary.lftas[STREAM]
        assert (counters["crashes_total"], counters["lost_in_crash_tuples_total"]) == (1, 1)
        ensure_sum(summary)
    ensure_contract(lives.folder)
    assert isinstance(read_log(lives.folder)[-1], EndOfStream)


def test_readers_may_claim_before_the_next_daemon_logs_anything(lives: Lives) -> None:
    lives.world.at(1, lives.source.send_now)
    lives.live_until_crash(15.5)
    before = read_log(lives.folder)
    seen: list[list[Message]] = []
    lives.on_ready = lambda: seen.append(read_log(lives.folder))
    lives.run(17)
    assert seen == [before]


def test_an_interface_of_which_nothing_is_logged_can_be_missing(tmp_path: Path) -> None:
    lives = Lives(tmp_path / "log", "main", "other")
    del lives.sources["other"]
    lives.missing = {"other": "it is gone"}
    assert lives.run(5).failed == {"other": "it is gone"}
    assert ended_interfaces(lives.folder, lives.names) == {"main", "other"}
