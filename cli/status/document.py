"""The status of a run as one JSON document: the counters of its processes, and derived values.

Everything is read from the run's folder and nothing is requested from the processes, so that it
works for a busy run and after a crash. ``docs/status.schema.json`` is the schema,
``docs/operations.md`` describes the counters.
"""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from gscope.engine.monitoring.trace_file import read_traces
from gscope.errors import GscopeError
from gscope.queries.run_folder.layout import (
    ANSWERED_FILE,
    CAPTURE_STATISTICS_FILE,
    JOB_FOLDER,
    JOB_STATISTICS_FILE,
    OUTLETS_STATISTICS_FILE,
    ROW_METRICS_FILE,
    TRACES_FOLDER,
)
from gscope.queries.run_folder.snapshot import read_snapshot

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from gscope.cli.rundir.records import RunRecord

SCHEMA = 1
LATEST_TRACES = 8

_LOSSES = ("dropped_packets", "filtered_packets", "shed_packets", "late_packets", "unread_packets")

_CAPTURE_FIELDS = {"written_ns", "memory_bytes", "privileges", "interfaces", "streams", "log"}
_JOB_FIELDS = {"written_ns", "memory_bytes", "state", "steps", "operators", "queries", "heartbeats"}
_ANSWERED_FIELDS = {"written_ns", "results"}
_OUTLETS_FIELDS = {"written_ns", "outlets", "spool_bytes"}
_ROW_METRICS_FIELDS = {"written_ns", "results"}
_TRACE_FIELDS = {"id", "clock_ns", "began_ns", "ended_ns", "step", "rows", "hops"}
_HOP_FIELDS = {"kind", "node", "arrived_ns", "queued_ns", "worked_ns"}
_IDLE_FIELDS = {"idle", "first", "last", "slowest", "slowest_ns"}

Document = dict[str, Any]


def status_document(run: RunRecord, now_ns: int) -> Document:
    """Return the status of ``run`` at ``now_ns``; a process without counters yet is null.

    Raises:
        GscopeError: the files of the processes cannot be interpreted.
    """
    try:
        return _document(run, now_ns)
    except (KeyError, TypeError, AttributeError, ValueError) as error:
        message = f"cannot interpret the status files of run {run.name} in {run.path}: {error!r}"
        raise GscopeError(message) from error


def _document(run: RunRecord, now_ns: int) -> Document:
    capture = _counters(run.path / CAPTURE_STATISTICS_FILE, _CAPTURE_FIELDS)
    job = _counters(run.path / JOB_STATISTICS_FILE, _JOB_FIELDS)
    answered = _counters(run.path / ANSWERED_FILE, _ANSWERED_FIELDS)
    sent = _counters(run.path / OUTLETS_STATISTICS_FILE, _OUTLETS_FIELDS)
    shown = _counters(run.path / ROW_METRICS_FILE, _ROW_METRICS_FIELDS)
    at_ns = clock_ns(run, capture, job, now_ns)
    return {
        "schema": SCHEMA,
        "now_ns": now_ns,
        "run": _run(run),
        "capture": capture,
        "job": job,
        "queries": [_query(name, capture, job, at_ns) for name in _queries(run, job)],
        "answered": answered["results"] if answered is not None else [],
        "outlets": sent["outlets"] if sent is not None else [],
        "alerts": sent.get("alerts", []) if sent is not None else [],
        "row_metrics": shown["results"] if shown is not None else [],
        "loss": {
            "interfaces": [_interface_sum(each) for each in (capture or {}).get("interfaces", ())],
            "tuples": _tuple_sum(capture, job),
        },
        "traces": traces(run.path)[-LATEST_TRACES:],
    }


def traces(folder: Path) -> list[Document]:
    """Return all traces of the run in ``folder``, oldest first; invalid lines are left out."""
    found = read_traces(folder / JOB_FOLDER / TRACES_FOLDER)
    return [trace for trace in found if _is_trace(trace)]


