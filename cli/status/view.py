"""The status of a run as tables for people."""

from __future__ import annotations

import shlex
from typing import TYPE_CHECKING, Any

from rich.text import Text

from gscope.cli.render.accounting import tuple_equation
from gscope.cli.render.incomplete import incomplete_counts
from gscope.cli.render.partial import partial_lines
from gscope.cli.rundir.records import resumption
from gscope.cli.status.human import NOTHING, count, duration, moment, of_day, share, size
from gscope.cli.status.inputs_view import input_lines, input_table
from gscope.cli.status.outlets_view import alert_table, outlet_table, row_metrics_table
from gscope.cli.status.tables import StatusTable
from gscope.cli.status.trace_view import latest_traces

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from rich.console import RenderableType

    from gscope.cli.status.document import Document

MAX_STALE_NS = 5_000_000_000
"""A process of an active run whose counters are older than this is shown as silent."""

MIN_STILL_NS = 30_000_000_000
"""A step without the end of a task for this long is pointed out: it may hang."""

_RESTARTS_SHOWN = 3
STATES = {"running": "green", "failed": "red", "stale": "red", "stopping": "yellow"}
_LINKSTATES = {"down": "red", "gone": "red"}


def status_view(document: Document) -> Iterator[RenderableType]:
    """Yield the parts of the view from top to bottom."""
    yield from _run_lines(document)
    capture, job = document["capture"], document["job"]
    tables = []
    if capture is not None:
        inputs = capture.get("inputs")
        tables.append(_interfaces(capture) if inputs is None else input_table(inputs))
        if (remote := capture.get("remote")) is not None and remote["consumers"]:
            tables.append(_readers(remote["consumers"], document["now_ns"]))
    if document["queries"]:
        tables.append(_queries(document["queries"], is_live=document["run"]["is_live"]))
    if document.get("outlets"):
        tables.append(outlet_table(document["outlets"]))
    if document.get("alerts"):
        tables.append(alert_table(document["alerts"]))
    if document.get("row_metrics"):
        tables.append(row_metrics_table(document["row_metrics"]))
    if job is not None and job["operators"]:
        tables.append(_operators(job["operators"], document["run"]["interfaces"]))
    if any("hops" in trace for trace in document["traces"]):
        tables.append(latest_traces(document["traces"]))
    for each in tables:
        yield Text()
        yield each
    yield Text()
    yield from _notes(document)


def _run_lines(document: Document) -> Iterator[Text]:
    run, now_ns = document["run"], document["now_ns"]
    line = Text()
    line.append(run["name"], "bold")
    line.append("  ")
    line.append(run["standing"], STATES.get(run["standing"], ""))
    line.append(f" since {moment(run['began_ns'])} UTC ({duration(now_ns - run['began_ns'])})")
    line.append(f", pid {run['pid']}" if run["is_alive"] else f", was pid {run['pid']}")
    yield line
    if run["command"]:
        words = " ".join(shlex.join(run["command"]).split())
        yield Text(f"  gscope {words}", "dim", no_wrap=True, overflow="ellipsis")
    if run["metrics"]:
        yield Text(f"  metrics at {run['metrics']}")
    if run["failure"]:
        yield Text(f"  failed: {run['failure']}", "red")
    if not run["is_alive"]:
        yield Text("  it has ended; these are its last figures", "red")
        if run["is_live"]:
            again = resumption(run["name"], run["command"])
            yield Text(f"  `{again}` with the same queries resumes it,")
            yield Text(f"  `gscope stop --run {run['name']}` discards what it has not answered")
    for name, process in run["processes"].items():
        yield from _process_lines(name, process, document)


def _process_lines(name: str, process: Mapping[str, Any], document: Document) -> Iterator[Text]:
    counters = document[name]
    state = process["state"] if document["run"]["is_alive"] else f"was {process['state']}"
    line = Text(f"  {name:<7} {state}")
    if process["pid"] is not None:
        line.append(f", pid {process['pid']}")
    if counters is not None:
        line.append(f", {size(counters['memory_bytes'])}B")
        if counters.get("java_memory_bytes") is not None:
            line.append(f" and Java {size(counters['java_memory_bytes'])}B")
        if name == "capture":
            line.append(f", {_privileges(counters['privileges'])}")
        silent_ns = document["now_ns"] - counters["written_ns"]
        if (
            document["run"]["is_alive"]
            and silent_ns > MAX_STALE_NS
            and process["state"] == "running"
        ):
            line.append(f", silent for {duration(silent_ns)}", "red")
    yield line
    restarts = process["restarts"]
    for restart in restarts[-_RESTARTS_SHOWN:]:
        reason = " ".join(restart["reason"].split())
        again = f"          restarted {moment(restart['at_ns'])}: {reason}"
        yield Text(again, "yellow", no_wrap=True, overflow="ellipsis")
    if process["restarts_total"] > _RESTARTS_SHOWN:
        yield Text(f"          restarted {process['restarts_total']} times in total", "yellow")


