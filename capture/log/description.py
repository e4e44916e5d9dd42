"""What a log holds, as its server describes it to readers on other hosts.

Both sides compile the text of the queries themselves. A reader compares the digest of each LFTA
with its own before it reads a row, so that it never adds up columns that mean something else.
"""

from __future__ import annotations

import json
from itertools import zip_longest
from typing import TYPE_CHECKING, Any

from gscope import __version__
from gscope.errors import StreamError
from gscope.queries.plan.lfta_digest import lfta_digest, lfta_meaning
from gscope.queries.streams.event_codec import from_plain, to_plain
from gscope.records import dataclass

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from gscope.capture.log.retained_stream import StreamPosition
    from gscope.queries.catalog.user_functions.files import UserFile
    from gscope.queries.plan.program import Lfta, Program

PROTOCOL = 4
"""The version of tickets, actions and messages; to be changed with any of them."""

SENSOR, RELAY = "sensor", "relay"
"""The roles of a process that serves a log."""


@dataclass(frozen=True, slots=True)
class LftaDescription:
    """One LFTA whose streams are in the log.

    Attributes:
        name: its name, which begins the names of its streams.
        digest: see ``lfta_digest``.
        meaning: what it computes, in lines to read.
        streams: the names of its streams.
        is_answer: whether these have rows of answers.
    """

    name: str
    digest: str
    meaning: tuple[str, ...]
    streams: tuple[str, ...]
    is_answer: bool = False


@dataclass(frozen=True, slots=True)
class StreamDescription:
    """One stream of the log.

    Attributes:
        name: its name.
        base: sequence number of the first message that is retained.
        end: sequence number of the next message.
        acknowledged: what the consumer that asks has acknowledged; 0 for nothing.
        has_ended: whether the stream has ended.
        begun: sequence number of the first message of the process that captures; packets that
            passed between its predecessor and it are in no message. 0 for the first process.
    """

    name: str
    base: int
    end: int
    acknowledged: int
    has_ended: bool
    begun: int = 0


@dataclass(frozen=True, slots=True)
class LogDescription:
    """What a server serves.

    Attributes:
        protocol: ``PROTOCOL`` of the server.
        gscope: the version of gscope.
        role: ``SENSOR`` or ``RELAY``.
        log: the identity of the log; see ``identity.py``.
        lftas: the LFTAs of its program.
        streams: the streams of the log.
    """

    protocol: int
    gscope: str
    role: str
    log: str
    lftas: tuple[LftaDescription, ...]
    streams: tuple[StreamDescription, ...] = ()

    @classmethod
    def from_json(cls, text: bytes) -> LogDescription:
        """Return the description that ``to_json`` wrote.

        Raises:
            StreamError: it is invalid, or of another version of the protocol.
        """
        try:
            value = json.loads(text)
            protocol = value["protocol"]
        except (ValueError, RecursionError, KeyError, TypeError) as error:
            message = "invalid description of a log: expected a JSON object with a protocol"
            raise StreamError(message) from error
        if protocol != PROTOCOL:
            message = (
                f"unsupported protocol {protocol!r:.20} of gscope {value.get('gscope')!r:.40}: "
                f"expected {PROTOCOL}, that of gscope {__version__}"
            )
            raise StreamError(message)
        try:
            return from_plain(cls, value)  # type: ignore[no-any-return]
        except TypeError as error:
            message = f"invalid description of a log: {error}"
            raise StreamError(message) from error

    def to_plain(self) -> dict[str, Any]:
        """Return it as an object of JSON."""
        return to_plain(self)  # type: ignore[no-any-return]

    def lfta(self, name: str) -> LftaDescription | None:
        """Return the LFTA called ``name``; None if the log has none."""
        return next((lfta for lfta in self.lftas if lfta.name == name), None)


def describe_program(program: Program) -> tuple[LftaDescription, ...]:
    """Return the descriptions of the LFTAs of ``program`` that other hosts may read."""
    return tuple(
        LftaDescription(
            lfta.name,
            lfta_digest(lfta, program.user_files),
            lfta_meaning(lfta),
            lfta.streams,
            lfta.answers is not None,
        )
        for lfta in (program.lftas if program.served is None else program.served)
    )


def describe_streams(
    positions: Mapping[str, StreamPosition],
    acknowledged: Mapping[str, int],
    begun: Mapping[str, int],
) -> tuple[StreamDescription, ...]:
    """Return the descriptions of streams.

    Args:
        positions: what the log retains of each.
        acknowledged: what the consumer that asks has acknowledged.
        begun: the first message of the process that captures; {} for one that does not.
    """
    return tuple(
        StreamDescription(
            name,
            each.base,
            each.end,
            acknowledged.get(name, 0),
            each.has_ended,
            begun.get(name, 0),
        )
        for name, each in positions.items()
    )


def ensure_same_lftas(program: Program, served: LogDescription, server: str) -> None:
    """Refuse a log whose LFTAs compute something else than those of ``program``.

    Args:
        program: what the reader compiled.
        served: what the server compiled.
        server: the address of the server, for the message.

    Raises:
        StreamError: the server lacks an LFTA, or compiled it differently.
    """
    for lfta in program.lftas:
        found = served.lfta(lfta.name)
        if found is None:
            names = ", ".join(repr(each.name) for each in served.lftas) or "none"
            message = (
                f"{server} does not run {lfta.name}; available: {_cut(names)}; start both with the "
                "same queries"
            )
            raise StreamError(message)
        if (difference := lfta_difference(lfta, program.user_files, found)) is not None:
            message = (
                f"{server} runs another {lfta.name}: {difference}; start both with "
                "the same queries, parameters and user code"
            )
            raise StreamError(message)


def lfta_difference(
    lfta: Lfta, user_files: Sequence[UserFile], found: LftaDescription
) -> str | None:
    """Return how what another process compiled differs from ``lfta``; None if it does not."""
    if found.digest == lfta_digest(lfta, user_files):
        return None
    for ours, theirs in zip_longest(lfta_meaning(lfta), found.meaning, fillvalue="nothing"):
        if ours != theirs:
            return f"there {_cut(theirs)!r}, here {_cut(ours)!r}"
    return "its text is the same, but not its constants, types or user code"


def _cut(line: str) -> str:
    return line if len(line) <= 200 else f"{line[:200]}…"


def describe_log(
    role: str,
    log: str,
    lftas: Iterable[LftaDescription],
    streams: Iterable[StreamDescription],
) -> LogDescription:
    """Return the description of a log that this version of gscope serves."""
    return LogDescription(PROTOCOL, __version__, role, log, tuple(lftas), tuple(streams))
