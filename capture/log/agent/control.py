"""The control process of an agent: ``python -m gscope.capture.log.agent.control FOLDER``.

It faces the network, so it gives up all privileges before it accepts a connection, and can do
nothing but report requests to the agent, as lines on standard output (``CONTROL_EVENTS``). On
standard input the agent writes how captures stand, a line of JSON each, and ends it to end this
process. Settings are in ``control.json`` in FOLDER.
"""

from __future__ import annotations

import json
import os
import signal
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

from gscope.capture.log.agent.messages import OfferedInterface  # noqa: TC001  # as the next
from gscope.capture.process.confinement.plan import Confinement
from gscope.capture.settings import ListenerSettings  # noqa: TC001  # ``from_plain`` reads hints
from gscope.errors import GscopeError, UsageError
from gscope.queries.os_errors import os_reason
from gscope.queries.run_folder.layout import CAPTURE_FOLDER
from gscope.queries.run_folder.startup import settle
from gscope.queries.streams.event_codec import EventWriter, from_plain, to_plain
from gscope.queries.streams.process_events import Listening, ProcessError
from gscope.records import dataclass

if TYPE_CHECKING:
    from gscope.capture.log.agent.board import CaptureBoard
    from gscope.capture.log.agent.messages import CaptureState

SETTINGS_FILE = "control.json"
SOCKET_FILE = f"{CAPTURE_FOLDER}/control.sock"


@dataclass(frozen=True, slots=True)
class ControlSettings:
    """Settings of the control process.

    Attributes:
        listener: the listening socket, which it inherits, and what protects it.
        interfaces: the interfaces that the agent allows.
    """

    listener: ListenerSettings
    interfaces: tuple[OfferedInterface, ...] = ()

    def write(self, folder: Path) -> Path:
        """Write the settings to ``folder``; return the file."""
        path = folder / SETTINGS_FILE
        path.write_text(json.dumps(to_plain(self)), encoding="utf-8")
        return path

    @classmethod
    def read(cls, folder: Path) -> ControlSettings:
        """Return the settings in ``folder``.

        Raises:
            UsageError: they cannot be read.
        """
        path = folder / SETTINGS_FILE
        try:
            return from_plain(cls, json.loads(path.read_bytes()))  # type: ignore[no-any-return]
        except OSError as error:
            message = f"cannot read {path}: {os_reason(error)}"
            raise UsageError(message) from error
        except (ValueError, TypeError) as error:
            message = f"{path} is damaged: {error}"
            raise UsageError(message) from error


def state_line(capture: str, digest: str, state: CaptureState | None) -> str:
    """Return the line by which an agent says how a capture stands; None: it has forgotten it."""
    plain = None if state is None else to_plain(state)
    return json.dumps({"capture": capture, "digest": digest, "state": plain})


def serve(folder: Path, events: EventWriter) -> None:
    """Serve until the agent closes standard input.

    Raises:
        GscopeError: settings, keys or the socket cannot be used.
    """
    from gscope.capture.log.remote.listener import take_listener
    from gscope.capture.process.confinement.confine import confine

    settings = ControlSettings.read(folder)
    listener = take_listener(settings.listener)
    confine(
        Confinement.read(folder),
        folder,
        (CAPTURE_FOLDER,),
        read=(),
        may_execute=False,
        has_internet=False,
    )
    from gscope import __version__
    from gscope.capture.log.agent.board import CaptureBoard
    from gscope.capture.log.agent.messages import AGENT_PROTOCOL, Offer
    from gscope.capture.log.agent.server import ControlServer
    from gscope.capture.log.remote.forwarder import Forwarder
    from gscope.capture.log.remote.readers import Readers

    board = CaptureBoard(tuple(each.name for each in settings.interfaces), events.send)
    readers = Readers(listener.address)
    path = folder / SOCKET_FILE
    offer = Offer(AGENT_PROTOCOL, __version__, settings.interfaces)
    server = ControlServer(path, offer, board, listener.tokens, readers)
    forwarder = Forwarder(listener, path, readers)
    events.send(Listening(listener.address))
    try:
        for line in sys.stdin:
            _take(board, json.loads(line))
    finally:
        server.stop()
        forwarder.stop()
        listener.socket.close()


def _take(board: CaptureBoard, said: dict[str, Any]) -> None:
    from gscope.capture.log.agent.messages import CaptureState

    state = None if said["state"] is None else from_plain(CaptureState, said["state"])
    board.on_state(said["capture"], said["digest"], state)


def main() -> None:
    """Run the control process that the command line describes."""
    settle()
    for number in (signal.SIGINT, signal.SIGTERM):
        # The agent handles them, and closes standard input.
        signal.signal(number, signal.SIG_IGN)
    events = EventWriter(sys.stdout)
    try:
        serve(Path(sys.argv[1]), events)
    except GscopeError as error:
        events.send(ProcessError(str(error), exit_code=error.exit_code))
        raise SystemExit(error.exit_code) from error


if __name__ == "__main__":
    main()
    sys.stdout.flush()
    os._exit(0)
