"""The lifecycle of a run: its folder, record and log, and what remains at its end.

==================================== ==============================================================
the run ends because                 its folder
==================================== ==============================================================
everything is answered               is removed
the user ended it immediately        is removed, as requested
a live run failed after it captured  stays, in the state ``failed``; the run can be resumed
a live run could not be resumed      stays as it was
it is a replay, or never captured    is removed
the supervisor was killed            stays: a live run is stale and can be resumed, other folders
                                     are deleted by the next run
==================================== ==============================================================
"""

from __future__ import annotations

import errno
from contextlib import contextmanager
from typing import TYPE_CHECKING

from gscope import __version__
from gscope.cli.rundir.records import FOLDER_PREFIX, read_run
from gscope.cli.rundir.run_log import RunLog
from gscope.cli.session import sd_notify
from gscope.cli.supervision.supervisor import Interrupted
from gscope.errors import GscopeError, UsageError
from gscope.queries.os_errors import os_reason

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from gscope.cli.rundir.records import RunRecord
    from gscope.cli.rundir.run_dir import RunDir
    from gscope.queries.plan.program import Program

    Listener = Callable[[RunRecord, RunRecord], None]


@contextmanager
def run_lifecycle(
    run_dir: RunDir, log_file: Path | None, listeners: tuple[Listener, ...]
) -> Iterator[RunLog]:
    """Log a run until its end, and keep or remove its folder then.

    Args:
        run_dir: the run's folder, which the caller closes.
        log_file: a further file for the log; None: none.
        listeners: called at every change of the run's record.

    Raises:
        UsageError: the log cannot be written.
    """
    try:
        log = RunLog(run_dir.path, log_file)
    except OSError as error:
        run_dir.hand_back_if_resumed()
        message = f"cannot write the log {error.filename}: {os_reason(error)}"
        raise UsageError(message) from error
    capturing = _Capturing()
    for listener in (log.on_change, capturing.on_change, *listeners, sd_notify.on_change):
        run_dir.file.listen(listener)
    try:
        yield log
    except BaseException as error:
        _on_failure(run_dir, error, has_captured=capturing.has_captured)
        log.note("run", f"over: {str(error) or type(error).__name__}")
        raise
    else:
        run_dir.file.enter("ended")
    finally:
        log.close()


def ensure_same(run_dir: RunDir, program: Program) -> None:
    """Refuse to resume a run with other queries, or one that another version began.

    Its log would not answer other queries, and another version may read it differently. In both
    cases the run stays as it is: the user decides whether to discard its unanswered packets.

    Raises:
        UsageError: the run cannot be resumed with ``program``; the message lists the choices.
    """
    from gscope.queries.plan.program_file import program_digest, read_head
    from gscope.queries.run_folder.layout import PROGRAM_FILE

    name = run_dir.name
    choices = (
        "choose another name with --run, or discard its unanswered data with `gscope stop "
        f"--run {name}`"
    )
    try:
        head = read_head(run_dir.path / PROGRAM_FILE)
    except UsageError as error:
        message = f"cannot resume {name}: {error}; its other files are kept: {choices}"
    else:
        if not head.is_of_this_version:
            message = (
                f"cannot resume {name}: gscope {head.version} started it, and this is gscope "
                f"{__version__}; resume it with gscope {head.version}, {choices}"
            )
        elif head.digest == program_digest(program):
            return
        elif (before := _other_partitions(run_dir, program)) is not None:
            message = (
                f"cannot resume {name}: it was started with --partitions {before}; resume it with "
                f"that, {choices}"
            )
        else:
            message = (
                f"cannot resume {name}: it was started with other queries or other interfaces; "
                f"resume it with those, {choices}"
            )
    run_dir.hand_back_if_resumed()
    raise UsageError(message)


def _other_partitions(run_dir: RunDir, program: Program) -> int | None:
    """Return the number of partitions of a run; None unless it alone differs from ``program``."""
    from gscope.queries.plan.program_file import program_digest, read_program
    from gscope.queries.plan.program_partitioning import undivided
    from gscope.queries.run_folder.layout import PROGRAM_FILE

    before = read_program(run_dir.path / PROGRAM_FILE)
    if program_digest(undivided(before)) != program_digest(undivided(program)):
        return None
    return 1 if before.partitioning is None else before.partitioning.partitions


def namesake(run_dir: RunDir, name: str) -> str | None:
    """Return a notice of a killed run that holds the default name of this run; None without one."""
    other = read_run(run_dir.path.with_name(FOLDER_PREFIX + name))
    if run_dir.name == name or other is None or other.is_alive:
        return None
    return (
        f"an earlier run {name} is {other.standing}: `{other.resumption}` with the same "
        f"queries resumes it, `gscope stop --run {name}` removes it; this run is {run_dir.name}"
    )


class _Capturing:
    """Notes whether the run has ever captured."""

    def __init__(self) -> None:
        self.has_captured = False

    def on_change(self, _before: RunRecord, after: RunRecord) -> None:
        self.has_captured = self.has_captured or after.state == "running"


def _on_failure(run_dir: RunDir, error: BaseException, *, has_captured: bool) -> None:
    """Keep or hand back the folder of a run that failed."""
    if run_dir.is_kept or not run_dir.file.record.is_live:
        return
    has_nothing = isinstance(error, GscopeError) and not error.leaves_data
    if not has_captured or has_nothing:
        run_dir.hand_back_if_resumed()
    elif not _is_leaving(error):
        run_dir.is_kept = True
        run_dir.file.enter("failed", str(error) or type(error).__name__)
        error.add_note(
            f"gscope: kept the unanswered data of {run_dir.name}: "
            f"`{run_dir.file.record.resumption}` with the same queries resumes it, "
            f"`gscope stop --run {run_dir.name}` removes it"
        )


def _is_leaving(error: BaseException) -> bool:
    """Return whether the user ended the run, or the reader of its output has gone.

    An output file that cannot be written raises a ``GscopeError`` instead.
    """
    if isinstance(error, OSError) and error.errno == errno.EIO:
        # The terminal was closed a moment before its SIGHUP arrived.
        return True
    return isinstance(error, Interrupted | BrokenPipeError) or not isinstance(error, Exception)
