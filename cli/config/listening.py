"""Where a run serves its log to other hosts: settings, checked and opened before it starts."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING

from gscope.capture.log.remote.address import TcpAddress
from gscope.capture.settings import ListenerSettings
from gscope.errors import UsageError
from gscope.records import dataclass

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from gscope.cli.config.effective import Config


@dataclass(frozen=True, slots=True)
class ListenRequest:
    """Where a log is served, and what protects it.

    Attributes:
        address: the address and port; port 0 for a free one.
        token: the file with the tokens that readers present.
        certificate: the file with the certificate chain; None without TLS.
        key: the file with its key; None without TLS.
    """

    address: TcpAddress
    token: Path
    certificate: Path | None = None
    key: Path | None = None


def listen_request(config: Config) -> ListenRequest:
    """Return where the settings say that the log is served.

    Raises:
        UsageError: the address, a token, or one of certificate and key is missing, or a public
            address would be served without TLS.
    """
    if config.listen is None:
        message = "no address to listen on; name one with --listen HOST:PORT"
        raise UsageError(message)
    if config.token_file is None:
        message = (
            f"cannot listen on {config.listen} without a token, which readers present; name its "
            "file with --token-file (`openssl rand -hex 32 > token; chmod 600 token` makes one)"
        )
        raise UsageError(message)
    if (config.tls_certificate is None) != (config.tls_key is None):
        missing = "--tls-key" if config.tls_key is None else "--tls-certificate"
        message = f"TLS needs a certificate and its key; {missing} is missing"
        raise UsageError(message)
    return ListenRequest(config.listen, config.token_file, config.tls_certificate, config.tls_key)


@contextmanager
def listening(request: ListenRequest) -> Iterator[ListenerSettings]:
    """Listen within the context; the daemon inherits the socket, so that its port stays the same.

    Raises:
        UsageError: the address cannot be listened on, or a file cannot be used.
    """
    from gscope.capture.log.remote.credentials import read_tokens, server_context
    from gscope.capture.log.remote.listener import ensure_protected, open_socket

    has_tls = request.certificate is not None and request.key is not None
    ensure_protected(request.address, has_tls=has_tls)
    read_tokens(request.token)
    if request.certificate is not None and request.key is not None:
        server_context(request.certificate, request.key)
    with open_socket(request.address) as opened:
        address = TcpAddress(request.address.host, opened.getsockname()[1])
        yield ListenerSettings(
            opened.fileno(),
            str(address),
            str(request.token.absolute()),
            "" if request.certificate is None else str(request.certificate.absolute()),
            "" if request.key is None else str(request.key.absolute()),
        )
