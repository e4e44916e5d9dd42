"""The control server of an agent behind its listener, and peers that do not behave."""

from __future__ import annotations

import json
import socket
import time
from contextlib import suppress
from typing import TYPE_CHECKING

import pyarrow.flight as flight
import pytest
from tests.capture.log.agent.requests import request
from tests.support.certificates import TOKEN, token_file

from gscope import __version__
from gscope.capture.log.agent.board import CaptureBoard, request_digest
from gscope.capture.log.agent.client import AgentClient
from gscope.capture.log.agent.messages import (
    AGENT_PROTOCOL,
    LIVE,
    SERVING,
    CaptureState,
    Offer,
    OfferedInterface,
)
from gscope.capture.log.agent.server import ControlServer
from gscope.capture.log.remote import forwarder
from gscope.capture.log.remote.address import LogAddress, TcpAddress
from gscope.capture.log.remote.credentials import Tokens, read_tokens
from gscope.capture.log.remote.forwarder import MAX_OF_HOST, Forwarder
from gscope.capture.log.remote.listener import Listener, open_socket
from gscope.capture.log.remote.readers import Readers
from gscope.errors import DisconnectedError, StreamError
from gscope.queries.streams.process_events import CaptureRequested, ProcessEvent

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

OFFER = Offer(AGENT_PROTOCOL, __version__, (OfferedInterface("up", LIVE),))


class Served:
    """A control server on loopback, and the events that it sent to the agent."""

    def __init__(self, folder: Path) -> None:
        self.sent: list[ProcessEvent] = []
        self.board = CaptureBoard(("up",), self.sent.append)
        self._socket = open_socket(TcpAddress("127.0.0.1", 0))
        self._socket.setblocking(False)
        self.place = TcpAddress("127.0.0.1", self._socket.getsockname()[1])
        tokens = Tokens(read_tokens(token_file(folder)))
        listener = Listener(self._socket, None, tokens, str(self.place))
        self.readers = Readers(str(self.place))
        path = folder / "control.sock"
        self._server = ControlServer(path, OFFER, self.board, tokens, self.readers)
        self._forwarder = Forwarder(listener, path, self.readers)

    def client(self, token: str = TOKEN) -> AgentClient:
        return AgentClient(LogAddress(self.place, token))

    def refused(self) -> dict[str, int]:
        found: dict[str, int] = self.readers.status({})["refused_total"]
        return found

    def close(self) -> None:
        self._server.stop()
        self._forwarder.stop()
        self._socket.close()


@pytest.fixture
def served(tmp_path: Path) -> Iterator[Served]:
    made = Served(tmp_path)
    yield made
    made.close()


def test_an_agent_says_what_it_offers(served: Served) -> None:
    with served.client() as client:
        assert client.offer() == OFFER


def test_a_capture_is_requested_and_its_state_reported(served: Served) -> None:
    with served.client() as client:
        assert client.begin("q-1", request(), is_known=True).state == "starting"
        assert served.sent[0] == CaptureRequested("q-1", request(), True)
        serving = CaptureState(SERVING, 9481)
        served.board.on_state("q-1", request_digest(request()), serving)
        assert client.begin("q-1", request(), is_known=True) == serving


def test_the_clock_is_read_with_its_error(served: Served) -> None:
    ahead_ns = 3_600_000_000_000
    with served.client() as client:
        reading = client.read_clock("q-1", lambda: time.time_ns() - ahead_ns)
    assert abs(reading.offset_ns - ahead_ns) <= reading.error_ns
    assert reading.error_ns < 5_000_000_000


@pytest.mark.parametrize("token", ["", "another-token-of-16-letters", "x" * 16])
def test_no_request_passes_without_the_token(served: Served, token: str) -> None:
    with served.client(token) as client, pytest.raises(StreamError, match="token"):
        client.begin("q-1", request(), is_known=False)
    assert served.sent == []


@pytest.mark.parametrize(
    ("action", "body", "message"),
    [
        ("begin", b"{", "the request is not JSON"),
        ("begin", b"[" * 100_000, "the request is not JSON"),
        ("begin", b"[1]", "the request is not a JSON object"),
        ("begin", b"{}", "invalid name of a capture: None"),
        ("begin", json.dumps({"capture": "q", "request": 7}).encode(), "expected an object"),
        ("clock", b'{"capture": [1]}', "invalid name of a capture"),
        ("shell", b"{}", "unknown action 'shell'"),
        ("acknowledge", b"{}", "unknown action 'acknowledge'"),
    ],
)
def test_a_wrong_request_is_an_error_for_the_client_alone(
    served: Served, action: str, body: bytes, message: str
) -> None:
    with served.client() as client:
        with pytest.raises(flight.FlightServerError, match=message):
            list(client.client.do_action(flight.Action(action, body), client.options(10)))
        assert client.offer() == OFFER
    assert served.sent == []


def test_a_huge_request_is_cut_off(served: Served) -> None:
    with served.client() as client, pytest.raises(StreamError):
        client.begin("q-1", {"gscope": "x" * (4 << 20)}, is_known=False)
    assert served.refused() == {"oversized_requests": 1}
    with served.client() as client:
        assert client.offer() == OFFER


def test_silent_and_surplus_connections_are_closed(
    served: Served, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(forwarder, "TOKEN_S", 0.5)
    place = (served.place.host, served.place.port)
    opened = [socket.create_connection(place) for _ in range(MAX_OF_HOST + 3)]
    for each in opened:
        each.settimeout(20)
        # The server may send its settings before it closes the connection.
        with each, suppress(ConnectionResetError):
            while each.recv(4096):
                pass
    with served.client() as client:
        assert client.offer() == OFFER
    assert served.refused()["too_many_connections"] == 3


def test_what_is_no_agent_is_an_error() -> None:
    with socket.create_server(("127.0.0.1", 0)) as free:
        place = TcpAddress("127.0.0.1", free.getsockname()[1])
    with (
        AgentClient(LogAddress(place, TOKEN)) as client,
        pytest.raises(DisconnectedError, match="does not answer"),
    ):
        client.offer()
