"""What an agent and the run that reads it say to each other: plain values of JSON, never code.

A request holds the text of the queries and everything else that their meaning depends on. The agent
compiles it itself, and captures only if it compiled the same LFTAs as the run did.
"""

from __future__ import annotations

import json
import re
from dataclasses import field
from typing import TYPE_CHECKING, Any

from gscope import __version__
from gscope.capture.log.description import LftaDescription  # noqa: TC001  # as in a hint
from gscope.errors import StreamError
from gscope.queries.streams.event_codec import from_plain, to_plain
from gscope.records import dataclass

if TYPE_CHECKING:
    from collections.abc import Iterable

AGENT_PROTOCOL = 3
"""The version of these messages; to be changed with any of them."""

LIVE, REPLAYED = "live", "replayed"
"""What an interface of an agent is: a device, or captures that each run replays."""

STARTING, SERVING, ENDED, FAILED = "starting", "serving", "ended", "failed"
"""The states of a capture that was requested."""

MIN_HEARTBEAT_NS, MAX_HEARTBEAT_NS = 10_000_000, 3_600_000_000_000
MOST_TEXTS, MOST_NAMES = 1_000, 10_000

CAPTURE_NAME = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.-]{0,63}")
INTERFACE_NAME = re.compile(r"[^\s@/\x00-\x1f]{1,128}")
HOST_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_-]{0,63}")


@dataclass(frozen=True, slots=True)
class OfferedInterface:
    """An interface that an agent captures for others.

    Attributes:
        name: its name, without that of the host.
        kind: ``LIVE`` or ``REPLAYED``.
        skew_ns: how far its promises stay behind the clock, see ``InterfaceSettings``.
    """

    name: str
    kind: str
    skew_ns: int = 0


@dataclass(frozen=True, slots=True)
class Offer:
    """What an agent captures for others.

    Attributes:
        protocol: ``AGENT_PROTOCOL`` of the agent.
        gscope: its version of gscope.
        interfaces: the interfaces that it allows.
    """

    protocol: int
    gscope: str
    interfaces: tuple[OfferedInterface, ...] = ()


@dataclass(frozen=True, slots=True)
class RequestedText:
    """A query text, and its name in messages."""

    text: str
    source: str


