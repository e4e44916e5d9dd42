"""The list of runs: one line for each, with what is wrong with it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from rich.text import Text

from gscope.cli.status.human import NOTHING, count, duration, moment, of_day
from gscope.cli.status.tables import StatusTable
from gscope.cli.status.view import MAX_STALE_NS, STATES

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from rich.console import RenderableType

    from gscope.cli.status.document import Document

_DAY_NS = 86_400_000_000_000
_MISSING = ("connecting", "failed", "refused", "absent")
"""States of an input that sends nothing, see ``InputState``."""

_LOSSES = ("dropped", "late", "unread")


def run_list(documents: Sequence[Document]) -> Iterator[RenderableType]:
    """Yield a table of runs, and the commands that concern one of them."""
    yield StatusTable(
        ("RUN", "=STATE", "=SINCE", "INPUTS", ">PACKETS/S", "QUERIES", "PROBLEM"),
        [_row(document) for document in documents],
    )
    yield Text()
    yield Text("`gscope status NAME` shows one run; times are UTC.")
    if any(
        document["run"]["standing"] in ("stale", "failed", "recorded") for document in documents
    ):
        yield Text("A run that is stale was killed. `gscope run --run NAME` with the same queries")
        yield Text("resumes a stale, failed or recorded run, `gscope stop NAME` removes it.")


def _row(document: Document) -> tuple[str | Text, ...]:
    run = document["run"]
    return (
        run["name"],
        Text(run["standing"], STATES.get(run["standing"], "")),
        _since(run["began_ns"], document["now_ns"]),
        ", ".join(run["interfaces"]) or NOTHING,
        count(_rate(document)) if run["is_alive"] else NOTHING,
        ", ".join(query["name"] for query in document["queries"]) or NOTHING,
        Text("; ".join(problems(document)) or NOTHING, "red"),
    )


def _since(began_ns: int, now_ns: int) -> str:
    """Return the time of day at which a run began, or the day if that is longer ago."""
    return of_day(began_ns) if now_ns - began_ns < _DAY_NS else moment(began_ns).split()[0]


def _rate(document: Document) -> float | None:
    capture = document["capture"]
    if capture is None:
        return None
    return float(sum(each["packets_per_second"] or 0 for each in capture["interfaces"]))


def problems(document: Document) -> Iterator[str]:
    """Yield what is wrong with a run, the worst first: phrases of a few words."""
    run = document["run"]
    if run["failure"]:
        yield " ".join(run["failure"].split())
    elif run["standing"] == "stale":
        yield "killed"
    if run["is_alive"]:
        for name, process in run["processes"].items():
            yield from _of_process(name, process, document)
    for each in (document["capture"] or {"interfaces": ()})["interfaces"]:
        if each["state"] in ("down", "gone") or each["failure"]:
            yield f"{each['name']} {'failed' if each['failure'] else each['state']}"
    inputs = (document["capture"] or {}).get("inputs", ())
    yield from (f"{i['name']} {i['state']}" for i in inputs if i["state"] in _MISSING)
    for kind, said in (("late", "late"), ("shed", "shed by inputs")):
        if lost := sum(each[f"{kind}_tuples_total"] for each in inputs):
            yield f"{count(lost)} tuples {said}"
    if any(each["gaps"] for each in inputs):
        yield "answers lack an input"
    for loss in _LOSSES:
        lost = sum(each[f"{loss}_packets"] for each in document["loss"]["interfaces"])
        if lost:
            yield f"{count(lost)} {loss}"
    tuples = document["loss"]["tuples"]
    if tuples["shed"]:
        yield f"{count(tuples['shed'])} tuples shed"
    if any(each["damage"] for each in (document["capture"] or {"interfaces": ()})["interfaces"]):
        yield "damaged capture"


def _of_process(name: str, process: Mapping[str, Any], document: Document) -> Iterator[str]:
    counters = document[name]
    if process["state"] in ("restarting", "failed"):
        yield f"{name} {process['state']}"
    elif counters is not None and process["state"] == "running":
        silent_ns = document["now_ns"] - counters["written_ns"]
        if silent_ns > MAX_STALE_NS:
            yield f"{name} silent for {duration(silent_ns)}"
    if times := process["restarts_total"]:
        yield f"{name} restarted {times} {'time' if times == 1 else 'times'}"
