"""The master of a Spark session: where tasks run, and who starts their executors."""

from __future__ import annotations

import re
import socket
from contextlib import suppress
from enum import StrEnum
from typing import Self

from gscope.errors import EngineError, UsageError
from gscope.queries.os_errors import os_reason
from gscope.records import dataclass

CONNECT_S = 5.0
"""Seconds after which a host that does not answer a connection counts as unreachable."""

_LOCAL = re.compile(r"local(\[(\*|[1-9][0-9]*)\])?")
_LOCAL_CLUSTER = re.compile(
    r"local-cluster\[\s*[1-9][0-9]*\s*,\s*[1-9][0-9]*\s*,\s*[1-9][0-9]*\s*\]"
)
_MOST_PORT = 65_535


class MasterKind(StrEnum):
    """The kinds of masters."""

    LOCAL = "local"
    LOCAL_CLUSTER = "local-cluster"
    STANDALONE = "standalone"
    YARN = "yarn"
    KUBERNETES = "kubernetes"


@dataclass(frozen=True, slots=True)
class Master:
    """A master, as Spark names it.

    Attributes:
        kind: the kind.
        text: the name that Spark takes.
        addresses: host and port of each process to connect to; () where Spark finds them itself.
    """

    kind: MasterKind
    text: str
    addresses: tuple[tuple[str, int], ...] = ()

    @classmethod
    def parse(cls, text: str) -> Self:
        """Return the master that ``text`` names.

        Raises:
            UsageError: the text names none; the message says what is expected.
        """
        if _LOCAL.fullmatch(text):
            return cls(MasterKind.LOCAL, text)
        if _LOCAL_CLUSTER.fullmatch(text):
            return cls(MasterKind.LOCAL_CLUSTER, text)
        if text == "yarn":
            return cls(MasterKind.YARN, text)
        if text.startswith("spark://"):
            hosts = text.removeprefix("spark://").split(",")
            return cls(MasterKind.STANDALONE, text, tuple(_address(host, text) for host in hosts))
        if text.startswith("k8s://"):
            server = text.removeprefix("k8s://")
            scheme, _, host = server.rpartition("://")
            if scheme in ("", "https", "http"):
                host = host if ":" in host else f"{host}:{80 if scheme == 'http' else 443}"
                return cls(MasterKind.KUBERNETES, text, (_address(host, text),))
        raise _invalid(text)

    @property
    def is_local(self) -> bool:
        """Whether tasks run in the Java of the job itself."""
        return self.kind is MasterKind.LOCAL

    @property
    def is_on_this_host(self) -> bool:
        """Whether all executors run on this host, by the name of the master."""
        if self.kind in (MasterKind.LOCAL, MasterKind.LOCAL_CLUSTER):
            return True
        loopback = ("localhost", "127.0.0.1")
        return self.kind is MasterKind.STANDALONE and all(
            host in loopback for host, _ in self.addresses
        )

    def __str__(self) -> str:
        return self.text


LOCAL = Master(MasterKind.LOCAL, "local")


def ensure_reachable(master: Master) -> None:
    """Connect to the master, if its address is known: Spark itself would try for a minute.

    Raises:
        EngineError: no process answers at any of its addresses.
    """
    reasons = []
    for host, port in master.addresses:
        try:
            with socket.create_connection((host, port), CONNECT_S):
                return
        except OSError as error:
            reasons.append(f"{host}:{port}: {os_reason(error)}")
    if reasons:
        message = (
            f"cannot reach the Spark master {master} ({'; '.join(reasons)}); check spark.master"
            " (--master), and that it runs"
        )
        raise EngineError(message)


def own_address(master: Master) -> str | None:
    """Return the address from which this host reaches the master; None if no route shows it."""
    for address in master.addresses:
        with suppress(OSError), socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
            probe.connect(address)  # sends nothing
            return str(probe.getsockname()[0])
    return None


def _address(text: str, master: str) -> tuple[str, int]:
    host, _, port = text.rpartition(":")
    is_port = port.isascii() and port.isdecimal() and 0 < int(port) <= _MOST_PORT
    if not host or not is_port or not host.isprintable() or set(host) & set(" /@"):
        raise _invalid(master)
    return host, int(port)


def _invalid(text: str) -> UsageError:
    message = f"invalid master {text!r}: expected local, spark://HOST:PORT, yarn or k8s://https://HOST:PORT"
    return UsageError(message)