@dataclass(frozen=True, slots=True)
class CaptureRequest:
    """What a run asks an agent to capture, and all that decides what the queries mean.

    Attributes:
        gscope: the version of the run.
        host: the name by which the queries know the agent's host.
        interfaces: the names of all interfaces of all hosts, in order; ``HOST.NAME`` each.
        hosts: the names of all hosts.
        texts: the query texts.
        lftas: what the run reads, as it compiled it, for the agent to compare.
        sets: interfaces by the name of their set.
        parameters: the values of PARAM entries as text, by name.
        delivered: the results to deliver; () for the default ones.
        window_plan: how windows are computed.
        heartbeat_interval_ns: the interval between heartbeats.
        answered: the operators that the agent's host evaluates, and whose answers the run reads; ()
            to capture only.
    """

    gscope: str
    host: str
    interfaces: tuple[str, ...]
    hosts: tuple[str, ...]
    texts: tuple[RequestedText, ...]
    lftas: tuple[LftaDescription, ...]
    sets: dict[str, tuple[str, ...]] = field(default_factory=dict)
    parameters: dict[str, str] = field(default_factory=dict)
    delivered: tuple[str, ...] = ()
    window_plan: str = "paired"
    heartbeat_interval_ns: int = 1_000_000_000
    answered: tuple[str, ...] = ()

    @property
    def own_interfaces(self) -> tuple[str, ...]:
        """The names of the agent's interfaces that LFTAs read, without that of the host."""
        prefix = f"{self.host}."
        return tuple(
            name.removeprefix(prefix)
            for name in self.interfaces
            if any(stream.endswith(f"@{name}") for each in self.lftas for stream in each.streams)
            and name.startswith(prefix)
        )

    def to_json(self) -> str:
        """Return it as an object of JSON."""
        return json.dumps(to_plain(self))

    @classmethod
    def from_object(cls, value: object) -> CaptureRequest:
        """Return the request in an object of JSON.

        Raises:
            StreamError: it is invalid, or of another version of gscope.
        """
        if not isinstance(value, dict):
            message = "invalid request: expected an object of JSON"
            raise StreamError(message)
        version = value.get("gscope")
        if version != __version__:
            message = (
                f"the request comes from gscope {version!r:.40}, and this agent is gscope "
                f"{__version__}; install the same version on both hosts"
            )
            raise StreamError(message)
        try:
            request: CaptureRequest = from_plain(cls, value)
        except (TypeError, RecursionError) as error:
            message = f"invalid request: {str(error)[:200]}"
            raise StreamError(message) from error
        request.ensure_valid()
        return request

    def ensure_valid(self) -> None:
        """Refuse names, numbers and sizes that no run sends.

        Raises:
            StreamError: one is invalid.
        """
        if not HOST_NAME.fullmatch(self.host) or self.host not in self.hosts:
            message = f"invalid request: {self.host!r:.100} is not the name of a host"
            raise StreamError(message)
        for what, found, most in (
            ("texts", self.texts, MOST_TEXTS),
            ("interfaces", self.interfaces, MOST_NAMES),
            ("hosts", self.hosts, MOST_NAMES),
            ("parameters", self.parameters, MOST_NAMES),
            ("sets", self.sets, MOST_NAMES),
        ):
            if len(found) > most:
                message = f"invalid request: {len(found)} {what}, expected at most {most}"
                raise StreamError(message)
        if not MIN_HEARTBEAT_NS <= self.heartbeat_interval_ns <= MAX_HEARTBEAT_NS:
            message = (
                f"invalid request: a heartbeat interval of {self.heartbeat_interval_ns} ns, "
                f"expected {MIN_HEARTBEAT_NS} to {MAX_HEARTBEAT_NS}"
            )
            raise StreamError(message)
        if not self.own_interfaces:
            message = f"invalid request: no query reads an interface of {self.host}"
            raise StreamError(message)


@dataclass(frozen=True, slots=True)
class CaptureState:
    """How a requested capture stands.

    Attributes:
        state: one of ``STARTING``, ``SERVING``, ``ENDED`` and ``FAILED``.
        port: the port of the agent's host at which its log is served; 0 unless it is.
        reason: why it failed, a sentence.
        is_complete: whether its input has ended, and its log has all rows.
    """

    state: str
    port: int = 0
    reason: str = ""
    is_complete: bool = False


def decoded(kind: type[Any], body: bytes, server: str) -> Any:
    """Return the dataclass that an agent sent.

    Raises:
        StreamError: it sent something else, or is of another version of the protocol.
    """
    try:
        value = json.loads(body)
        protocol = value.get("protocol", AGENT_PROTOCOL)
        if protocol != AGENT_PROTOCOL:
            message = (
                f"{server} has protocol {protocol!r:.20} of gscope {value.get('gscope')!r:.40}: "
                f"expected {AGENT_PROTOCOL}, that of gscope {__version__}"
            )
            raise StreamError(message)
        return from_plain(kind, value)
    except (ValueError, TypeError, AttributeError, RecursionError) as error:
        message = f"{server} sent an invalid reply: {str(error)[:200]}"
        raise StreamError(message) from error


def ensure_names(names: Iterable[str], offered: Iterable[str]) -> None:
    """Refuse interfaces that an agent does not allow.

    Raises:
        StreamError: one is not in ``offered``.
    """
    allowed = tuple(offered)
    for name in names:
        if name not in allowed:
            message = (
                f"the interface {name!r:.100} is not allowed here; allowed: {', '.join(allowed)}"
            )
            raise StreamError(message)
