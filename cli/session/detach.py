"""Runs in the background: ``gscope run -d``.

Three processes take part. The one that the user started waits for the *go-between*, which leads a
session of its own and therefore has no terminal. The run is a child of the go-between, can never
get a terminal, and writes to it through a pipe. When the run captures, the go-between prints that
and exits, and so does the command. If the run ends before, the command exits with its exit code.
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
    """The process of the run, which reports when it captures.

    Args:
        announce: descriptor of the write end of the pipe to the go-between.

    Attributes:
        served_at: the address at which the run serves its rows; "" if it writes answers.
    """

    def __init__(self, announce: int) -> None:
        self.served_at = ""
        self._announce: int | None = announce

    def on_change(self, _before: RunRecord, after: RunRecord) -> None:
        """Let the user's command end when the run captures, and write to files from then on."""
        if after.state != "running" or self._announce is None:
            return
        os.write(self._announce, sentence(after, self.served_at).encode())
        os.close(self._announce)
        self._announce = None
        errors = after.path / STDERR_FILE
        file = os.open(errors, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o600)
        for stream in (sys.stdout, sys.stderr):
            stream.flush()
            os.dup2(file, stream.fileno())
        os.close(file)


def detach() -> Detached | int:
    """Fork twice, and return a ``Detached`` in the run, the exit code in the user's process.

    The run keeps its working directory, which paths on the command line are relative to. To be
    called before another thread is started.
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


def sentence(run: RunRecord, served_at: str) -> str:
    """Return the notice that a run continues in the background."""
    place = f" --work-dir {run.path.parent}" if _needs_place(run.path.parent) else ""
    metrics = "" if run.metrics is None else f"; metrics are at {run.metrics}"
    does = f"serving its rows at {served_at}" if served_at else f"writing to {run.folder}"
    return (
        f"gscope: {run.name} is running as process {run.pid} and {does}{metrics}; "
        f"`gscope status --run {run.name}{place}` shows it, `gscope stop --run "
        f"{run.name}{place}` stops it\n"
    )


def _needs_place(work_dir: Path) -> bool:
    from gscope.cli.rundir.run_dir import default_work_dir

    return work_dir != default_work_dir()


def _wait_for(between: int) -> int:
    """Return the exit code of the go-between; signals to this process are passed on to it."""
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
    """Print the notice of the run, or exit with its exit code."""
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, lambda n, _frame: os.kill(run, n))
    with os.fdopen(reader) as pipe:
        notice = pipe.read()
    if notice:
        # The terminal may have gone meanwhile.
        try:
            os.write(2, notice.encode())
        finally:
            os._exit(0)
    _, status = os.waitpid(run, 0)
    os._exit(_exit_code(status))


def _exit_code(status: int) -> int:
    code = os.waitstatus_to_exitcode(status)
    return 128 - code if code < 0 else code
