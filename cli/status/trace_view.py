"""Traces of heartbeats as tables: one line for each of the latest, or one trace hop by hop."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from rich.text import Text

from gscope.cli.status.human import count, duration, moment, size
from gscope.cli.status.tables import StatusTable
from gscope.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from rich.console import RenderableType

STAGES = ("lfta", "log", "flight", "inbox", "operator", "step", "commit")
"""Kinds of hops, in the order in which a heartbeat passes them."""

SLOWEST = "*"
_SHOWN = 5


def latest_traces(traces: Sequence[Mapping[str, Any]]) -> StatusTable:
    """Return the delay of each stage for the latest heartbeats that released something.

    The slowest stage of each heartbeat is marked.
    """
    rows: list[list[str | Text]] = []
    for trace in [each for each in traces if "hops" in each][-_SHOWN:]:
        delays = stage_delays(trace["hops"])
        slowest = max(delays, key=lambda stage: delays[stage])
        rows.append(
            [
                str(trace["id"]),
                *(_delay(delays.get(stage), is_slowest=stage == slowest) for stage in STAGES),
                duration(trace["ended_ns"] - trace["began_ns"]),
                count(trace["rows"]),
            ]
        )
    headings = ("HEARTBEAT", *STAGES, "TOTAL", "ROWS")
    return StatusTable([f">{name.upper()}" for name in headings], rows)


def stage_delays(hops: Sequence[Mapping[str, Any]]) -> dict[str, int]:
    """Return the time from the first arrival to the last end for each kind of hop, in ns."""
    spans: dict[str, tuple[int, int]] = {}
    for hop in hops:
        begin = hop["arrived_ns"]
        end = begin + hop["queued_ns"] + hop["worked_ns"]
        first, last = spans.get(hop["kind"], (begin, end))
        spans[hop["kind"]] = min(first, begin), max(last, end)
    return {kind: last - first for kind, (first, last) in spans.items()}


def one_trace(
    traces: Sequence[Mapping[str, Any]], newest: Mapping[str, Any] | None, wanted: str
) -> Iterator[RenderableType]:
    """Yield the latest trace of a heartbeat, hop by hop.

    Args:
        traces: the traces that are kept, oldest first.
        newest: the trace of the newest heartbeat so far; None if there was none.
        wanted: the number of the heartbeat.

    Raises:
        UsageError: the number is invalid, or no trace of the heartbeat is kept.
    """
    if not wanted.isascii() or not wanted.isdigit():
        message = (
            f"invalid heartbeat {wanted!r}: expected a number from the first column of `gscope "
            "status`"
        )
        raise UsageError(message)
    identity = int(wanted)
    for trace in reversed(traces):
        if trace.get("id") == identity:
            yield from _trace(trace)
            return
        if "idle" in trace and trace["first"] <= identity <= trace["last"]:
            yield _idle(identity, trace)
            return
    if newest is not None and newest["id"] == identity:
        yield from _trace(newest)
    elif newest is not None and _last(traces) < identity < newest["id"]:
        yield Text(f"heartbeat {identity} has released nothing so far")
    else:
        raise UsageError(_unknown(identity, traces))


def _last(traces: Sequence[Mapping[str, Any]]) -> int:
    """Return the number of the last heartbeat in the traces; 0 for none."""
    return max((trace["last" if "idle" in trace else "id"] for trace in traces), default=0)


def _unknown(identity: int, traces: Sequence[Mapping[str, Any]]) -> str:
    kept = [trace["id"] for trace in traces if "id" in trace]
    if not kept:
        return f"no trace of heartbeat {identity}: no heartbeat has released rows yet"
    return (
        f"no trace of heartbeat {identity}; traces {min(kept)} to {max(kept)} are kept, the "
        f"latest is {kept[-1]}"
    )


def _trace(trace: Mapping[str, Any]) -> Iterator[RenderableType]:
    took = duration(trace["ended_ns"] - trace["began_ns"])
    made = "has released nothing so far"
    if "step" in trace:
        made = f"step {trace['step']}, {count(trace['rows'])} rows"
    yield Text(f"heartbeat {trace['id']} of {moment(trace['clock_ns'])}: {made}, {took}")
    slowest = max(trace["hops"], key=lambda hop: hop["queued_ns"] + hop["worked_ns"])
    yield StatusTable(
        ("HOP", ">AFTER", ">QUEUED", ">WORKED", ">IN", ">OUT", ">WAITING", ">BYTES"),
        [
            (
                _marked(hop["node"]) if hop is slowest else hop["node"],
                duration(hop["arrived_ns"] - trace["began_ns"]),
                duration(hop["queued_ns"]),
                duration(hop["worked_ns"]),
                count(_first(hop, "tuples_in", "tuples_in_total")),
                count(_first(hop, "tuples_out", "tuples_out_total")),
                count(_first(hop, "waiting_tuples", "live_groups")),
                size(_first(hop, "waiting_bytes", "used_bytes")),
            )
            for hop in trace["hops"]
        ],
    )
    yield Text(
        f"{SLOWEST} slowest hop; LFTAs count tuples since the start of the run, and WAITING groups"
    )


def _idle(identity: int, trace: Mapping[str, Any]) -> Text:
    return Text(
        f"heartbeat {identity} released nothing, like all {trace['idle']} from "
        f"{trace['first']} to {trace['last']}; the slowest to reach the operators was "
        f"{trace['slowest']}, after {duration(trace['slowest_ns'])}"
    )


def _delay(delay_ns: int | None, *, is_slowest: bool) -> Text:
    return _marked(duration(delay_ns)) if is_slowest else Text(duration(delay_ns))


def _marked(text: str) -> Text:
    """Return a text marked as the slowest, by a colour and, for terminals without, a character."""
    return Text(f"{SLOWEST}{text}", "bold red")


def _first(hop: Mapping[str, Any], *names: str) -> int | None:
    return next((hop[name] for name in names if hop.get(name) is not None), None)
