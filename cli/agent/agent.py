"""The agent: starts, watches and ends the captures that other hosts request.

::

    agent                      this process: keeps the rights that captures need, and no connection
      ├─ control process       faces the network, without any privileges (capture/log/agent)
      ├─ capture a             a run without a job: supervisor ...
      │    └─ daemon           ... and its unprivileged capture daemon, which serves the log
      └─ capture b

The control process can only report requests, which it and each capture check. What is in the
agent's folder outlives it: the requests, and the logs of captures that it has not ended.
"""

from __future__ import annotations

import json
import os
import queue
import signal
import time
from contextlib import suppress
from typing import TYPE_CHECKING

from gscope.capture.log.agent.board import request_digest
from gscope.capture.log.agent.control import ControlSettings, state_line
from gscope.capture.log.agent.messages import (
    CAPTURE_NAME,
    ENDED,
    FAILED,
    LIVE,
    REPLAYED,
    CaptureState,
    OfferedInterface,
)
from gscope.cli.agent.held_capture import HeldCapture
from gscope.cli.agent.settings import AGENT_FILE, REQUEST_FILE, HeldRequest, write_plain
from gscope.cli.events import USER, Event, Events, ProcessExit, StopRequest
from gscope.cli.supervision.child_process import ChildProcess
from gscope.cli.supervision.restart_policy import RestartPolicy, Restarts
from gscope.errors import GscopeError, UsageError
from gscope.queries.os_errors import os_reason
from gscope.queries.streams.process_events import (
    CONTROL_EVENTS,
    CaptureDismissed,
    CaptureRequested,
    CaptureWanted,
    Listening,
    ProcessError,
)

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from gscope.capture.settings import ListenerSettings
    from gscope.cli.agent.settings import AgentSettings

CONTROL = ".control"
"""The source of events of the control process; no capture has such a name."""

CONTROL_MODULE = "gscope.capture.log.agent.control"
CAPTURES_FOLDER = "captures"

LOOK_S = 0.25


