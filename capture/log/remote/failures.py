"""Why another host does not answer, or must not be read, from what gRPC and OpenSSL report."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from gscope.capture.log.remote.address import TcpAddress
from gscope.records import dataclass

if TYPE_CHECKING:
    from gscope.capture.log.remote.address import LogAddress

_UNTRUSTED = re.compile(r"certificate verify failed(?:: (?P<why>[^:]+))?")
_OTHER_NAME = re.compile(r"is not in peer certificate")
_NO_TLS = re.compile(r"wrong version number|packet length too long|http request")
_SILENT = re.compile(r"Deadline Exceeded|[Tt]imed out")
_UNKNOWN_HOST = re.compile(r"errors resolving|address lookup failed|DNS resolution failed")
_CUT = re.compile(r"Socket closed|Connection reset|recvmsg|Stream removed")
_PREFIX = re.compile(
    r"^(?:Flight returned [a-z ]+ error, with message: )?(?:failed to connect to all addresses; )?"
    r"(?:last error: )?(?:[A-Z_]+: )?(?:(?:ipv[46]|unix):\S+: )?"
    r"(?:Failed to connect to remote host: )?"
)


@dataclass(frozen=True, slots=True)
class Failure:
    """Why a connection failed.

    Attributes:
        sentence: the reason, with the address of the server and what helps.
        is_refused: whether another attempt would fail in the same way.
    """

    sentence: str
    is_refused: bool = False


def failure_of(reported: str, address: LogAddress) -> Failure:
    """Return why a connection to ``address`` failed.

    Args:
        reported: what Flight reports, in one line.
        address: the server.
    """
    if found := _UNTRUSTED.search(reported):
        why = (found["why"] or "it is not in --tls-ca").strip()
        remedy = (
            "renew it, or set the clock"
            if "expired" in why or "not yet valid" in why
            else (
                "give --tls-ca a file with it, or with the certificate of the authority that "
                "signed it"
            )
        )
        sentence = f"the certificate of {address} is not trusted ({why}); {remedy}"
        return Failure(sentence, is_refused=True)
    if _OTHER_NAME.search(reported):
        host = address.place.host if isinstance(address.place, TcpAddress) else address
        return Failure(
            f"the certificate of {address} is not one of {host}; connect by a name that is in the "
            "certificate, or add this one to it (subjectAltName)",
            is_refused=True,
        )
    if _NO_TLS.search(reported) and address.certificates is not None:
        return Failure(
            f"{address} does not use TLS; start it with --tls-certificate and --tls-key, or leave "
            "out --tls-ca on loopback",
            is_refused=True,
        )
    return Failure(f"{address} does not answer: {_silence(reported, address)}")


def _silence(reported: str, address: LogAddress) -> str:
    if _SILENT.search(reported):
        return "timed out"
    if _UNKNOWN_HOST.search(reported):
        return "unknown host"
    if _CUT.search(reported):
        is_plain = address.certificates is None and isinstance(address.place, TcpAddress)
        hint = "; if it uses TLS, name its certificate with --tls-ca" if is_plain else ""
        return f"it closed the connection{hint}"
    rest = _PREFIX.sub("", reported, count=1)
    return f"{rest[:1].lower()}{rest[1:]}"
