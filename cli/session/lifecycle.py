"""The life of a run: its folder, its record and log, and what is left of it at the end.

======================================== =======================================================================
a run ends because                       its folder
======================================== =======================================================================
everything is answered                   is removed
the user left at once                    is removed: that is what was asked for
a live run failed after it captured      stays, in the state ``failed``: it can be resumed
a live run was resumed in vain           stays as it was
it is a replay, or never captured        is removed
the supervisor was killed                stays: a live run is stale and can be resumed, others are swept away
======================================== =======================================================================
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
from gscope.errors import UsageError
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
    """Follow a run from here to its end, and leave of its folder what is to be left.

    Args:
        run_dir: of the run; closed by the caller.
        log_file: another place for the log.
        listeners: told of every change of the run's record.

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
        _on_failure(run_dir, error, has_captured=capturing.has_been)
        log.note("run", f"over: {str(error) or type(error).__name__}")
        raise
    else:
        run_dir.file.enter("ended")
    finally:
        log.close()


def ensure_same(run_dir: RunDir, program: Program) -> None:
    """Refuse to resume a run with other queries, or one that another version began.

    Its log would not answer other queries, and another version may read it differently. Either way the run stays as
    it is: whether its unanswered packets are given up is for the user to say.

    Raises:
        UsageError: the run cannot be resumed with ``program``; the choices are named.
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
        else:
            message = (
                f"cannot resume {name}: it was started with other queries or other interfaces; resume "
                f"it with those, {choices}"
            )
    run_dir.hand_back_if_resumed()
    raise UsageError(message)


def namesake(run_dir: RunDir, name: str) -> str | None:
    """A sentence on the run that has the usual name of this one but was killed; None if there is none."""
    other = read_run(run_dir.path.with_name(FOLDER_PREFIX + name))
    if run_dir.name == name or other is None or other.is_alive:
        return None
    return (
        f"an earlier run {name} is {other.standing}: `gscope run --run {name}` with the same queries"
        f" resumes it, `gscope stop --run {name}` removes it; this run is {run_dir.name}"
    )


class _Capturing:
    """Whether the run has ever captured."""

    def __init__(self) -> None:
        self.has_been = False

    def on_change(self, _before: RunRecord, after: RunRecord) -> None:
        self.has_been = self.has_been or after.state == "running"


def _on_failure(run_dir: RunDir, error: BaseException, *, has_captured: bool) -> None:
    """Decide what is left of a run that did not end well."""
    if run_dir.is_kept or not run_dir.file.record.is_live:
        return
    if not has_captured:
        run_dir.hand_back_if_resumed()
    elif not _is_leaving(error):
        run_dir.is_kept = True
        run_dir.file.enter("failed", str(error) or type(error).__name__)
        error.add_note(
            f"gscope: kept the unanswered data of {run_dir.name}: `gscope run --run "
            f"{run_dir.name}` with the same queries resumes it, `gscope stop --run "
            f"{run_dir.name}` removes it"
        )


def _is_leaving(error: BaseException) -> bool:
    """Whether the user went away, in one way or another; what cannot be written to files is a ``GscopeError``."""
    if isinstance(error, OSError) and error.errno == errno.EIO:
        # A terminal that was closed a moment before its SIGHUP came.
        return True
    return isinstance(error, Interrupted | BrokenPipeError) or not isinstance(error, Exception)
