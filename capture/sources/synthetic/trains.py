"""The trains of packets that conversations are made of, as arrays over their steps.

A *train* belongs to a service and to the phase of a conversation: opening, data, closing, or a
whole short conversation. Its packets are *steps*, half a round trip apart.
"""

from __future__ import annotations

from enum import IntEnum
from typing import TYPE_CHECKING

import numpy as np

from gscope.records import dataclass

if TYPE_CHECKING:
    from numpy.typing import NDArray

FIN, SYN, PSH, ACK = 0x01, 0x02, 0x08, 0x10


class Service(IntEnum):
    """The service that a conversation uses."""

    HTTPS = 0
    HTTP = 1
    TCP = 2
    DNS = 3
    QUIC = 4
    PING = 5
    ARP = 6


class Content(IntEnum):
    """The beginning of a payload."""

    TEXT = 0
    TLS_RECORD = 1
    HTTP_REQUEST = 2
    HTTP_RESPONSE = 3
    DNS_QUERY = 4
    DNS_ANSWER = 5
    QUIC_PACKET = 6
    ECHO = 7
    ARP = 8


HTTP_REQUEST_BYTES = 78
DNS_QUERY_BYTES = 32
DNS_ANSWER_BYTES = 48
ECHO_BYTES = 32
CLIENT_HELLO_BYTES = 517
DRAWN = -1
"""Payload whose size is drawn at random."""
FULL = -2
"""Payload that fills the MTU."""


@dataclass(frozen=True, slots=True)
class _Step:
    """A packet of a train.

    Attributes:
        down: whether the server sends it.
        payload: bytes of payload; ``DRAWN`` for a random number, ``FULL`` for as many as fit.
        content: the beginning of the payload.
        delay: half round trips after the first packet of the conversation or train.
        flags: TCP flags.
    """

    down: bool
    payload: int
    content: Content
    delay: int = 0
    flags: int = 0


def _tcp_trains(request: _Step, response: _Step, data: Content) -> tuple[tuple[_Step, ...], ...]:
    opening = (
        _Step(False, 0, data, 0, SYN),
        _Step(True, 0, data, 1, SYN | ACK),
        _Step(False, 0, data, 2, ACK),
        request,
        response,
    )
    closing = (
        _Step(False, 0, data, 4, FIN | ACK),
        _Step(True, 0, data, 5, FIN | ACK),
        _Step(False, 0, data, 6, ACK),
    )
    return (opening, (_Step(True, DRAWN, data, 0, ACK),), closing, opening + closing)


def _message(down: bool, payload: int, content: Content) -> _Step:
    return _Step(down, payload, content, 3 if down else 2, PSH | ACK)


def _echoed(first: _Step, second: _Step) -> tuple[tuple[_Step, ...], ...]:
    return ((first, second),) * 4


_OPENING, _DATA, _CLOSING, _WHOLE = range(4)
OPENING_DELAY = 3

# Trains by service and phase (opening, data, closing, a whole short conversation).
_TRAINS: dict[Service, tuple[tuple[_Step, ...], ...]] = {
    Service.HTTPS: _tcp_trains(
        _message(False, CLIENT_HELLO_BYTES, Content.TLS_RECORD),
        _message(True, FULL, Content.TLS_RECORD),
        Content.TLS_RECORD,
    ),
    Service.HTTP: _tcp_trains(
        _message(False, HTTP_REQUEST_BYTES, Content.HTTP_REQUEST),
        _message(True, FULL, Content.HTTP_RESPONSE),
        Content.TEXT,
    ),
    Service.TCP: _tcp_trains(
        _message(False, 120, Content.TEXT), _message(True, 400, Content.TEXT), Content.TEXT
    ),
    Service.DNS: _echoed(
        _Step(False, DNS_QUERY_BYTES, Content.DNS_QUERY),
        _Step(True, DNS_ANSWER_BYTES, Content.DNS_ANSWER, 1),
    ),
    Service.QUIC: (
        (
            _Step(False, 1_200, Content.QUIC_PACKET),
            _Step(True, 1_200, Content.QUIC_PACKET, 1),
        ),
        (_Step(True, DRAWN, Content.QUIC_PACKET),),
        (_Step(True, DRAWN, Content.QUIC_PACKET),),
        (
            _Step(False, 1_200, Content.QUIC_PACKET),
            _Step(True, 1_200, Content.QUIC_PACKET, 1),
            _Step(False, 80, Content.QUIC_PACKET, 2),
        ),
    ),
    Service.PING: _echoed(
        _Step(False, ECHO_BYTES, Content.ECHO), _Step(True, ECHO_BYTES, Content.ECHO, 1)
    ),
    Service.ARP: _echoed(_Step(False, 0, Content.ARP), _Step(True, 0, Content.ARP, 1)),
}
_TRAIN_STEPS = [_TRAINS[service][phase] for service in Service for phase in range(4)]
TRAIN_LENGTH = np.array([len(train) for train in _TRAIN_STEPS])
_TRAIN_FIRST = np.cumsum(TRAIN_LENGTH) - TRAIN_LENGTH
_STEPS = [step for train in _TRAIN_STEPS for step in train]
# The steps of all trains, one train after the other: an array for each attribute.
STEP_DOWN = np.array([step.down for step in _STEPS])
STEP_PAYLOAD = np.array([step.payload for step in _STEPS])
STEP_CONTENT = np.array([step.content for step in _STEPS], np.uint8)
STEP_DELAY = np.array([step.delay for step in _STEPS])
STEP_FLAGS = np.array([step.flags for step in _STEPS], np.uint8)
# A closing train stands alone, or at the end of a whole conversation, where the delays before it
# count.
TRAIN_DELAY = STEP_DELAY[_TRAIN_FIRST]


def train_phase(place: NDArray[np.int64], exchanges: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return the phase of a conversation after ``place`` of its ``exchanges``."""
    is_last = place == exchanges - 1
    return np.where(
        place == 0,
        np.where(is_last, _WHOLE, _OPENING),
        np.where(is_last, _CLOSING, _DATA),
    )


def steps_of(train: NDArray[np.int64]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return the step of each packet of each train, and the train that it belongs to."""
    length = TRAIN_LENGTH[train]
    owner = np.repeat(np.arange(train.size), length)
    start = np.cumsum(length) - length
    step = np.arange(owner.size) - start[owner] + _TRAIN_FIRST[train][owner]
    return step, owner
