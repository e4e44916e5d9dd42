"""The destinations of a run as a table for people."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from rich.text import Text

from gscope.cli.status.human import count
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
