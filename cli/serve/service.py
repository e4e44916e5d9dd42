"""Serves the answers in a folder until a signal ends it."""

from __future__ import annotations

import signal
import tempfile
import threading
from pathlib import Path
from typing import TYPE_CHECKING

from gscope.capture.log.remote.forwarder import Forwarder
from gscope.capture.log.remote.listener import take_listener
from gscope.capture.log.remote.readers import Readers
from gscope.cli.serve.answer_server import AnswerServer

if TYPE_CHECKING:
    from collections.abc import Callable

    from gscope.capture.log.remote.listener import Listener
    from gscope.capture.settings import ListenerSettings

_SIGNALS = (signal.SIGINT, signal.SIGTERM)


def serve(folder: Path, settings: ListenerSettings, notify: Callable[[str], None]) -> None:
    """Serve the answers in ``folder`` until SIGINT or SIGTERM.

    Args:
        folder: the folder that runs write answers to.
        settings: the socket, which the caller closes, and what protects it.
        notify: takes sentences for the user.

    Raises:
        GscopeError: the server cannot be started.
    """
    ended = threading.Event()
    before = {each: signal.signal(each, lambda *_: ended.set()) for each in _SIGNALS}
    try:
        listener = take_listener(settings)
        try:
            _serve(folder, listener, ended, notify)
        finally:
            # The caller closes the socket.
            listener.socket.detach()
    finally:
        for each, handler in before.items():
            signal.signal(each, handler)


def _serve(
    folder: Path, listener: Listener, ended: threading.Event, notify: Callable[[str], None]
) -> None:
    readers = Readers(listener.address)
    with tempfile.TemporaryDirectory(prefix="gscope-serve-") as place:
        socket = Path(place) / "socket"
        server = AnswerServer(folder, socket, listener.tokens, readers)
        forwarder = Forwarder(listener, socket, readers)
        notify(f"serving the answers in {folder} at {listener.address}")
        ended.wait()
        server.stop()
        forwarder.stop()
    notify(f"served {server.rows} rows in {server.requests} requests")
