"""Answers that lack a host, as sentences."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from gscope.queries.int64 import MAX_TIME_NS, MIN_TIME_NS

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from gscope.queries.streams.process_events import CaptureFinished

MOST_SHOWN = 5
"""The most ranges of epochs of one query that are shown."""


def partial_lines(partial: Mapping[str, Iterable[Mapping[str, Any]]]) -> Iterator[str]:
    """Yield which epochs of which query were answered without a host.

    Args:
        partial: see ``PartialAnswer``, by query.
    """
    for query, found in partial.items():
        ranges = tuple(found)
        for each in ranges[:MOST_SHOWN]:
            yield f"{query} lacks {each['host']} {_range(each)}"
        if len(ranges) > MOST_SHOWN:
            yield f"{query} lacks hosts in {len(ranges) - MOST_SHOWN} further ranges of epochs"


def gap_lines(capture: CaptureFinished) -> Iterator[str]:
    """Yield what the streams lack that are answers themselves, in the column of each stream.

    Args:
        capture: the summary of the capture, with its inputs.
    """
    for each in capture.inputs:
        gaps = each.get("gaps", ())
        for gap in gaps[:MOST_SHOWN]:
            first = "…" if gap["least"] <= MIN_TIME_NS else gap["least"]
            last = "…" if gap["end"] >= MAX_TIME_NS else gap["end"] - 1
            column = gap["column"].removeprefix("-")
            yield f"{gap['lfta']} lacks {each['name']}, {column} from {first} to {last}"
        if (more := len(gaps) - MOST_SHOWN) > 0:
            yield f"input {each['name']} is missing in {more} further ranges"


def _range(each: Mapping[str, Any]) -> str:
    """Return ``from 22:00:00 to 22:03:00 (epochs 7 to 9)``."""
    first, last = each["first_epoch"], each["last_epoch"]
    begin = "from the beginning" if each["from_ns"] is None else f"from {_time(each['from_ns'])}"
    end = "on" if each["to_ns"] is None else f"to {_time(each['to_ns'])}"
    if first is None and last is None:
        return f"{begin} {end}"
    epochs = f"epochs {'…' if first is None else first} to {'…' if last is None else last}"
    return f"{begin} {end} ({epochs})"


def _time(time_ns: int) -> str:
    return f"{datetime.fromtimestamp(time_ns // 1_000_000_000, UTC):%Y-%m-%d %H:%M:%S}"
