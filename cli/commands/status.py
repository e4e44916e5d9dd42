"""``gscope status``: shows the state of a run."""

from __future__ import annotations

import json
import sys
import time
from typing import TYPE_CHECKING

import click

from gscope.cli.commands.option_groups import run_argument, run_name, run_name_option, with_work_dir
from gscope.cli.commands.options import option

if TYPE_CHECKING:
    from gscope.cli.config.effective import Config


@click.command(short_help="List the runs, or show the state of one.")
@run_argument
@run_name_option("Name of the run, like NAME.")
@option("--watch", "is_watch", is_flag=True, help="Refresh until q, Ctrl-C or the end of the run.")
@option("--trace", "trace", metavar="ID", help="Show the path of heartbeat ID, hop by hop.")
@option("--json", "is_json", is_flag=True, help="Print JSON (see docs/status.schema.json).")
@option(
    "--prometheus",
    "is_prometheus",
    is_flag=True,
    help="Print metrics in the text format of Prometheus.",
)
@with_work_dir
def status(
    named: str | None,
    name: str | None,
    is_watch: bool,
    trace: str | None,
    is_json: bool,
    is_prometheus: bool,
    config: Config,
) -> int:
    """Show the state of a run: interfaces, queries, operators and their inputs, heartbeat traces.

    If there are several runs and none is named, lists them, with what is wrong with each. Reads the
    files that runs write to their folders, so it also shows a run that was killed.

    Exit codes: 0 success, also for a run that was killed or failed, 1 the work dir has no run,
    2 usage error, or unknown NAME. For monitoring, read `run.standing` of --json.
    """
    from gscope.cli.rundir.records import choose_run, find_runs
    from gscope.cli.status.document import status_document, traces
    from gscope.cli.status.printing import print_view
    from gscope.errors import GscopeError, UsageError

    if sum((is_watch, trace is not None, is_json, is_prometheus)) > 1:
        message = "--watch, --trace, --json and --prometheus are mutually exclusive"
        raise UsageError(message)
    if is_watch and not sys.stdout.isatty():
        message = "--watch requires a terminal; use --json or --prometheus instead"
        raise UsageError(message)
    name = run_name(named, name)
    runs = find_runs(config.work_dir)
    if not runs and name is None:
        message = (
            f"no run is active (looked in {config.work_dir}); `gscope run top_talkers -i DEVICE`"
            " starts one"
        )
        raise GscopeError(message)
    has_form = is_watch or trace is not None or is_json or is_prometheus
    if len(runs) > 1 and name is None and not has_form:
        from gscope.cli.status.run_list import run_list

        now_ns = time.time_ns()
        print_view(run_list([status_document(each, now_ns) for each in runs]))
        return 0
    run = choose_run(config.work_dir, name)
    if is_watch:
        from gscope.cli.status.view import status_view
        from gscope.cli.status.watch import watch

        return watch(run, lambda run, now_ns: status_view(status_document(run, now_ns)))
    document = status_document(run, time.time_ns())
    if trace is not None:
        from gscope.cli.status.trace_view import one_trace

        newest = (document["job"] or {"heartbeats": {"newest": None}})["heartbeats"]["newest"]
        print_view(one_trace(traces(run.path), newest, trace))
    elif is_json:
        click.echo(json.dumps(document, indent=1, ensure_ascii=False))
    elif is_prometheus:
        from gscope.cli.status.prometheus import exposition

        click.echo(exposition(document), nl=False)
    else:
        from gscope.cli.status.view import status_view

        print_view(status_view(document))
    return 0
