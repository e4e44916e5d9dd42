"""Runs in the background: ``gscope run -d``.

Three processes take part. The one that the user started waits for the *go-between*, which is the leader of a session
of its own and therefore without a terminal; the run is a child of that, can never get a terminal, and speaks to it
through a pipe. When the run captures, the go-between says so and ends, and with it the command; when the run ends
before that, its exit code is the command's.
"""

from __future__ import annotations

import os
import signal
import sys
from typing import TYPE_CHECKING, NoReturn

from gscope.queries.run_folder.layout import STDERR_FILE

if TYPE_CHECKING:
    from pathlib import Path

    from gscope.cli.rundir.records import RunRecord


class Detached:
    """This process is the run; it tells when it captures.

    Args:
        announce: the write end of the pipe to the go-between.
    """

    def __init__(self, announce: int) -> None:
        self._announce: int | None = announce

    def on_change(self, _before: RunRecord, after: RunRecord) -> None:
        """When the run captures, let the user's command end, and write to files from then on."""
        if after.state != "running" or self._announce is None:
            return
        os.write(self._announce, sentence(after).encode())
        os.close(self._announce)
        self._announce = None
        errors = after.path / STDERR_FILE
        file = os.open(errors, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o600)
        for stream in (sys.stdout, sys.stderr):
            stream.flush()
            os.dup2(file, stream.fileno())
        os.close(file)


def detach() -> Detached | int:
    """Fork: in the run a ``Detached``, in the user's process the exit code, when that is known.

    The run keeps its working directory, as the paths that it was given are relative to that. It is to be called
    before there are other threads.
    """
    sys.stdout.flush()
    sys.stderr.flush()
    between = os.fork()
    if between != 0:
        return _wait_for(between)
    os.setsid()
    reader, writer = os.pipe()
    run = os.fork()
    if run != 0:
        os.close(writer)
        _go_between(run, reader)
    os.close(reader)
    nothing = os.open(os.devnull, os.O_RDONLY)
    os.dup2(nothing, 0)
    os.close(nothing)
    return Detached(writer)


def sentence(run: RunRecord) -> str:
    """What the user is told of a run that has been detached."""
    place = f" --work-dir {run.path.parent}" if _needs_place(run.path.parent) else ""
    return (
        f"gscope: {run.name} is capturing as process {run.pid} and writing to {run.folder}; "
        f"`gscope status --run {run.name}{place}` shows it, `gscope stop --run "
        f"{run.name}{place}` stops it\n"
    )


def _needs_place(work_dir: Path) -> bool:
    from gscope.cli.rundir.run_dir import default_work_dir

    return work_dir != default_work_dir()


def _wait_for(between: int) -> int:
    """The exit code of the go-between; what interrupts this process interrupts the run."""
    numbers = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)

    def pass_on(number: int, _frame: object) -> None:
        os.kill(between, number)

    before = {number: signal.signal(number, pass_on) for number in numbers}
    try:
        _, status = os.waitpid(between, 0)
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
    return _exit_code(status)


def _go_between(run: int, reader: int) -> NoReturn:
    """Tell the user what the run says, or end as it ended."""
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, lambda n, _frame: os.kill(run, n))
    with os.fdopen(reader) as pipe:
        told = pipe.read()
    if told:
        # Whoever started it may have gone meanwhile.
        try:
            os.write(2, told.encode())
        finally:
            os._exit(0)
    _, status = os.waitpid(run, 0)
    os._exit(_exit_code(status))


def _exit_code(status: int) -> int:
    code = os.waitstatus_to_exitcode(status)
    return 128 - code if code < 0 else code
