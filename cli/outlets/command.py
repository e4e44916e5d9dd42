"""A command that is run for each row, without a shell and with few rights."""

from __future__ import annotations

import json
import os
import selectors
import shlex
import shutil
import signal
import subprocess
import time
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

from gscope.capture.process.confinement.kernel_calls import process_control
from gscope.cli.outlets.outlet import OutletError, RowsRefused
from gscope.errors import UsageError
from gscope.queries.os_errors import os_reason
from gscope.records import dataclass

if TYPE_CHECKING:
    from collections.abc import Mapping

    from gscope.capture.process.confinement.identity import Identity
    from gscope.cli.outlets.outlet import Batch

MOST_AT_ONCE = 4
"""How many commands of one ``--on-row`` run at a time."""

MOST_PER_SECOND = 50
"""How many of them are started in a second."""

TIME_LIMIT_S = 10.0
"""After this a command and the processes that it has started are killed, in seconds."""

_MOST_VALUE = 1 << 15
"""Bytes of the longest value in the environment."""

_PREFIX = "GSCOPE_"
_OF_ANY_USER = ("PATH", "LANG", "LC_ALL", "TZ")
"""What a command that runs as another user gets of the environment."""

_CAP_AMBIENT, _CLEAR_ALL = 47, 4


@dataclass(slots=True)
class _Running:
    process: subprocess.Popen[bytes]
    descriptor: int
    until_s: float


class RowCommand:
    """Runs a command for each row; see ``Outlet``.

    A row is settled when its command has ended. One that fails, or takes too long, is counted as
    refused and not run again.

    Args:
        text: the program and its arguments, in the syntax of a shell but without its expansions.
        identity: the user that it runs as; None for the user of this process.
        time_limit_s: see ``TIME_LIMIT_S``.

    Attributes:
        name: how reports call it.

    Raises:
        UsageError: the program does not exist.
    """

    MOST_ROWS = 20
    MOST_BYTES = 1 << 20

    def __init__(
        self, text: str, identity: Identity | None = None, time_limit_s: float = TIME_LIMIT_S
    ) -> None:
        self._words = shlex.split(text)
        self._identity = identity
        self._time_limit_s = time_limit_s
        self._is_stopped = False
        self._has_few_rights = False
        self._next_start_s = 0.0
        program = self._words[0]
        found = shutil.which(program)
        if found is None:
            message = f"--on-row {text}: {program} is not an executable program"
            raise UsageError(message)
        # It runs in another folder.
        self._words[0] = str(Path(found).absolute())
        self.name = f"command {Path(program).name}"

    def send(self, batch: Batch) -> None:
        """Run the command for each row, and wait for all; see ``Outlet.send``."""
        if not self._has_few_rights:
            # Of this thread alone, from which the processes are started.
            with suppress(OSError):
                process_control(_CAP_AMBIENT, _CLEAR_ALL)
            self._has_few_rights = True
        reasons: list[str] = []
        with selectors.DefaultSelector() as ends:
            running: dict[int, _Running] = {}
            try:
                for number, line in enumerate(batch.block.lines, batch.block.number):
                    while len(running) >= MOST_AT_ONCE or time.monotonic() < self._next_start_s:
                        self._wait(ends, running, reasons)
                    try:
                        self._start(ends, running, line, _environment(batch, number, line))
                    except OSError as error:
                        reasons.append(os_reason(error))
                while running:
                    self._wait(ends, running, reasons)
            finally:
                for each in running.values():
                    _kill(each)
                    os.close(each.descriptor)
        if reasons:
            raise RowsRefused(reasons[-1], len(reasons))

    def close(self) -> None:
        """Kill the commands that another thread is waiting for."""
        self._is_stopped = True

    def _start(
        self,
        ends: selectors.BaseSelector,
        running: dict[int, _Running],
        line: bytes,
        values: Mapping[str, str],
    ) -> None:
        self._next_start_s = time.monotonic() + 1 / MOST_PER_SECOND
        user: dict[str, Any] = {}
        if self._identity is not None:
            user = {
                "user": self._identity.uid,
                "group": self._identity.gid,
                "extra_groups": [],
            }
        # A file in memory: a command that does not read holds nothing up.
        with os.fdopen(os.memfd_create("row"), "w+b") as row:
            row.write(line + b"\n")
            row.seek(0)
            process = subprocess.Popen(
                self._words,
                stdin=row,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
                env={**self._inherited(), **values},
                cwd="/",
                start_new_session=True,
                **user,
            )
        descriptor = os.pidfd_open(process.pid)
        running[descriptor] = _Running(process, descriptor, time.monotonic() + self._time_limit_s)
        ends.register(descriptor, selectors.EVENT_READ)

    def _inherited(self) -> dict[str, str]:
        """Return what commands get of this process's environment."""
        if self._identity is not None:
            return {name: os.environ[name] for name in _OF_ANY_USER if name in os.environ}
        # Settings may contain the passwords of destinations.
        return {name: value for name, value in os.environ.items() if not name.startswith(_PREFIX)}

    def _wait(
        self, ends: selectors.BaseSelector, running: dict[int, _Running], reasons: list[str]
    ) -> None:
        """Wait until a command ends, one may be started, or one must be killed.

        Raises:
            OutletError: the run ends.
        """
        if self._is_stopped:
            message = "the run ends"
            raise OutletError(message)
        now_s = time.monotonic()
        until_s = [0.1, *(each.until_s - now_s for each in running.values())]
        if self._next_start_s > now_s:
            until_s.append(self._next_start_s - now_s)
        for key, _ in ends.select(max(0.0, min(until_s))):
            each = running.pop(key.fd)
            ends.unregister(key.fd)
            os.close(key.fd)
            if code := each.process.wait():
                said = f"exit code {code}" if code > 0 else signal.Signals(-code).name
                reasons.append(f"it ended with {said}")
        for each in [each for each in running.values() if each.until_s <= time.monotonic()]:
            del running[each.descriptor]
            ends.unregister(each.descriptor)
            os.close(each.descriptor)
            _kill(each)
            reasons.append(f"it took longer than {self._time_limit_s:g} s")


def _kill(running: _Running) -> None:
    """Kill a command with all processes of its session."""
    with suppress(ProcessLookupError, PermissionError):
        os.killpg(running.process.pid, signal.SIGKILL)
    with suppress(ProcessLookupError, PermissionError):
        running.process.kill()
    running.process.wait()


def _environment(batch: Batch, number: int, line: bytes) -> dict[str, str]:
    """Return the variables of a row; NULL and values that do not fit have none."""
    values = {
        "GSCOPE_RUN": batch.run,
        "GSCOPE_RUN_TOKEN": batch.token,
        "GSCOPE_QUERY": batch.block.query,
        "GSCOPE_NUMBER": str(number),
    }
    for column, value in json.loads(line).items():
        text = value if isinstance(value, str) else json.dumps(value)
        if value is not None and "\0" not in text and len(text.encode()) <= _MOST_VALUE:
            values[f"{_PREFIX}ROW_{column}"] = text
    return values
