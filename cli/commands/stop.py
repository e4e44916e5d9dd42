"""``gscope stop``: stops a run from another terminal."""

from __future__ import annotations

import os
import select
import signal
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

import click

from gscope.cli.commands.option_groups import run_argument, run_name, run_name_option, with_work_dir
from gscope.cli.commands.options import option, quantity
from gscope.cli.config.quantities import parse_duration, show_duration
from gscope.errors import GscopeError
from gscope.queries.os_errors import os_reason

if TYPE_CHECKING:
    from gscope.cli.config.effective import Config
    from gscope.cli.rundir.records import RunRecord

_PAUSE_NS = 1_000_000_000
"""Nanoseconds between two signals of one kind; closer ones could be delivered as one."""

_PATIENCE_NS = 3_000_000_000
"""Nanoseconds after which the user is notified that the run has not ended yet."""

_END = {"stale": "been killed", "failed": "failed", "ended": "ended", "recorded": "been recorded"}


@click.command(short_help="Stop a run.")
@run_argument
@run_name_option("Name of the run. Default: the only active run.")
@option(
    "--now",
    "is_at_once",
    is_flag=True,
    help="Stop immediately; answers that are not delivered yet are lost.",
)
@option(
    "--timeout",
    metavar="DURATION",
    callback=quantity(parse_duration),
    help="Wait at most DURATION for the run to stop. Default: no limit.",
)
@with_work_dir
def stop(
    named: str | None, name: str | None, is_at_once: bool, timeout: int | None, config: Config
) -> None:
    """Stop a run as Ctrl-C does: close all windows and emit the remaining answers.

    Returns when the run has ended, and prints its loss summary. If NAME is a run that was killed,
    or recorded, removes it with its unanswered data, also on the hosts that capture for it;
    `gscope run --run NAME` resumes it instead.

    Exit codes: 0 stopped or removed, 1 there is no run to stop, it failed, or --timeout expired,
    2 usage error, unknown NAME, or several active runs of which none is named.
    """
    from gscope.cli.rundir.records import choose_run

    name = run_name(named, name)
    run = choose_run(config.work_dir, name)
    if run.is_alive:
        _end(run, is_at_once=is_at_once, timeout_ns=timeout)
    elif name is not None:
        _remove(run)
    else:
        message = (
            f"no run is active; {run.name} is {run.standing}: `{run.resumption}` with the same "
            f"queries resumes it, `gscope stop --run {run.name}` removes it"
        )
        raise GscopeError(message)


def _end(run: RunRecord, *, is_at_once: bool, timeout_ns: int | None) -> None:
    """Signal the supervisor to end the run, wait for its end and print the summary.

    Raises:
        GscopeError: the run belongs to another user, has not ended in time, or failed.
    """
    from gscope.cli.rundir.records import read_run

    said = _StoppedRunSummary(run.path)
    try:
        supervisor = os.pidfd_open(run.pid)
    except ProcessLookupError:
        supervisor = -1
    # Another process that got this pid meanwhile would not hold the run's lock.
    now = read_run(run.path)
    if supervisor >= 0 and now is not None and now.is_alive and now.pid == run.pid:
        _signal(supervisor, run, signal.SIGTERM)
        if is_at_once:
            # Two pending signals of one kind may be delivered as one.
            _signal(supervisor, run, signal.SIGINT)
            # Ignored by a run that a script started with &.
            if _ignores_interrupts(run.pid) and not _has_ended(supervisor, _PAUSE_NS):
                _signal(supervisor, run, signal.SIGTERM)
        if not _waited(supervisor, run, timeout_ns):
            waited = show_duration(timeout_ns or 0)
            message = (
                f"{run.name} is still emitting its remaining answers after {waited}, and will stop"
                f" when done; `gscope stop --now --run {run.name}` stops it immediately"
            )
            raise GscopeError(message)
    click.echo(f"{run.name} has ended")
    click.echo(said.read(), nl=False)
    left = read_run(run.path)
    if left is not None and left.state == "failed":
        message = f"{run.name} failed: {left.failure}"
        raise GscopeError(message)


def _waited(supervisor: int, run: RunRecord, timeout_ns: int | None) -> bool:
    """Wait for the end of a run, with a notice if it takes long; return whether it has ended."""
    if timeout_ns is not None and timeout_ns <= _PATIENCE_NS:
        return _has_ended(supervisor, timeout_ns)
    if _has_ended(supervisor, _PATIENCE_NS):
        return True
    click.echo(
        f"gscope: {run.name} is delivering its remaining rows; `gscope stop --now --run {run.name}`"
        " stops it without them",
        err=True,
    )
    return _has_ended(supervisor, None if timeout_ns is None else timeout_ns - _PATIENCE_NS)


def _signal(supervisor: int, run: RunRecord, number: signal.Signals) -> None:
    try:
        signal.pidfd_send_signal(supervisor, number)
    except ProcessLookupError:
        return
    except PermissionError as error:
        message = (
            f"{run.name} (process {run.pid}) belongs to another user;"
            " stop it as that user or as root"
        )
        raise GscopeError(message) from error


def _ignores_interrupts(pid: int) -> bool:
    with suppress(OSError):
        for line in Path(f"/proc/{pid}/status").read_text(encoding="ascii").splitlines():
            if line.startswith("SigIgn:"):
                return bool(int(line.split()[1], 16) >> (signal.SIGINT - 1) & 1)
    return False


def _has_ended(supervisor: int, timeout_ns: int | None) -> bool:
    poll = select.poll()
    poll.register(supervisor, select.POLLIN)
    return bool(poll.poll(None if timeout_ns is None else timeout_ns / 1e6))


def _remove(run: RunRecord) -> None:
    """Remove the folder of a killed run.

    Raises:
        GscopeError: the run has been resumed, or belongs to another user.
    """
    from gscope.cli.rundir import lock as run_lock
    from gscope.cli.rundir.run_dir import remove_run
    from gscope.cli.session.recording import release_hosts

    try:
        lock = run_lock.take(run.path)
    except OSError as error:
        message = f"cannot remove {run.path}: {os_reason(error)}"
        raise GscopeError(message) from error
    if lock is None:
        message = f"{run.name} has just been started again; repeat `gscope stop` to stop it"
        raise GscopeError(message)
    for host in release_hosts(run.path):
        click.echo(
            f"gscope: the agent of host {host} does not answer, and keeps its rows", err=True
        )
    remove_run(run.path)
    os.close(lock)
    click.echo(f"{run.name} had {_END[run.standing]}; removed its folder")


class _StoppedRunSummary:
    """The summary of a run, opened so that it can be read after the run's folder is removed."""

    def __init__(self, folder: Path) -> None:
        from gscope.queries.run_folder.layout import SUMMARY_FILE

        self._file: int | None = None
        with suppress(OSError):
            self._file = os.open(folder / SUMMARY_FILE, os.O_RDONLY | os.O_CLOEXEC)

    def read(self) -> str:
        """Return the summary that the run wrote at its end; "" without one."""
        if self._file is None:
            return ""
        with os.fdopen(self._file, encoding="utf-8", errors="replace") as file:
            return file.read()
