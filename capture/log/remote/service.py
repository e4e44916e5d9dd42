"""The service of a log for other hosts, as one thing to start, to look at and to stop."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from gscope.capture.log.remote.forwarder import Forwarder
from gscope.capture.log.remote.readers import Readers
from gscope.capture.log.remote.server import RemoteLogServer

if TYPE_CHECKING:
    from pathlib import Path

    from gscope.capture.heartbeats.demands import Demands
    from gscope.capture.log.description import LftaDescription
    from gscope.capture.log.log import StreamLog
    from gscope.capture.log.remote.listener import Listener


class RemoteService:
    """Serves ``log`` at ``listener`` from its construction until ``stop``.

    Args:
        log: the log.
        listener: where readers connect; closed by ``stop``.
        path: where the unix socket is made that connections are forwarded to.
        demands: takes demands for heartbeats; None if they are not sent on demand.
        lftas: the LFTAs whose streams are in the log.
        role: ``SENSOR`` or ``RELAY``.

    Raises:
        StreamError: the unix socket cannot be made.
    """

    def __init__(
        self,
        log: StreamLog,
        listener: Listener,
        path: Path,
        demands: Demands | None,
        *,
        lftas: tuple[LftaDescription, ...],
        role: str,
    ) -> None:
        self._log = log
        self._listener = listener
        self._readers = Readers(listener.address)
        self._server = RemoteLogServer(
            log,
            path,
            demands,
            lftas=lftas,
            role=role,
            tokens=listener.tokens,
            readers=self._readers,
        )
        self._forwarder = Forwarder(listener, path, self._readers)

    def status(self) -> dict[str, Any]:
        """Return who reads, and how far each is behind."""
        return {
            **self._readers.status(self._log.unacknowledged()),
            "is_encrypted": self._listener.tls is not None,
        }

    def stop(self) -> None:
        """End; the log must have been closed."""
        self._server.stop()
        self._forwarder.stop()
        self._listener.socket.close()
