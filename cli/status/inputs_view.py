"""The inputs of a relay, or of a run that reads other hosts, as a table for people."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from rich.text import Text

from gscope.cli.status.human import count, duration, of_day, size
from gscope.cli.status.tables import StatusTable

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

_STATES = {"up": "green", "failed": "red", "refused": "red", "absent": "red", "ended": ""}


def input_table(inputs: Sequence[Mapping[str, Any]]) -> StatusTable:
    """Return the table of inputs."""
    return StatusTable(
        (
            "INPUT",
            "=STATE",
            "ADDRESS",
            ">LAST HEARTBEAT",
            ">LAG",
            ">CLOCK",
            ">ROWS IN",
            ">IN",
            ">HELD",
            ">LATE",
            ">SHED",
        ),
        [
            (
                each["name"],
                Text(each["state"], _STATES.get(each["state"], "yellow")),
                each["address"],
                of_day(each["last_heartbeat_ns"]),
                duration(each["lag_ns"]),
                _clock(each),
                count(each["received_tuples_total"]),
                f"{size(each['received_bytes'])}B",
                count(each["held_tuples"]),
                _lost(each["late_tuples_total"]),
                _lost(each["shed_tuples_total"]),
            )
            for each in inputs
        ],
    )


def input_lines(inputs: Sequence[Mapping[str, Any]]) -> Iterator[Text]:
    """Yield why inputs are not connected, and which of them others wait for."""
    for each in inputs:
        if each["reason"] and each["state"] not in ("up", "ended"):
            yield Text(f"{each['name']}: {each['reason']}", "red")
    awaited = [each["name"] for each in inputs if each["is_awaited"]]
    if awaited and len(awaited) < len(inputs):
        yield Text(f"rows wait for {', '.join(awaited)}")


def _clock(each: Mapping[str, Any]) -> str:
    """Return how far a clock is ahead, such as ``+1.2ms ±0.1ms``; "" if that is unknown."""
    offset_ns = each.get("clock_offset_ns")
    if offset_ns is None:
        return ""
    return f"{offset_ns / 1e6:+.1f}ms ±{each['clock_error_ns'] / 1e6:.1f}ms"


def _lost(tuples: int) -> Text:
    return Text(count(tuples), "red" if tuples else "")
