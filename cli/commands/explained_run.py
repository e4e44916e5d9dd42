"""``gscope explain --run``: the plan of a run with the figures of each node."""

from __future__ import annotations

import json
import sys
import time
from typing import TYPE_CHECKING

import click
from rich.text import Text

from gscope.cli.rundir.records import choose_counted
from gscope.cli.status.plan_figures import plan_figures
from gscope.cli.status.plan_view import plan_view
from gscope.cli.status.printing import print_view
from gscope.cli.status.watch import watch
from gscope.errors import GscopeError, UsageError

if TYPE_CHECKING:
    from collections.abc import Iterable

    from rich.console import RenderableType

    from gscope.cli.config.effective import Config
    from gscope.cli.rundir.records import RunRecord


def explain_run(config: Config, name: str, *, is_watch: bool, is_json: bool) -> int:
    """Show the plan of the run called ``name``; return the exit code.

    Raises:
        GscopeError: there is no run, or it cannot be shown.
        UsageError: no run has that name, or ``--watch`` is not possible.
    """
    if is_watch and is_json:
        message = "--watch and --json are mutually exclusive"
        raise UsageError(message)
    if is_watch and not sys.stdout.isatty():
        message = "--watch requires a terminal; use --json instead"
        raise UsageError(message)
    run = choose_counted(config.work_dir, name)
    if is_watch and run.is_alive:
        return watch(run, _view)
    figures = plan_figures(run, time.time_ns())
    if is_json:
        click.echo(json.dumps(figures, indent=1, ensure_ascii=False))
    else:
        print_view(plan_view(figures))
    return 0


def _view(run: RunRecord, now_ns: int) -> Iterable[RenderableType]:
    """Return the view of a run; why there is none while it compiles its queries or ends."""
    try:
        return tuple(plan_view(plan_figures(run, now_ns)))
    except GscopeError as error:
        return (Text(str(error)),)