class Agent:
    """The processes of an agent; for one thread.

    Args:
        folder: the agent's folder, prepared for the control process.
        work_dir: the folder of the runs.
        settings: what it allows.
        control: the settings of the control process.
        forget_after_s: seconds after which a capture ends that no host wants.
        keep_recordings_s: the same of a recording that no run has read yet.
        notify: prints a sentence for the user.
    """

    def __init__(
        self,
        folder: Path,
        work_dir: Path,
        settings: AgentSettings,
        control: ControlSettings,
        forget_after_s: float,
        keep_recordings_s: float,
        notify: Callable[[str], None],
    ) -> None:
        self._folder = folder
        self._work_dir = work_dir
        self._control_settings = control
        self._forget_after_s = forget_after_s
        self._keep_recordings_s = keep_recordings_s
        self._notify = notify
        self._events: Events = queue.SimpleQueue()
        self._captures: dict[str, HeldCapture] = {}
        self._said: dict[str, CaptureState] = {}
        self._control: ChildProcess | None = None
        self._control_due_s: float | None = None
        self._control_complaint: ProcessError | None = None
        self._restarts = Restarts(RestartPolicy())
        self._signals: list[int] = []
        write_plain(folder / AGENT_FILE, settings)
        (folder / CAPTURES_FOLDER).mkdir(mode=0o700, exist_ok=True)

    def run(self) -> int:
        """Serve requests until a signal; return the exit code.

        The first signal ends the input of all captures, and returns when their hosts have all rows,
        and recordings are complete; a further one returns at once.

        Raises:
            GscopeError: the control process cannot be kept running.
        """
        before = {
            number: signal.signal(number, self._on_signal)
            for number in (signal.SIGINT, signal.SIGTERM)
        }
        try:
            self._take_over()
            self._start_control()
            for capture in self._captures.values():
                if capture.held.is_recording:
                    capture.start(is_known=capture.held.is_known)
            while len(self._signals) < 2 and not (self._signals and not self._has_running):
                self._turn()
            for capture in self._captures.values():
                if capture.state.state == ENDED and not capture.held.has_ended:
                    # Served to its end because of the signal: a later agent begins another one.
                    capture.forget()
            return 0 if len(self._signals) < 2 else 128 + self._signals[-1]
        finally:
            for number, handler in before.items():
                signal.signal(number, handler)
            self._stop()

    @property
    def _has_running(self) -> bool:
        return any(each.is_running and not each.is_recorded for each in self._captures.values())

    def _on_signal(self, number: int, _frame: object) -> None:
        self._signals.append(number)
        self._events.put(Event(USER, StopRequest()))

    def _take_over(self) -> None:
        """Hold what an earlier agent left; it goes on when its host asks again.

        Recordings go on without that, see ``run``.
        """
        for path in (self._folder / CAPTURES_FOLDER).iterdir():
            try:
                self._hold(path)
            except UsageError as error:
                self._notify(f"capture {path.name}: {error}")

    def _hold(self, path: Path) -> HeldCapture:
        capture = HeldCapture(
            path, self._work_dir, self._events, lambda line: self._notify(f"{path.name}: {line}")
        )
        self._captures[path.name] = capture
        return capture

    def _turn(self) -> None:
        with suppress(queue.Empty):
            self._on_event(self._events.get(timeout=LOOK_S))
        now_s = time.monotonic()
        if self._control_due_s is not None and now_s >= self._control_due_s:
            self._start_control()
        for capture in tuple(self._captures.values()):
            capture.look()
            is_recording = capture.held.is_recording
            limit_s = self._keep_recordings_s if is_recording else self._forget_after_s
            if now_s >= capture.wanted_s + limit_s:
                heard = "no run has read it" if is_recording else "its host has not been heard"
                self._dismiss(capture, f"{heard} for {limit_s:.0f} s")
        self._say_states()

    def _on_event(self, event: Event) -> None:
        if event.source == USER:
            if len(self._signals) == 1:
                self._close_windows()
        elif event.source == CONTROL:
            self._on_control(event)
        elif (capture := self._captures.get(event.source)) is not None:
            if event.pid != capture.pid:
                return
            if isinstance(event.report, ProcessExit):
                capture.on_exit(event.report.code)
                if capture.is_dismissed:
                    self._forget(capture)
                    return
                state = capture.state
                why = f": {state.reason}" if state.reason else ""
                self._notify(f"capture {capture.name}: {state.state}{why}")
            else:
                before = capture.state
                capture.on_event(event.report)
                if capture.state != before:
                    done = ", complete" if capture.state.is_complete else ""
                    self._notify(
                        f"capture {capture.name}: {capture.state.state} at port "
                        f"{capture.state.port}{done}"
                    )

    def _on_control(self, event: Event) -> None:
        assert self._control is not None
        if event.pid != self._control.pid:
            return
        match event.report:
            case Listening():
                self._said = {}
            case CaptureRequested() as requested:
                self._on_request(requested)
            case CaptureWanted(capture=name):
                if name in self._captures:
                    self._captures[name].on_wanted()
            case CaptureDismissed(capture=name):
                if name in self._captures:
                    self._dismiss(self._captures[name], "dismissed by its host")
            case ProcessError() as error:
                self._control_complaint = error
            case ProcessExit(code=code):
                self._on_control_exit(code)

    def _on_control_exit(self, code: int) -> None:
        """Start the control process again after a pause.

        Raises:
            GscopeError: it has failed too often, or cannot use its settings.
        """
        pause_s = self._restarts.on_failure()
        complaint = self._control_complaint
        if complaint is not None and complaint.exit_code == UsageError.exit_code:
            raise UsageError(complaint.message)
        why = f"exit code {code}" if complaint is None else complaint.message
        if pause_s is None:
            message = f"the control process is given up, {self._restarts.verdict}: {why}"
            raise GscopeError(message)
        self._notify(f"the control process ended ({why}); starting it again")
        self._control_due_s = time.monotonic() + pause_s

    def _start_control(self) -> None:
        self._control_due_s = None
        self._control_complaint = None
        self._restarts.on_start()
        self._control = ChildProcess(
            CONTROL,
            CONTROL_MODULE,
            self._folder,
            self._events,
            on_words=lambda line: self._notify(f"control process: {line}"),
            is_privileged=True,
            inherited=(self._control_settings.listener.descriptor,),
            kinds=CONTROL_EVENTS,
        )

    def _on_request(self, event: CaptureRequested) -> None:
        name, request = event.capture, event.request
        if self._signals or not CAPTURE_NAME.fullmatch(name):
            self._reply(name, request_digest(request), _failed("this agent is stopping"))
            return
        capture = self._captures.get(name)
        digest = request_digest(request)
        if capture is not None and capture.held.digest != digest:
            self._reply(name, digest, _failed("it was requested with other queries or settings"))
            return
        if capture is None:
            path = self._folder / CAPTURES_FOLDER / name
            try:
                path.mkdir(mode=0o700, exist_ok=True)
                held = HeldRequest(request, digest, event.is_known, is_recording=event.is_recording)
                write_plain(path / REQUEST_FILE, held)
                capture = self._hold(path)
            except (OSError, UsageError) as error:
                reason = os_reason(error) if isinstance(error, OSError) else str(error)
                self._reply(name, digest, _failed(f"cannot create {path}: {reason}"))
                return
            what = "to be recorded" if event.is_recording else "requested"
            self._notify(f"capture {name}: {what} for {_queries(request)}")
        if event.is_recording:
            capture.wanted_s = time.monotonic()
        else:
            capture.on_wanted()
        capture.start(is_known=event.is_known)

    def _dismiss(self, capture: HeldCapture, why: str) -> None:
        """End a capture, and forget it once its process has ended."""
        if capture.is_dismissed:
            return
        self._notify(f"capture {capture.name}: ended, {why}")
        if capture.is_running:
            capture.dismiss()
        else:
            self._forget(capture)

    def _forget(self, capture: HeldCapture) -> None:
        del self._captures[capture.name]
        capture.forget()
        self._said.pop(capture.name, None)
        self._reply(capture.name, capture.held.digest, None)

    def _close_windows(self) -> None:
        self._notify(
            "closing windows; serving until every host has all rows, a further Ctrl-C discards them"
        )
        for capture in self._captures.values():
            capture.close_windows()

    def _say_states(self) -> None:
        """Report captures whose state has changed to the control process."""
        for name, capture in self._captures.items():
            is_news = capture.state != self._said.get(name)
            if is_news and (capture.is_running or capture.state.state in (ENDED, FAILED)):
                self._said[name] = capture.state
                self._reply(name, capture.held.digest, capture.state)

    def _reply(self, name: str, digest: str, state: CaptureState | None) -> None:
        if self._control is not None:
            self._control.write_line(state_line(name, digest, state))

    def _stop(self) -> None:
        for capture in self._captures.values():
            capture.stop()
        if self._control is not None:
            self._control.stop()


