"""One capture of an agent: ``python -m gscope.cli.agent.requested_capture FOLDER``.

A run of its own without a job, as ``gscope run --no-job`` is one: it captures, drops privileges,
restarts its daemon, and serves its log. FOLDER is ``captures/NAME`` in the agent's folder, with
``request.json``; the settings of the agent are two folders above. Standard output has the events of
``REQUESTED_CAPTURE_EVENTS``. When standard input closes, the agent has died, and this process ends
at once; its log stays, and the next agent continues it.
"""

from __future__ import annotations

import os
import sys
import threading
import time
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from gscope.capture.process.confinement.privileges import OF_SUPERVISORS, keep_only
from gscope.errors import GscopeError, StreamError, UsageError
from gscope.queries.run_folder.startup import settle
from gscope.queries.streams.event_codec import EventWriter
from gscope.queries.streams.process_events import (
    CaptureComplete,
    CaptureServing,
    ProcessError,
)

if TYPE_CHECKING:
    from collections.abc import Iterator

    from gscope.capture.log.agent.messages import CaptureRequest
    from gscope.capture.settings import InterfaceSettings, ListenerSettings
    from gscope.cli.agent.settings import AgentSettings, HeldRequest
    from gscope.cli.config.effective import Config
    from gscope.cli.rundir.records import RunRecord
    from gscope.cli.session.session import Session


def capture(folder: Path, events: EventWriter) -> int:
    """Capture until the end, and return the exit code.

    Raises:
        GscopeError: the request does not fit, or the capture failed.
    """
    began = time.monotonic()
    from gscope.capture.log.agent.messages import CaptureRequest
    from gscope.cli.agent.settings import (
        AGENT_FILE,
        REQUEST_FILE,
        AgentSettings,
        HeldRequest,
        read_plain,
    )
    from gscope.cli.render.progress import NullProgress
    from gscope.cli.render.progress_text import RunPhase
    from gscope.cli.session.end_report import EndReport

    agent: AgentSettings = read_plain(AgentSettings, folder.parent.parent / AGENT_FILE)
    held: HeldRequest = read_plain(HeldRequest, folder / REQUEST_FILE)
    request = CaptureRequest.from_object(held.request)
    config = replace(agent.config, heartbeat_interval_ns=request.heartbeat_interval_ns)
    session = _session(folder.name, request, agent, held, config)
    with _listening(agent, held, config) as listener:
        port = int(listener.address.rpartition(":")[2])

        def on_change(before: RunRecord, after: RunRecord) -> None:
            if after.state == "running" != before.state:
                events.send(CaptureServing(port))

        class Progress(NullProgress):
            """Reports to the agent that the input has ended."""

            def on_phase(self, phase: RunPhase, detail: str = "") -> None:
                super().on_phase(phase, detail)
                if phase is RunPhase.SERVING:
                    events.send(CaptureComplete())

        observer = Progress(is_quiet=True)
        report = EndReport(is_quiet=True, has_timings=False)
        return replace(session, listener=listener).answer(observer, report, began, on_change)


def _session(
    name: str,
    request: CaptureRequest,
    agent: AgentSettings,
    held: HeldRequest,
    config: Config,
) -> Session:
    from gscope.cli.config.run_limits import RunLimits
    from gscope.cli.session.request import QueryRequest
    from gscope.cli.session.session import Session

    interfaces = _interfaces(request, agent, config)
    if interfaces[0].device is None and held.is_known:
        message = (
            f"the captures that host {request.host} replayed for this run cannot be continued; "
            "start the run again"
        )
        raise StreamError(message)
    return Session(
        QueryRequest(),
        interfaces,
        RunLimits(),
        None,
        None,
        config,
        name,
        requested=request,
    )


def _interfaces(
    request: CaptureRequest, agent: AgentSettings, config: Config
) -> tuple[InterfaceSettings, ...]:
    """Return the interfaces to capture, by the names that the queries have for them.

    Raises:
        StreamError: one is not allowed, or devices and captures are asked for together.
    """
    from gscope.capture.log.agent.messages import ensure_names

    allowed = {each.name: each for each in agent.interfaces(config)}
    names = request.own_interfaces
    ensure_names(names, allowed)
    chosen = [allowed[name] for name in names]
    if len({each.device is None for each in chosen}) > 1:
        message = (
            f"host {request.host} cannot capture devices and replay captures for one run: "
            f"{', '.join(names)}; name those to read with -i"
        )
        raise StreamError(message)
    return tuple(replace(each, name=f"{request.host}.{each.name}") for each in chosen)


@contextmanager
def _listening(
    agent: AgentSettings, held: HeldRequest, config: Config
) -> Iterator[ListenerSettings]:
    """Listen at the port of before if it is free, else at another one that is allowed.

    Raises:
        UsageError: none is free, or a file cannot be used.
    """
    from gscope.capture.log.remote.address import TcpAddress
    from gscope.cli.config.listening import ListenRequest, listening

    assert config.token_file is not None
    files = (config.token_file, config.tls_certificate, config.tls_key)
    ports = agent.capture_ports
    tried = [port for port in (held.port, *(ports or (0,))) if port or not ports]
    with ExitStack() as stack:
        for number, port in enumerate(tried):
            request = ListenRequest(TcpAddress(agent.host, port), *files)
            try:
                listener = stack.enter_context(listening(request))
            except UsageError:
                if number + 1 == len(tried):
                    raise
            else:
                break
        yield listener


def _follow_agent() -> None:
    """End this process when the agent has died."""
    try:
        while os.read(0, 4096):
            pass
    except OSError:
        pass
    # The daemon sees its own pipe close, and its log is consistent at any moment.
    os._exit(1)


def main() -> None:
    """Run the capture that the command line names."""
    settle()
    os.environ.setdefault("GRPC_VERBOSITY", "NONE")
    events = EventWriter(sys.stdout)
    code = 0
    try:
        keep_only(OF_SUPERVISORS)
        threading.Thread(target=_follow_agent, name="follow agent", daemon=True).start()
        code = capture(Path(sys.argv[1]), events)
    except GscopeError as error:
        is_final = isinstance(error, UsageError | StreamError)
        events.send(ProcessError(str(error), is_final=is_final, exit_code=error.exit_code))
        code = error.exit_code
    sys.stdout.flush()
    raise SystemExit(code)


if __name__ == "__main__":
    main()
