"""The outlets of a run: destinations that get its rows beside the run's own sink."""

from __future__ import annotations

from typing import TYPE_CHECKING

from gscope.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Callable

    from gscope.cli.config.effective import Config
    from gscope.cli.delivery.checkpoint import DeliveryCheckpoint
    from gscope.cli.delivery.delivery import Sink
    from gscope.cli.outlets.alerts import Alerts
    from gscope.cli.outlets.outlets import OutletSink
    from gscope.cli.rundir.run_dir import RunDir
    from gscope.queries.plan.program import Program


def outlet_sink(
    config: Config,
    sink: Sink,
    delivered: DeliveryCheckpoint | None,
    run_dir: RunDir,
    report: Callable[[str], None],
    alerts: Alerts | None = None,
) -> OutletSink:
    """Return a sink that sends rows to the destinations and commands of ``config``, too.

    Args:
        config: the destinations and commands, and the disk space for rows that wait.
        sink: the run's own sink.
        delivered: the checkpoint of a live run; None for a replay.
        run_dir: the run's folder.
        report: shows a sentence to the user.
        alerts: what turns rows into events, which are sent instead; None for nothing.

    Raises:
        GscopeError: rows cannot be kept.
        UsageError: certificates of a destination cannot be read, or a command does not exist.
    """
    from gscope.cli.outlets.outlets import OpenedOutlet, OutletSink, opened

    outlets = [OpenedOutlet(each.name, each.url, opened(each)) for each in config.destinations]
    if config.row_commands:
        from gscope.capture.process.confinement.identity import chosen_identity
        from gscope.cli.outlets.command import RowCommand

        identity = chosen_identity(config.user)
        for text in config.row_commands:
            command = RowCommand(text, identity)
            outlets.append(OpenedOutlet(command.name, f"command {text}", command))

    return OutletSink(
        sink,
        outlets,
        delivered.position.sink if delivered is not None else {},
        run_dir.path,
        run_dir.name,
        budget=config.spool_bytes,
        is_live=delivered is not None,
        report=report,
        alerts=alerts,
    )


def alerts_of(config: Config, program: Program, report: Callable[[str], None]) -> Alerts | None:
    """Return the alerts of ``config``; None if there are none.

    A configuration file may serve many runs, so those of its alerts whose query does not run are
    left out.

    Raises:
        UsageError: an alert does not fit the results of ``program``, or nothing receives events.
    """
    is_given = config.origins["output.alerts"] in ("--alert", "$GSCOPE_ALERT")
    results = {query for query, _ in program.results}
    rules = [rule for rule in config.alerts if is_given or rule.query in results]
    if not rules:
        return None
    if not config.destinations and not config.row_commands:
        message = (
            f"alert {rules[0].name} sends events, and nothing receives them: add --to URL or"
            " --on-row COMMAND, or leave the alert out"
        )
        raise UsageError(message)
    from gscope.cli.outlets.alert_columns import alert_columns
    from gscope.cli.outlets.alerts import Alerts

    judged = [(rule, alert_columns(rule, program)) for rule in rules]
    return Alerts(judged, config.alert_keys, report)
