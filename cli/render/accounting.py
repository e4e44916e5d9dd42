"""The account of tuples that reached the log, which adds up at every moment.

partial tuples = released + waiting + shed; these and the open ones are all that LFTAs emitted.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from gscope.queries.streams.process_events import CaptureFinished

UNDECODED = ("malformed", "unsupported")
"""Terms that are counted by reason."""

PACKET_TERMS = ("accepted", "dropped", "filtered", "shed", "late", "unread")
TERMS = ("released", "waiting", "shed")
_NAMES = {
    "released": "released_tuples_total",
    "waiting": "waiting_tuples",
    "shed": "shed_tuples_total",
}
_STREAMS_SHOWN = 8


def tuple_equation(log: Mapping[str, int]) -> str:
    """Return ``1,000 partial tuples = 990 released + 10 shed``; of 0 terms only the first stays."""
    counts = {term: log.get(name, 0) for term, name in _NAMES.items()}
    parts = [f"{counts[t]:,} {t}" for t in TERMS if counts[t] or t == TERMS[0]]
    total = log.get("tuples_total", 0)
    return f"{total:,} partial tuple{'' if total == 1 else 's'} = {' + '.join(parts)}"


def final(log: Mapping[str, int]) -> dict[str, int]:
    """Return the counters once all tuples are read: after the end of the input none are shed."""
    released = log.get("released_tuples_total", 0) + log.get("waiting_tuples", 0)
    return {**log, "released_tuples_total": released, "waiting_tuples": 0}


def standing_lines(statistics: Mapping[str, Any]) -> Iterator[str]:
    """Return where every packet and tuple is now, from the capture daemon's statistics."""
    interfaces = statistics.get("interfaces", ())
    totals = {
        term: sum(int(each.get(f"{term}_packets") or 0) for each in interfaces)
        for term in PACKET_TERMS
    }
    undecoded = {
        term: sum(sum(each.get(f"{term}_packets", {}).values()) for each in interfaces)
        for term in UNDECODED
    }
    parts = [f"{count:,} {term}" for term, count in totals.items() if count or term == "accepted"]
    parts[1:1] = [f"{count:,} {term}" for term, count in undecoded.items() if count]
    received = sum(int(each.get("received_packets") or 0) for each in interfaces)
    yield f"  {received:,} packets received = {' + '.join(parts)}"
    log = statistics.get("log", {})
    yield f"  {tuple_equation(log)}; {log.get('open_tuples', 0):,} not logged yet"


def shed_lines(capture: CaptureFinished, carried: Mapping[str, int]) -> Iterator[str]:
    """Return what was dropped for lack of space; nothing if nothing was.

    Args:
        capture: the summary of the capture.
        carried: the number of rows that the job could not keep, by the query that reads them.
    """
    log = capture.log
    if log.get("shed_tuples_total", 0):
        yield f"  {tuple_equation(final(log))}"
        yield from _shed_streams(capture)
        thinned = log.get("thinned_tuples_total", 0)
        if thinned:
            yield (
                f"  {thinned:,} tuples of groups above the rate of their epoch were removed: the"
                " log was nearly full; other groups are whole"
            )
        if log["shed_tuples_total"] > thinned:
            yield (
                "  shed tuples are missing from answers: the log was full;"
                " raise its limit with --log"
            )
    for query, count in carried.items():
        rows = "1 row" if count == 1 else f"{count:,} rows"
        yield f"  {rows} waiting for {query} shed; raise the limit with --job-disk"
    if log.get("full_disk_total", 0):
        yield "  the disk was full"


def _shed_streams(capture: CaptureFinished) -> Iterator[str]:
    streams = {
        name: counters for name, counters in capture.logged.items() if counters["shed_tuples_total"]
    }
    for name, counters in list(streams.items())[:_STREAMS_SHOWN]:
        packets = counters["shed_packets_total"]
        stood_for = f" ({packets:,} packets)" if packets else ""
        yield (
            f"    {name}: {counters['shed_tuples_total']:,} of "
            f"{counters['tuples_total']:,}{stood_for}"
        )
    if len(streams) > _STREAMS_SHOWN:
        yield f"    … and {len(streams) - _STREAMS_SHOWN} more streams"