def _failed(reason: str) -> CaptureState:
    return CaptureState(FAILED, 0, reason)


def _queries(request: dict[str, object]) -> str:
    """Return what a request is about, in a few letters that can be printed."""
    shown = json.dumps(request.get("delivered") or request.get("host"))
    return shown[:100]


def control_settings(settings: AgentSettings, listener: ListenerSettings) -> ControlSettings:
    """Return the settings of the control process.

    Raises:
        UsageError: no interface is allowed, or one is invalid.
    """
    interfaces = settings.interfaces(settings.config)
    return ControlSettings(
        listener,
        tuple(
            OfferedInterface(each.name, REPLAYED if each.device is None else LIVE, each.skew_ns)
            for each in interfaces
        ),
    )


def ensure_alone(folder: Path) -> int:
    """Return a descriptor that holds the agent's folder until it is closed.

    Raises:
        UsageError: another agent uses it, or it cannot be used.
    """
    from gscope.cli.rundir import lock as run_lock

    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        lock = run_lock.take(folder, os.getpid())
    except OSError as error:
        message = f"cannot use the folder {folder}: {os_reason(error)}"
        raise UsageError(message) from error
    if lock is None:
        message = (
            f"another agent uses {folder.parent}; name another work dir with --work-dir, so that "
            "each keeps its own captures"
        )
        raise UsageError(message)
    return lock
