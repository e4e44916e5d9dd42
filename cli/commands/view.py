"""``gscope view``: the answers of a run in the background, on the whole terminal."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from gscope.cli.commands.option_groups import run_argument, run_name, run_name_option, with_work_dir
from gscope.cli.commands.options import option
from gscope.cli.config.time_style import TimeStyle

if TYPE_CHECKING:
    from gscope.cli.config.effective import Config


@click.command(short_help="Show the answers of a run in the background as they come.")
@run_argument
@run_name_option("Name of the run, like NAME.")
@option(
    "--time",
    "time_style",
    type=click.Choice([each.value for each in TimeStyle]),
    default=TimeStyle.UTC.value,
    help="How to show times, as of `gscope run`. Default: utc.",
)
@with_work_dir
def view(named: str | None, name: str | None, time_style: str, config: Config) -> int:
    """Show the answers of a run that writes them to files (-w), as `-o view` shows those of its
    own.

    Rows, counters and losses are read from the files of the run, which is not affected. Parquet and
    Arrow files appear within a minute. The keys are those of `-o view`, except that q leaves the
    view and not the run; `?` shows them.

    \b
      gscope run top_talkers -i eth0 -w answers -d
      gscope view

    Exit codes: 0 success, 1 the work dir has no run, 2 usage error, or unknown NAME.
    """  # noqa: D205, D301  # \b is click's mark for text that is not to be wrapped
    from gscope.cli.rundir.records import choose_run
    from gscope.cli.view.followed_run import view_run
    from gscope.cli.view.terminal.screen import ensure_terminal

    ensure_terminal()
    run = choose_run(config.work_dir, run_name(named, name))
    view_run(run, TimeStyle(time_style))
    return 0