def _privileges(privileges: Mapping[str, Any]) -> str:
    held = privileges["capabilities"]
    parts = [
        f"uid {privileges['uid']}",
        "no capabilities" if not held else f"capabilities {held:#x}",
        *(["no new privileges"] if privileges["no_new_privs"] else []),
        *(privileges["unconfined"] or ["confined"]),
    ]
    return ", ".join(parts)


def _interfaces(capture: Mapping[str, Any]) -> StatusTable:
    return StatusTable(
        (
            "INTERFACE",
            "=STATE",
            ">PACKETS/S",
            ">RECEIVED",
            ">DROPPED",
            ">LATE",
            ">RING",
            ">LAG/SKEW",
            ">IDLE",
        ),
        [
            (
                each["name"],
                Text(each["state"], _LINKSTATES.get(each["state"], "")),
                count(each["packets_per_second"]),
                count(each["received_packets"]),
                _lost(each["dropped_packets"]),
                _lost(each["late_packets"]),
                share(each["ring_occupancy"]),
                f"{duration(each['largest_lag_ns'])}/{duration(each['skew_ns'])}",
                duration(each["idle_ns"]),
            )
            for each in capture["interfaces"]
        ],
    )


def _readers(consumers: Sequence[Mapping[str, Any]], now_ns: int) -> StatusTable:
    """Return the table of readers on other hosts."""
    return StatusTable(
        (
            "READER",
            "=STATE",
            "PEER",
            ">LAST SEEN",
            ">TUPLES BEHIND",
            ">BEHIND",
            ">ROWS OUT",
            ">OUT",
        ),
        [
            (
                each["name"],
                Text(each["state"], "red" if each["state"] == "absent" else ""),
                each["peer"] or NOTHING,
                duration(_since(each["last_contact_ns"], now_ns)),
                count(each["waiting_tuples"]),
                f"{size(each['waiting_bytes'])}B",
                count(each["rows_out_total"]),
                f"{size(each['bytes_out_total'])}B",
            )
            for each in consumers
        ],
    )


def _since(moment_ns: int | None, now_ns: int) -> int | None:
    return None if moment_ns is None else max(0, now_ns - moment_ns)


def _remote_line(remote: Mapping[str, Any]) -> str:
    """Return where the log is served to other hosts, and what was refused there."""
    text = f"serving at {remote['address']}, {'TLS' if remote['is_encrypted'] else 'without TLS'}: "
    number = remote["connections"]
    text += f"{count(number)} connection{'' if number == 1 else 's'}"
    if not remote["consumers"]:
        text += ", no reader is registered"
    refused = [
        f"{count(times)} {reason.replace('_', ' ')}"
        for reason, times in sorted(remote["refused_total"].items())
    ]
    return f"{text}; refused {', '.join(refused)}" if refused else text


def _queries(queries: Sequence[Mapping[str, Any]], *, is_live: bool) -> StatusTable:
    answered = of_day if is_live else moment
    return StatusTable(
        ("QUERY", "=WATERMARK", ">LAG", ">ROWS", ">LATE", "=LAST ANSWER"),
        [
            (
                each["name"],
                _watermark(each),
                duration(each["lag_ns"]),
                count(each["rows_total"]),
                _lost(each["late_tuples_total"]),
                answered(each["last_answer_ns"]),
            )
            for each in queries
        ],
    )


def _lost(tuples: int) -> Text:
    return Text(count(tuples), "red" if tuples else "")


def _watermark(progress: Mapping[str, Any]) -> str:
    if progress["has_ended"]:
        return "ended"
    if progress["watermark_ns"] is not None:
        return moment(progress["watermark_ns"])
    return NOTHING if progress["watermark"] is None else str(progress["watermark"])


def _operators(operators: Sequence[Mapping[str, Any]], interfaces: Sequence[str]) -> StatusTable:
    return StatusTable(
        ("OPERATOR", "=KIND", ">BUFFERED", ">BYTES", ">STATE", "WAITS FOR"),
        [
            (
                each["name"],
                each["kind"],
                count(each["waiting_tuples"]),
                size(each["waiting_bytes"]),
                count(each["state_tuples"]) if each["state_tuples"] else NOTHING,
                _waits_for(each, interfaces),
            )
            for each in operators
        ],
    )


def _waits_for(operator: Mapping[str, Any], interfaces: Sequence[str]) -> str:
    """Return the interfaces whose streams delay an operator."""
    held_by = {stream.rpartition("@")[2]: None for stream in operator["waits_for"]}
    if len(held_by) > 1 and len(held_by) == len(interfaces):
        return "all interfaces"
    return ", ".join(held_by) or NOTHING


