"""Captures on the board of a control process: what is passed on, and what is refused."""

from __future__ import annotations

import re
from typing import Any

import pytest
from tests.capture.log.agent.requests import request

from gscope.capture.log.agent.board import (
    MAX_CAPTURES,
    RETRY_S,
    WANTED_S,
    CaptureBoard,
    request_digest,
)
from gscope.capture.log.agent.messages import ENDED, FAILED, SERVING, STARTING, CaptureState
from gscope.errors import StreamError
from gscope.queries.streams.process_events import (
    CaptureDismissed,
    CaptureRequested,
    CaptureWanted,
    ProcessEvent,
)


class Clock:
    def __init__(self) -> None:
        self.now_s = 100.0

    def __call__(self) -> float:
        return self.now_s


class Held:
    """A board, the events that it sent, and its clock."""

    def __init__(self) -> None:
        self.sent: list[ProcessEvent] = []
        self.clock = Clock()
        self.board = CaptureBoard(("up",), self.sent.append, self.clock)

    def begin(self, name: Any = "q-1", asked: object = None) -> CaptureState:
        return self.board.begin(name, request() if asked is None else asked, is_known=False)


def test_a_request_is_passed_on_once() -> None:
    held = Held()
    assert [held.begin().state, held.begin().state] == [STARTING, STARTING]
    assert held.sent == [CaptureRequested("q-1", request(), False), CaptureWanted("q-1")]
    held.board.on_state("q-1", request_digest(request()), CaptureState(SERVING, 9481))
    assert held.begin() == CaptureState(SERVING, 9481)
    assert len(held.sent) == 2


def test_that_it_is_wanted_is_reported_once_a_second() -> None:
    held = Held()
    held.begin()
    for _ in range(5):
        held.board.want("q-1")
    held.clock.now_s += WANTED_S
    held.board.want("q-1")
    held.board.want("unknown")
    assert held.sent[1:] == [CaptureWanted("q-1")] * 2


def test_a_request_to_record_does_not_count_as_reading() -> None:
    held = Held()
    for _ in range(2):
        held.board.begin("q-1", request(), is_known=False, is_recording=True)
        held.clock.now_s += WANTED_S
    assert held.sent == [CaptureRequested("q-1", request(), False, True)]
    held.begin()
    assert held.sent[1:] == [CaptureWanted("q-1")]


def test_a_failed_capture_is_requested_again_after_a_while() -> None:
    held = Held()
    held.begin()
    failed = CaptureState(FAILED, 0, "no device")
    held.board.on_state("q-1", request_digest(request()), failed)
    assert held.begin() == failed
    held.clock.now_s += RETRY_S
    assert [held.begin(), held.begin()] == [failed, failed]
    again = [event for event in held.sent if isinstance(event, CaptureRequested)]
    assert len(again) == 2


def test_a_dismissed_capture_is_forgotten() -> None:
    held = Held()
    held.begin()
    held.board.dismiss("q-1")
    held.board.dismiss("q-1")
    assert held.sent[-1] == CaptureDismissed("q-1")
    assert sum(isinstance(event, CaptureDismissed) for event in held.sent) == 1
    held.begin()
    assert sum(isinstance(event, CaptureRequested) for event in held.sent) == 2


def test_a_name_stands_for_one_request() -> None:
    held = Held()
    held.begin()
    with pytest.raises(StreamError, match="requested with other queries"):
        held.begin(asked=request(parameters={"p": "1"}))


def test_captures_are_limited_and_those_that_ended_do_not_count() -> None:
    held = Held()
    for number in range(MAX_CAPTURES):
        held.begin(f"q-{number}")
    with pytest.raises(StreamError, match=f"runs {MAX_CAPTURES} captures already"):
        held.begin("one-more")
    held.board.on_state("q-0", request_digest(request()), CaptureState(ENDED))
    assert held.begin("one-more").state == STARTING


@pytest.mark.parametrize(
    ("name", "changes", "message"),
    [
        ("../x", {}, "invalid name of a capture: '../x'"),
        (7, {}, "invalid name of a capture: 7"),
        ("q", {"gscope": "0.0.1"}, "comes from gscope '0.0.1', and this agent is gscope"),
        ("q", {"more": 1}, "invalid request: unknown field 'more'"),
        ("q", {"texts": "x"}, "invalid request: invalid field 'texts'"),
        ("q", {"host": "c"}, "'c' is not the name of a host"),
        ("q", {"host": "a/b", "hosts": ["a/b"]}, "'a/b' is not the name of a host"),
        ("q", {"heartbeat_interval_ns": 1}, "a heartbeat interval of 1 ns"),
        ("q", {"interfaces": ["b.down"]}, "no query reads an interface of a"),
        ("q", {"texts": [{"text": "", "source": ""}] * 1001}, "1001 texts, expected at most 1000"),
    ],
)
def test_an_invalid_request_is_refused(name: Any, changes: dict[str, Any], message: str) -> None:
    held = Held()
    with pytest.raises(StreamError, match=re.escape(message)):
        held.begin(name, request(**changes))
    assert held.sent == []


@pytest.mark.parametrize("asked", [[], "x", 7, {}, {"gscope": None}])
def test_what_is_no_request_is_refused(asked: object) -> None:
    held = Held()
    with pytest.raises(StreamError, match=r"invalid request|comes from gscope"):
        held.begin("q", asked)
    assert held.sent == []


def test_an_interface_that_is_not_allowed_is_refused() -> None:
    sent: list[ProcessEvent] = []
    board = CaptureBoard(("other", "third"), sent.append)
    with pytest.raises(StreamError, match="'up' is not allowed here; allowed: other, third"):
        board.begin("q", request(), is_known=False)
    assert sent == []
