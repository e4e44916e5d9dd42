"""Recordings: agents capture for a run that reads their rows later.

The run that is recorded is one like any other that reads hosts, ended before it read anything: its
folder has what it asked the agents for, and ``gscope run --run NAME`` resumes it.
"""

from __future__ import annotations

import json
import sys
import time
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from gscope.capture.log.agent.client import AgentClient
from gscope.capture.log.agent.messages import FAILED, REPLAYED, SERVING, CaptureRequest
from gscope.capture.log.remote.credentials import log_address
from gscope.capture.settings import CaptureSettings
from gscope.cli.config.capture_settings import capture_settings
from gscope.cli.config.destinations import without_secrets
from gscope.cli.rundir.run_dir import RunDir
from gscope.cli.session.run_name import default_name
from gscope.errors import GscopeError, StreamError, UsageError
from gscope.queries.os_errors import os_reason
from gscope.queries.plan.program_file import write_program
from gscope.queries.run_folder.layout import CAPTURE_SETTINGS_FILE, LOG_FOLDER, PROGRAM_FILE

if TYPE_CHECKING:
    from collections.abc import Iterator

    from gscope.capture.settings import RelayInput
    from gscope.cli.render.progress import RunObserver
    from gscope.cli.session.session import Session
    from gscope.queries.plan.program import Program

POLL_S = 0.25
"""Seconds between inquiries how a recording stands."""


def record(session: Session, observer: RunObserver) -> int:
    """Let the hosts of a run record, one after the other; return the exit code.

    A host that captures devices is done when it captures, one that replays captures when all of
    them are replayed. If a host fails, none records.

    Raises:
        UsageError: the run exists, or a file cannot be written.
        GscopeError: a query is invalid, or an agent refuses.
    """
    name = session.name or default_name(session.request)
    with RunDir(session.config.work_dir, name, is_exact=session.name is not None) as run_dir:
        if run_dir.resumed is not None:
            run_dir.hand_back_if_resumed()
            message = (
                f"run {name} exists; `{run_dir.resumed.resumption}` with the same queries resumes "
                f"it, `gscope stop --run {name}` removes it"
            )
            raise UsageError(message)
        program = session.compiled(run_dir, observer)
        settings = _stored(session, run_dir, program)
        assert settings.relay is not None
        run_dir.file.change(
            command=without_secrets(sys.argv[1:], session.config.destinations),
            interfaces=session.input_names,
            is_live=True,
        )
        with _released_on_failure(settings):
            for each in settings.relay.inputs:
                observer.on_notice(f"host {each.name}: {_recorded(each)}")
        run_dir.is_kept = True
        run_dir.file.enter("recorded")
        observer.on_notice(
            f"`gscope run --run {run_dir.name}` with the same queries and hosts answers them; "
            f"`gscope stop --run {run_dir.name}` discards the recording"
        )
    return 0


def release_hosts(run: Path) -> tuple[str, ...]:
    """Let agents end the captures of the run in ``run``, which is about to be removed.

    Returns:
        The hosts whose agents did not answer.
    """
    try:
        settings = CaptureSettings.from_json((run / CAPTURE_SETTINGS_FILE).read_bytes())
    except (OSError, GscopeError):
        return ()
    return tuple(_unreleased(settings))


def _stored(session: Session, run_dir: RunDir, program: Program) -> CaptureSettings:
    """Write what a killed run would have left that has read nothing yet."""
    assert session.hosts is not None
    assert session.relay is not None
    hosts = session.hosts.store(run_dir.path)
    relay = hosts.requests(run_dir.path, session.relay, program, session.request, session.config)
    settings = capture_settings(program, session.interfaces, session.config, session.limits, relay)
    session.prepared(run_dir.path)
    try:
        write_program(run_dir.path / PROGRAM_FILE, program)
        (run_dir.path / CAPTURE_SETTINGS_FILE).write_text(settings.to_json(), encoding="utf-8")
        # From here on the run can be resumed, also if this process is killed.
        (run_dir.path / LOG_FOLDER).mkdir(mode=0o700)
    except OSError as error:
        message = f"cannot write to {run_dir.path}: {os_reason(error)}"
        raise UsageError(message) from error
    return settings


def _recorded(each: RelayInput) -> str:
    """Ask an agent to record until it does; return how it stands, in words.

    Raises:
        GscopeError: it does not answer, or cannot capture.
    """
    request = json.loads(Path(each.request).read_bytes())
    names = CaptureRequest.from_object(request).own_interfaces
    try:
        with AgentClient(log_address(each.address, each.token, each.certificates)) as agent:
            is_finite = any(
                offered.name in names and offered.kind == REPLAYED
                for offered in agent.offer().interfaces
            )
            while True:
                state = agent.begin(each.capture, request, is_known=False, is_recording=True)
                if state.state == FAILED:
                    message = f"host {each.name} cannot record: {state.reason}"
                    raise GscopeError(message)
                if state.state == SERVING and (state.is_complete or not is_finite):
                    break
                time.sleep(POLL_S)
    except StreamError as error:
        message = f"host {each.name}: {error}"
        raise GscopeError(message) from error
    return "recorded" if state.is_complete else "recording"


@contextmanager
def _released_on_failure(settings: CaptureSettings) -> Iterator[None]:
    try:
        yield
    except BaseException:
        for _ in _unreleased(settings):
            pass  # it discards the recording after its own time
        raise


def _unreleased(settings: CaptureSettings) -> Iterator[str]:
    """End the captures at all agents; yield the names of those that do not answer."""
    for each in settings.relay.inputs if settings.relay is not None else ():
        if each.capture:
            try:
                with AgentClient(log_address(each.address, each.token, each.certificates)) as agent:
                    agent.end(each.capture)
            except GscopeError:
                yield each.name