def _load_line(capture: Mapping[str, Any]) -> Text:
    """Return the line on a rate that follows the load and has been below 1."""
    rate, least, reason = (capture[n] for n in ("load_rate", "least_load_rate", "load_reason"))
    shed = sum(each["shed_packets"] for each in capture["interfaces"])
    cause = f" because of {_REASONS[reason]}" if reason in _REASONS else ""
    line = f"overload: rate {rate:.3g}{cause}; least rate {least:.3g}, {count(shed)} packets shed"
    return Text(line, "yellow" if rate < 1 else "")


_REASONS = {
    "ring": "a ring that was more than half full",
    "drops": "packets that the kernel dropped",
    "log": "a stream log that was more than half full",
}


def _notes(document: Document) -> Iterator[Text]:
    """Yield lines on the log, heartbeats, steps, and all losses."""
    capture, job = document["capture"], document["job"]
    if capture is not None:
        log = capture["log"]
        waiting = log["waiting_messages"]
        yield Text(
            f"log: {size(log['used_bytes'])}B of {size(log['budget_bytes'])}B, "
            f"{count(waiting)} message{'' if waiting == 1 else 's'} waiting"
        )
        yield Text(tuple_equation(log))
        if thinned := log.get("thinned_tuples_total", 0):
            yield Text(
                f"log: {count(thinned)} tuples removed by their hash when it was nearly full"
            )
        if (rate := capture.get("sample_rate", 1.0)) < 1:
            shed = sum(each["shed_packets"] for each in capture["interfaces"])
            yield Text(f"sampling: fixed rate {rate:g}, {count(shed)} packets shed")
        if capture.get("least_load_rate", 1.0) < 1:
            yield _load_line(capture)
        elif capture.get("shedding_mode") == "auto":
            yield Text("sampling: auto, rate 1; no overload so far")
        yield from input_lines(capture.get("inputs", ()))
        if (remote := capture.get("remote")) is not None:
            yield Text(_remote_line(remote))
    for each in [] if job is None else job["operators"]:
        if each["shed_tuples_total"]:
            yield Text(f"{each['name']} shed {count(each['shed_tuples_total'])} tuples", "red")
        if trimmed := each["trimmed_tuples_total"]:
            yield Text(f"{each['name']} left out {count(trimmed)} tuples as the rate fell")
        for line in partial_lines({each["name"]: each.get("partial", ())}):
            yield Text(line, "red")
        if incomplete := each["incomplete_epochs_total"]:
            yield Text(f"{each['name']}: {incomplete_counts(incomplete)}", "red")
    for each in document["answered"]:
        counts = incomplete_counts(each["incomplete_epochs_total"])
        yield Text(f"{each['name']}, answered by other hosts: {counts}", "red")
    if job is not None:
        yield Text(_heartbeat_line(job["heartbeats"]))
        yield Text(_step_line(job, document["now_ns"], is_alive=document["run"]["is_alive"]))
    for each in document["loss"]["interfaces"]:
        if text := _loss(each):
            yield Text(f"{each['name']}: {text}")
    if capture is not None:
        for each in capture["interfaces"]:
            for sentence in each["damage"]:
                yield Text(f"{each['name']}: {sentence}", "red")


def _heartbeat_line(heartbeats: Mapping[str, Any]) -> str:
    newest = heartbeats["newest"]
    text = f"heartbeats: {count(heartbeats['heartbeats_total'])}"
    if asked := heartbeats.get("asked_total"):
        text += f", requested {count(asked)} times"
    if newest is not None:
        took = duration(newest["ended_ns"] - newest["began_ns"])
        text += f", the newest ({newest['id']}) reached the operators after {took}"
    return text


def _step_line(job: Mapping[str, Any], now_ns: int, *, is_alive: bool) -> str:
    steps = job["steps"]
    text = f"steps: {count(steps['evaluated_total'])}"
    if steps["evaluated_total"]:
        text += (
            f", the last took {steps['last_seconds']:.2f} s for {count(steps['last_tuples'])}"
            f" tuples, on average {steps['average_seconds']:.2f} s"
        )
    if job["state"] != "waiting" and is_alive:
        text += f"; {job['state']} has been running for {duration(now_ns - job['state_since_ns'])}"
        still_ns = int((job.get("current_step") or {}).get("still_seconds", 0) * 1e9)
        if still_ns >= MIN_STILL_NS:
            text += f", and none of its tasks has finished for {duration(still_ns)}"
    return text


def _loss(sums: Mapping[str, Any]) -> str:
    """Return ``1,000 received = 990 accepted + 10 dropped``; "" if all packets were accepted."""
    terms = [
        f"{count(value)} {name.removesuffix('_packets')}"
        for name, value in sums.items()
        if name.endswith("_packets")
        and name not in ("received_packets", "accepted_packets")
        and value
    ]
    if not terms:
        return ""
    accepted = count(sums["accepted_packets"])
    return (
        f"{count(sums['received_packets'])} received = "
        f"{' + '.join([f'{accepted} accepted', *terms])}"
    )
