"""The plan of a run with what each of its nodes has read, given and cost, as one JSON document.

The program and the counters come from the run's folder; no process is contacted. A figure that a
run does not count, for instance one that an earlier version started, is None.
``docs/explain_run.schema.json`` is the schema.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from gscope.cli.status.document import clock_ns, status_document, traces
from gscope.errors import GscopeError
from gscope.queries.plan.explain.state_bounds import lfta_state_bound, node_state_bound
from gscope.queries.plan.program import QueryInput, node_inputs
from gscope.queries.plan.program_file import read_program
from gscope.queries.run_folder.layout import PROGRAM_FILE

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from gscope.cli.rundir.records import RunRecord
    from gscope.cli.status.document import Document
    from gscope.queries.plan.program import HftaNode, Input, Lfta

SCHEMA = 1

_SECOND_NS = 1_000_000_000
_SEEN = ("accepted_packets", "malformed_packets", "unsupported_packets", "shed_packets")


def plan_figures(run: RunRecord, now_ns: int) -> Document:
    """Return the plan of ``run`` with its figures at ``now_ns``.

    Raises:
        GscopeError: the run has no program yet, or its files cannot be interpreted.
    """
    path = run.path / PROGRAM_FILE
    if not path.is_file():
        message = f"run {run.name} has no plan yet: its queries are being compiled"
        raise GscopeError(message)
    program, document = read_program(path), status_document(run, now_ns)
    try:
        document, found = _without_rates(document), traces(run.path)
        at_ns = clock_ns(run, document["capture"], document["job"], now_ns)
        return {
            "schema": SCHEMA,
            "now_ns": now_ns,
            "run": document["run"],
            "written_ns": {
                name: None if document[name] is None else document[name]["written_ns"]
                for name in ("capture", "job")
            },
            "log": _log(document["capture"]),
            "interfaces": _interfaces(document),
            "nodes": [
                *(_lfta(lfta, document["capture"]) for lfta in program.lftas),
                *(_node(node, document["job"], at_ns, found) for node in program.nodes),
            ],
            "results": [
                {"name": query, "node": _name(source)} for query, source in program.results
            ],
        }
    except (KeyError, TypeError, AttributeError, ValueError) as error:
        message = f"cannot interpret the counters of run {run.name} in {run.path}: {error!r}"
        raise GscopeError(message) from error


def _without_rates(document: Document) -> Document:
    """Return a status; without the rates of the last minute if the run has ended."""
    if not document["run"]["is_alive"]:
        capture, job = document["capture"] or {}, document["job"] or {}
        counted = (
            *capture.get("interfaces", ()),
            *capture.get("streams", ()),
            *job.get("operators", ()),
        )
        for each in counted:
            each.pop("recent", None)
    return document


def _name(source: Input) -> str:
    """Return the name of a node; an LFTA may have that of its query."""
    return source.query if isinstance(source, QueryInput) else f"LFTA {source.lfta}"


def _log(capture: Mapping[str, Any] | None) -> dict[str, int] | None:
    return (
        None if capture is None else {n: capture["log"][n] for n in ("used_bytes", "budget_bytes")}
    )


def _interfaces(document: Document) -> list[dict[str, Any]]:
    """Return what reached the LFTAs of each interface, and what a packet costs there."""
    sums = {each["name"]: each for each in document["loss"]["interfaces"]}
    return [
        {
            "name": each["name"],
            "state": each["state"],
            "packets": sum(sums[each["name"]][name] for name in _SEEN),
            **_rates(each, ("packets",)),
            "ns_per_packet": each["ns_per_packet"],
            "lag_ns": each["largest_lag_ns"],
        }
        for each in (document["capture"] or {"interfaces": ()})["interfaces"]
    ]


def _lfta(lfta: Lfta, capture: Mapping[str, Any] | None) -> dict[str, Any]:
    streams = [
        {
            "name": each["name"],
            "interface": each["interface"],
            "tuples_in": each["tuples_in_total"],
            "tuples_out": each["tuples_out_total"],
            **_rates(each, ("tuples_in", "tuples_out", "evicted_groups")),
            "evicted_groups": each["evicted_groups_total"],
            "live_groups": each["live_groups"],
            "table_slots": each["table_slots"],
            "table_bytes": each["table_bytes"],
        }
        for each in (capture or {"streams": ()})["streams"]
        if each["lfta"] == lfta.name
    ]
    taken, given = _sum(streams, "tuples_in"), _sum(streams, "tuples_out")
    return {
        "name": f"LFTA {lfta.name}",
        "kind": _kind(lfta),
        "reads": list(lfta.interfaces),
        "tuples_in": taken,
        "tuples_out": given,
        "selectivity": _ratio(given, taken),
        **{
            name: _sum(streams, name)
            for name in (
                "tuples_in_per_second",
                "tuples_out_per_second",
                "evicted_groups",
                "evicted_groups_per_second",
            )
        },
        "evicted_share": _ratio(_sum(streams, "evicted_groups"), given),
        "state_tuples": _sum(streams, "live_groups"),
        "state_capacity": _sum(streams, "table_slots") or None,
        "state_bytes": _sum(streams, "table_bytes"),
        "state_bound": lfta_state_bound(lfta),
        "streams": streams,
    }


def _kind(lfta: Lfta) -> str:
    """Return what an LFTA does; the rows of ``answers`` are those of operators of other hosts."""
    if lfta.answers is not None:
        return "answers"
    return "grouping" if lfta.is_aggregation else "selection"


def _node(
    node: HftaNode,
    job: Mapping[str, Any] | None,
    at_ns: int | None,
    found: Sequence[Document],
) -> dict[str, Any]:
    operators = (job or {"operators": ()})["operators"]
    counted: Mapping[str, Any] = next(
        (each for each in operators if each["name"] == node.query), {}
    )
    taken, given = counted.get("tuples_in_total"), counted.get("tuples_out_total")
    read, cpu_ns = counted.get("tuples_read_total"), counted.get("cpu_ns")
    is_sql = bool(counted.get("sql_steps_total"))
    watermark_ns = counted.get("watermark_ns")
    lag_ns = None
    if at_ns is not None and watermark_ns is not None and not counted["has_ended"]:
        lag_ns = max(0, at_ns - watermark_ns)
    return {
        "name": node.query,
        "kind": counted.get("kind", type(node).__name__.removesuffix("Node").lower()),
        "reads": list(dict.fromkeys(map(_name, node_inputs(node)))),
        "tuples_in": taken,
        "tuples_read": read,
        "tuples_out": given,
        "selectivity": _ratio(given, read),
        **_rates(counted, ("tuples_in", "tuples_out")),
        "is_sql": is_sql,
        "cpu_ns": cpu_ns,
        "cpu_ns_per_tuple": None if is_sql else _ratio(cpu_ns, read),
        "cpu_share": _rate(counted.get("recent"), "cpu_ns", per_ns=1),
        "waiting_tuples": counted.get("waiting_tuples"),
        "waiting_bytes": counted.get("waiting_bytes"),
        "state_tuples": counted.get("state_tuples"),
        "state_bytes": counted.get("state_bytes"),
        "state_bound": node_state_bound(node),
        "late_tuples": counted.get("late_tuples_total"),
        "shed_tuples": counted.get("shed_tuples_total"),
        "watermark": counted.get("watermark"),
        "watermark_ns": watermark_ns,
        "has_ended": counted.get("has_ended", False),
        "lag_ns": lag_ns,
        "waits_for": counted.get("waits_for", []),
        "trace": _slowest_hop(node.query, found),
    }


def _slowest_hop(query: str, found: Sequence[Document]) -> dict[str, Any] | None:
    """Return where the latest heartbeat that released rows of ``query`` spent the most time."""
    for trace in reversed(found):
        hops = trace.get("hops", ())
        if any(hop["kind"] == "operator" and hop["node"] == query for hop in hops):
            slowest = max(hops, key=lambda hop: hop["queued_ns"] + hop["worked_ns"])
            return {
                "heartbeat": trace["id"],
                "total_ns": trace["ended_ns"] - trace["began_ns"],
                "hop": slowest["node"],
                "hop_ns": slowest["queued_ns"] + slowest["worked_ns"],
            }
    return None


def _rates(counted: Mapping[str, Any], names: Sequence[str]) -> dict[str, float | None]:
    """Return the rates of the last minute; None for counters without them."""
    recent = counted.get("recent")
    return {f"{name}_per_second": _rate(recent, name, per_ns=_SECOND_NS) for name in names}


def _rate(recent: Mapping[str, int] | None, name: str, *, per_ns: int) -> float | None:
    if recent is None or name not in recent or recent["until_ns"] <= recent["since_ns"]:
        return None
    return round(recent[name] * per_ns / (recent["until_ns"] - recent["since_ns"]), 6)


def _sum(entries: Sequence[Mapping[str, Any]], name: str) -> Any:
    values = [each[name] for each in entries if each[name] is not None]
    return sum(values) if values else None


def _ratio(part: float | None, whole: float | None) -> float | None:
    return None if part is None or not whole else round(part / whole, 6)
