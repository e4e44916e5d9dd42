"""What the thread of an input passes to the relay's thread."""

from __future__ import annotations

from dataclasses import field
from typing import TYPE_CHECKING

from gscope.records import dataclass

if TYPE_CHECKING:
    from collections.abc import Mapping
    from queue import SimpleQueue

    from gscope.capture.relay.held_rows import HeldRows
    from gscope.queries.streams.messages import Message


@dataclass(frozen=True, slots=True)
class Starting:
    """An agent answers, and is about to capture.

    Attributes:
        input: its name.
    """

    input: str


@dataclass(frozen=True, slots=True)
class Connected:
    """An input answers, and runs the same LFTAs.

    Attributes:
        input: its name.
        log: identity of its log.
        lftas: the streams of each LFTA, with the number of the first message to read of each.
        reply: takes the number of the next message to receive, by stream.
        begun: the first message of the process that captures, by stream; see
            ``StreamDescription``.
    """

    input: str
    log: str
    lftas: Mapping[str, Mapping[str, int]]
    reply: SimpleQueue[dict[str, int]]
    begun: Mapping[str, int] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Received:
    """Messages of an input, which arrived together.

    Attributes:
        input: its name.
        log: identity of its log.
        messages: the messages, each with its LFTA and, of a batch, its rows; None for a batch that
            the input no longer had.
    """

    input: str
    log: str
    messages: tuple[tuple[str, Message, HeldRows | None], ...]


@dataclass(frozen=True, slots=True)
class Disconnected:
    """An input does not answer, or refused.

    Attributes:
        input: its name.
        reason: why, a sentence.
        is_refused: whether one of the two sides refused the other.
    """

    input: str
    reason: str
    is_refused: bool


@dataclass(frozen=True, slots=True)
class Crashed:
    """The thread of an input has failed.

    Attributes:
        input: its name.
        error: the exception that ended it.
    """

    input: str
    error: Exception


InputEvent = Starting | Connected | Received | Disconnected | Crashed
