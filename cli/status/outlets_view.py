"""The destinations and alerts of a run, and the metrics of its rows, as tables for people."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from rich.text import Text

from gscope.cli.status.human import NOTHING, count, moment
from gscope.cli.status.tables import StatusTable

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence


def outlet_table(outlets: Sequence[Mapping[str, Any]]) -> StatusTable:
    """Return the table of destinations."""
    return StatusTable(
        ("TO", "STATE", ">SENT", ">WAITING", ">DROPPED", ">REFUSED", ">OUTAGES"),
        [
            (
                each["name"],
                Text(each["failure"], "red") if each["failure"] else Text("up", "green"),
                count(each["sent_rows_total"]),
                count(each["waiting_rows"]),
                count(each["dropped_rows_total"]),
                count(each["refused_rows_total"]),
                count(each["outages_total"]),
            )
            for each in outlets
        ],
    )


def alert_table(alerts: Sequence[Mapping[str, Any]]) -> StatusTable:
    """Return the table of alerts."""
    return StatusTable(
        ("ALERT", "QUERY", ">RAISED", ">KEYS", ">IGNORED", ">LATE"),
        [
            (
                each["name"],
                each["query"],
                count(each["raised_keys"]),
                count(each["keys"]),
                count(each["ignored_rows_total"]),
                count(each["late_rows_total"]),
            )
            for each in alerts
        ],
    )


def row_metrics_table(results: Sequence[Mapping[str, Any]]) -> StatusTable:
    """Return the table of the results whose rows are metrics."""
    return StatusTable(
        ("METRICS OF", "EPOCH", ">SERIES", ">LEFT OUT"),
        [
            (
                each["name"],
                NOTHING if each["epoch_ns"] is None else moment(each["epoch_ns"]),
                count(each["series"]),
                count(sum(each["left_out_rows_total"].values())),
            )
            for each in results
        ],
    )
