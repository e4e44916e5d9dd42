"""The streams for which an operator waits."""

from __future__ import annotations

from tests.engine.steps.watched_steps import heartbeat, steps, stream_of

from gscope.engine.steps.blocking_streams import held_by
from gscope.queries.streams.messages import EndOfStream


def test_an_operator_waits_for_the_stream_that_promised_least() -> None:
    watched = steps("eth0", "eth1")
    watched.on_messages(
        [heartbeat(watched, "eth0", 0, 50, 1), heartbeat(watched, "eth1", 0, 40, 2)]
    )
    assert held_by(watched.operators, "tens") == (stream_of(watched, "eth1"),)


def test_all_that_promised_the_same_are_waited_for() -> None:
    watched = steps("eth0", "eth1")
    assert held_by(watched.operators, "tens") == watched.streams


def test_streams_are_found_behind_other_operators() -> None:
    watched = steps("eth0", "eth1")
    watched.on_messages([heartbeat(watched, "eth0", 0, 50, 1)])
    watched.next()
    assert held_by(watched.operators, "minutes") == (stream_of(watched, "eth1"),)


def test_what_has_ended_blocks_no_operator() -> None:
    watched = steps("eth0")
    watched.on_messages([EndOfStream(stream_of(watched, "eth0"), 0)])
    watched.next()
    assert held_by(watched.operators, "tens") == ()