def _is_trace(trace: Document) -> bool:
    if "idle" in trace:
        return trace.keys() >= _IDLE_FIELDS
    hops = trace.get("hops")
    return (
        trace.keys() >= _TRACE_FIELDS
        and isinstance(hops, list)
        and bool(hops)
        and all(isinstance(hop, dict) and hop.keys() >= _HOP_FIELDS for hop in hops)
    )


def _counters(path: Path, fields: set[str]) -> Document | None:
    """Return the latest counters of a process; None if this version does not understand them."""
    snapshot = read_snapshot(path)
    if snapshot is None or snapshot.get("schema") != SCHEMA or not snapshot.keys() >= fields:
        return None
    return snapshot


def _run(run: RunRecord) -> Document:
    fields = asdict(run)
    return {**fields, "path": str(run.path), "standing": run.standing}


def clock_ns(
    run: RunRecord, capture: Document | None, job: Document | None, now_ns: int
) -> int | None:
    """Return the time to compare watermarks with: the current time, in a replay the trace's."""
    if not run.is_live:
        return None if job is None else job["clock_ns"]
    if run.is_alive:
        return now_ns
    written = [each["written_ns"] for each in (capture, job) if each is not None]
    return max(written, default=None)


def _queries(run: RunRecord, job: Document | None) -> tuple[str, ...]:
    """Return the names of the results, from the job until they are in the run's record."""
    return run.queries or tuple(query["name"] for query in (job or {}).get("queries", ()))


def _query(
    name: str, capture: Document | None, job: Document | None, clock_ns: int | None
) -> Document:
    fields: Document = {
        "name": name,
        "lfta": name,
        "watermark": None,
        "watermark_ns": None,
        "has_ended": False,
        "rows_total": 0,
        "late_tuples_total": 0,
        "last_answer_ns": None,
    }
    fields |= next((q for q in (job or {}).get("queries", ()) if q["name"] == name), {})
    if fields["lfta"] is not None:
        # A query that needs no Spark is answered by an LFTA.
        streams = [s for s in (capture or {}).get("streams", ()) if s["lfta"] == fields["lfta"]]
        fields["rows_total"] = sum(stream["tuples_out_total"] for stream in streams)
    watermark_ns = fields["watermark_ns"]
    known = watermark_ns is not None and clock_ns is not None
    return {**fields, "lag_ns": max(0, clock_ns - watermark_ns) if known else None}


def _interface_sum(interface: Mapping[str, Any]) -> Document:
    """Return the terms of a sum that closes.

    received = dropped + filtered + shed + late + unread + malformed + unsupported + accepted
    """
    malformed = sum(interface["malformed_packets"].values())
    unsupported = sum(interface.get("unsupported_packets", {}).values())
    terms = {name: interface[name] for name in _LOSSES}
    accounted = sum(terms.values()) + malformed + unsupported + interface["accepted_packets"]
    return {
        "name": interface["name"],
        "received_packets": interface["received_packets"],
        **terms,
        "malformed_packets": malformed,
        "unsupported_packets": unsupported,
        "accepted_packets": interface["accepted_packets"],
        "difference": interface["received_packets"] - accounted,
    }


def _tuple_sum(capture: Document | None, job: Document | None) -> Document:
    """Return the terms of two sums that close.

    put out = logged + open + shed before; logged = waiting + released + shed
    """
    streams = (capture or {}).get("streams", ())
    log = (capture or {}).get("log", {})
    operators = (job or {}).get("operators", ())
    return {
        "put_out": sum(stream["tuples_out_total"] for stream in streams),
        "logged": log.get("tuples_total", 0),
        "open": log.get("open_tuples", 0),
        "shed": log.get("shed_tuples_total", 0),
        "waiting": log.get("waiting_tuples", 0),
        "released": log.get("released_tuples_total", 0),
        "late": sum(operator["late_tuples_total"] for operator in operators),
    }
