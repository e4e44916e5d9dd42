"""Tokens, keys and certificates: read once, from files that only their owner can read or change."""

from __future__ import annotations

import hmac
import os
import ssl
from pathlib import Path

from gscope.capture.log.remote.address import LogAddress, TcpAddress
from gscope.errors import UsageError
from gscope.queries.os_errors import os_reason
from gscope.queries.ownership import fault_of_script, fault_of_secret

MAX_FILE_BYTES = 1 << 20
MIN_TOKEN_LETTERS = 16
MAX_TOKEN_LETTERS = 512

_PROTOCOLS = ["h2"]
"""Names of gRPC's protocol (HTTP/2) in the handshake of TLS."""


class Tokens:
    """The tokens that a server accepts; several while one replaces another."""

    def __init__(self, tokens: tuple[str, ...]) -> None:
        self._tokens = tuple(token.encode() for token in tokens)

    def accept(self, token: str) -> bool:
        """Return whether ``token`` is one of them, in a time that depends on no token."""
        given = token.encode("utf-8", "surrogateescape")
        matches = [hmac.compare_digest(given, token) for token in self._tokens]
        return any(matches)


def read_tokens(path: Path) -> tuple[str, ...]:
    """Return the tokens in the file at ``path``, one a line; a client presents the first.

    Raises:
        UsageError: the file cannot be read, others can read it, or it holds no valid token.
    """
    text = read_secret(path, "token")
    tokens = tuple(line.strip() for line in text.decode("latin-1").splitlines() if line.strip())
    for token in tokens:
        is_plain = token.isascii() and token.isprintable() and " " not in token
        if not is_plain or not MIN_TOKEN_LETTERS <= len(token) <= MAX_TOKEN_LETTERS:
            message = (
                f"invalid token in {path}: expected {MIN_TOKEN_LETTERS} to {MAX_TOKEN_LETTERS} "
                "letters, digits and signs without spaces on a line; `openssl rand -hex 32` makes "
                "one"
            )
            raise UsageError(message)
    if not tokens:
        message = f"the token file {path} is empty; `openssl rand -hex 32` makes a token"
        raise UsageError(message)
    return tokens


def server_context(certificate: Path, key: Path) -> ssl.SSLContext:
    """Return the TLS settings of a server with the certificate chain and key in these files.

    Raises:
        UsageError: a file cannot be read or is invalid, others can read the key, or the two do not
            belong together.
    """
    _read(certificate, "certificate")
    read_secret(key, "key")
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    context.set_alpn_protocols(_PROTOCOLS)
    try:
        # Without a password, OpenSSL would ask for one on the terminal.
        context.load_cert_chain(certificate, key, password="")
    except (OSError, ValueError) as error:
        reason = getattr(error, "reason", None) or os_reason(error)
        message = (
            f"cannot use the certificate {certificate} with the key {key}: {reason}; expected a "
            "certificate chain and its key without a password, both in PEM"
        )
        raise UsageError(message) from error
    return context


def trusted_certificates(path: Path) -> bytes:
    """Return the certificates, in PEM, that a client trusts.

    Raises:
        UsageError: the file cannot be read, others can change it, or it holds no certificate.
    """
    text = _read(path, "certificates")
    try:
        ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT).load_verify_locations(cadata=text.decode("ascii"))
    except (ssl.SSLError, UnicodeDecodeError) as error:
        message = f"{path} holds no certificate: expected certificates in PEM"
        raise UsageError(message) from error
    return text


def read_secret(path: Path, what: str) -> bytes:
    """Return what a file holds that only its owner may read; ``what`` names it in messages.

    Raises:
        UsageError: the file cannot be read, others can read it, or it is too large.
    """
    return _read(path, what, is_secret=True)


def _read(path: Path, what: str, *, is_secret: bool = False) -> bytes:
    try:
        # A pipe would wait for its writer.
        descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK)
        with os.fdopen(descriptor, "rb") as file:
            status = os.fstat(file.fileno())
            fault = fault_of_secret(status) if is_secret else fault_of_script(status)
            text = file.read(MAX_FILE_BYTES + 1)
    except (OSError, ValueError) as error:
        message = f"cannot read the {what} {path}: {os_reason(error)}"
        raise UsageError(message) from error
    if fault is not None:
        remedy = f"run `chmod 600 {path}`" if is_secret else f"run `chmod go-w {path}`"
        message = f"the {what} {path} is not used: {fault}; {remedy}"
        raise UsageError(message)
    if len(text) > MAX_FILE_BYTES:
        message = f"the {what} {path} is too large: expected at most {MAX_FILE_BYTES} bytes"
        raise UsageError(message)
    return text


def log_address(place: str, token: str, certificates: str) -> LogAddress:
    """Return how to connect to a server; reads the token and the certificates.

    Args:
        place: ``HOST:PORT``, or the path of a unix socket.
        token: path of the file with the token; "" for none.
        certificates: path of the file with the certificates to trust; "": TLS is not used.

    Raises:
        UsageError: one of them is invalid, or would be sent unprotected.
    """
    parsed = Path(place) if place.startswith("/") else TcpAddress.parse(place)
    trusted = trusted_certificates(Path(certificates)) if certificates else None
    if isinstance(parsed, TcpAddress):
        parsed.ensure_readable(has_tls=trusted is not None)
    return LogAddress(parsed, read_tokens(Path(token))[0] if token else "", trusted)
