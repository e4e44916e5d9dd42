"""The start of the log's servers, while kernels are compiled and the first packets processed."""

from __future__ import annotations

import os
import sys
import threading
import traceback
from typing import TYPE_CHECKING, Any

from gscope.capture.log.description import RELAY, SENSOR, describe_program
from gscope.errors import GscopeError
from gscope.queries.run_folder.layout import CAPTURE_FOLDER, REMOTE_SOCKET_FILE, SOCKET_FILE
from gscope.queries.streams.process_events import Listening

if TYPE_CHECKING:
    from pathlib import Path

    from gscope.capture.answers.answer_writer import AnswerWriter
    from gscope.capture.heartbeats.demands import Demands
    from gscope.capture.log.log import StreamLog
    from gscope.capture.log.remote.listener import Listener
    from gscope.capture.log.remote.service import RemoteService
    from gscope.capture.log.server import LogServer
    from gscope.capture.process.events import CaptureEvents
    from gscope.queries.plan.program import Program


class ServerThread:
    """A thread that starts the Flight servers.

    It reports that they listen once packets are let in. Their libraries take long to load. An
    exception other than gscope's own ends the process: its supervisor would wait in vain for the
    report.
    """

    def __init__(
        self,
        log: StreamLog,
        demands: Demands,
        program: Program,
        run_dir: Path,
        *,
        listener: Listener | None,
        is_relay: bool,
        events: CaptureEvents,
        has_begun: threading.Event,
    ) -> None:
        self._log = log
        self._demands = demands
        self._program = program
        self._run_dir = run_dir
        self._listener = listener
        self._is_relay = is_relay
        self._events = events
        self._has_begun = has_begun
        self._server: LogServer | None = None
        self._remote: RemoteService | None = None
        self._failure: GscopeError | None = None
        self._thread = threading.Thread(target=self._start, name="start server")
        self._thread.start()

    def ensure_listening(self) -> None:
        """Wait until consumers can connect.

        Raises:
            StreamError: the server cannot be started.
        """
        self._thread.join()
        if self._failure is not None:
            raise self._failure

    def remote_status(self) -> dict[str, Any] | None:
        """Return who reads the log from other hosts; None if it is not served to them."""
        return None if self._remote is None else self._remote.status()

    def stop(self) -> None:
        """Stop the servers; the log must be closed."""
        self._thread.join()
        if self._remote is not None:
            self._remote.stop()
        if self._server is not None:
            self._server.stop()

    def _start(self) -> None:
        try:
            self._serve()
        except BaseException:
            traceback.print_exc()
            sys.stderr.flush()
            os._exit(1)

    def _serve(self) -> None:
        from gscope.capture.log.server import LogServer

        lftas = describe_program(self._program)
        role = RELAY if self._is_relay else SENSOR
        socket = self._run_dir / SOCKET_FILE
        try:
            self._server = LogServer(
                self._log, socket, self._demands, lftas=lftas, role=role, answers=self._answers()
            )
            if self._listener is not None:
                from gscope.capture.log.remote.service import RemoteService

                self._remote = RemoteService(
                    self._log,
                    self._listener,
                    self._run_dir / REMOTE_SOCKET_FILE,
                    self._demands,
                    lftas=lftas,
                    role=role,
                )
        except GscopeError as error:
            self._failure = error
            return
        self._has_begun.wait()
        if self._log.is_closed:
            return
        self._events.send(Listening(str(socket)))

    def _answers(self) -> AnswerWriter | None:
        """Return what takes the answers that other hosts read; None if they read none."""
        if not self._program.answers:
            return None
        from gscope.capture.answers.answer_writer import AnswerWriter

        return AnswerWriter(self._log, self._program, self._run_dir / CAPTURE_FOLDER)
