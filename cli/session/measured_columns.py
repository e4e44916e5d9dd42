"""The results of a run whose rows are metrics."""

from __future__ import annotations

from typing import TYPE_CHECKING

from gscope.cli.config.row_metrics import is_requested
from gscope.cli.outlets.gauge_columns import gauge_columns
from gscope.errors import UsageError

if TYPE_CHECKING:
    from gscope.cli.outlets.gauge_columns import GaugeColumns
    from gscope.cli.session.session import Session
    from gscope.queries.plan.program import Program


def measured_columns(session: Session, program: Program) -> tuple[GaugeColumns, ...]:
    """Return what the results of ``--metrics-of`` become; () if none are shown.

    What ``gscope.yaml`` names is left out if the run does not have it, or is not live.

    Raises:
        UsageError: a result cannot be shown, or the run is not live.
    """
    config = session.config
    names = config.metrics_of
    if session.show_rows is None or not names:
        return ()
    if not is_requested(config):
        known = dict(program.results) if session.is_live else {}
        names = tuple(name for name in names if name in known)
    if names and not session.is_live:
        message = "--metrics-of shows the epochs of live packets; captures are over at once"
        raise UsageError(message)
    return gauge_columns(program, names)
