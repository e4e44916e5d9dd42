"""Lines on rows that were sent to destinations of ``--to``."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

UNSENT = ("waiting_rows", "dropped_rows_total", "refused_rows_total")
"""What a destination does not have at the end of a run."""


def sent_lines(outlets: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    """Yield a line for each destination, and one for each way in which it lost rows."""
    for each in outlets:
        times = each["outages_total"]
        outages = f"; it was out {times:,} {'time' if times == 1 else 'times'}" if times else ""
        yield f"  {_rows(each['sent_rows_total'])} sent to {each['name']}{outages}"
        if dropped := each["dropped_rows_total"]:
            yield f"  {_rows(dropped)} not sent: the spool was full; --spool keeps more"
        if refused := each["refused_rows_total"]:
            yield f"  {_rows(refused)} failed: {each['name']} does not take them"
        if waiting := each["waiting_rows"]:
            reason = f": {each['failure']}" if each["failure"] else ""
            yield f"  {_rows(waiting)} not sent{reason}"


def _rows(count: int) -> str:
    return f"{count:,} {'row' if count == 1 else 'rows'}"
