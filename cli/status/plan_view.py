"""The plan of a run with its figures as text: a tree from the results down to the packets."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from rich.text import Text

from gscope.cli.status.human import (
    NOTHING,
    cost,
    count,
    duration,
    moment,
    rate,
    ratio,
    share,
    size,
)
from gscope.cli.status.tables import StatusTable
from gscope.cli.status.view import STATES
from gscope.records import dataclass

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from rich.console import Console, ConsoleOptions, RenderableType

    from gscope.cli.status.document import Document

WIDE = 120
"""From this many columns on, totals are shown beside rates, and more of the state."""

MANY_EVICTED = 0.1
"""A larger share of evicted groups among the rows of a table is pointed out: it is too small."""


def plan_view(document: Document) -> Iterator[RenderableType]:
    """Yield the parts of the view from top to bottom."""
    run = document["run"]
    line = Text()
    line.append(run["name"], "bold")
    line.append("  ")
    line.append(run["standing"], STATES.get(run["standing"], ""))
    if run["is_alive"]:
        line.append(f" for {duration(document['now_ns'] - run['began_ns'])}")
        line.append("; rates of the last minute, totals of the run")
    else:
        line.append("; figures of the whole run")
    yield line
    yield Text()
    yield PlanTree(document)
    yield Text()
    nodes = {each["name"]: each for each in document["nodes"]}
    for result in document["results"]:
        yield _progress(result, nodes[result["node"]], document)
    yield Text()
    yield from _bounds(document)


class PlanTree:
    """The table of nodes, each above those that it reads; a rich renderable.

    Its columns depend on the width: rates and costs first.

    Args:
        document: the figures.
    """

    def __init__(self, document: Document) -> None:
        self._is_alive = document["run"]["is_alive"]
        self._lines = list(_tree(document))

    def __rich_console__(
        self, console: Console, options: ConsoleOptions
    ) -> Iterator[RenderableType]:
        """Yield the table."""
        is_wide = options.max_width >= WIDE
        columns = [
            each
            for each in _COLUMNS
            if (is_wide or not each.is_wide or (each.is_total and not self._is_alive))
            and (self._is_alive or not each.is_rate)
        ]
        yield StatusTable(
            ("NODE", *(column.heading for column in columns)),
            [
                (line.label, *(column.cell(line.figures) for column in columns))
                for line in self._lines
            ],
        )


@dataclass(frozen=True, slots=True)
class _Line:
    """A node in the tree: its name behind the branches, and its figures; {} shown elsewhere."""

    label: str
    figures: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class _Column:
    """A column of the tree.

    Attributes:
        heading: as of ``StatusTable``.
        cell: returns its text for the figures of a node.
        is_wide: whether it is left out of a narrow terminal.
        is_rate: whether it is left out once the run has ended.
        is_total: whether it replaces rates once the run has ended, however narrow the terminal is.
    """

    heading: str
    cell: Callable[[Mapping[str, Any]], str | Text]
    is_wide: bool = False
    is_rate: bool = False
    is_total: bool = False


def _sum(figures: Mapping[str, Any], *names: str) -> int | None:
    values = [figures.get(name) for name in names]
    return None if None in values else sum(value for value in values if value is not None)


def _state(figures: Mapping[str, Any]) -> str:
    """Return the rows that a node holds: of a table, of how many it has room for."""
    if figures.get("state_capacity"):
        return f"{count(figures['state_tuples'])}/{count(figures['state_capacity'])}"
    return count(_sum(figures, "waiting_tuples", "state_tuples"))


def _bytes(figures: Mapping[str, Any]) -> str:
    if figures.get("state_capacity"):
        return size(figures["state_bytes"])
    return size(_sum(figures, "waiting_bytes", "state_bytes"))


def _used(figures: Mapping[str, Any]) -> str:
    if figures.get("state_capacity"):
        return share(figures["state_tuples"] / figures["state_capacity"])
    return _state(figures)


def _evicted(figures: Mapping[str, Any]) -> Text:
    if not figures.get("state_capacity"):
        return Text(NOTHING)
    is_many = (figures["evicted_share"] or 0) > MANY_EVICTED
    return Text(count(figures["evicted_groups"]), "yellow" if is_many else "")


def _evicted_share(figures: Mapping[str, Any]) -> str:
    return ratio(figures["evicted_share"]) if figures.get("state_capacity") else NOTHING


def _cost(figures: Mapping[str, Any]) -> str:
    return "SQL" if figures.get("is_sql") else cost(figures.get("cpu_ns_per_tuple"))


def _lost(figures: Mapping[str, Any]) -> Text:
    lost = _sum(figures, "late_tuples", "shed_tuples")
    return Text(count(lost), "red" if lost else "")


_COLUMNS = (
    _Column("=KIND", lambda f: f.get("kind", ""), is_wide=True),
    _Column(">IN/S", lambda f: rate(f.get("tuples_in_per_second")), is_rate=True),
    _Column(">OUT/S", lambda f: rate(f.get("tuples_out_per_second")), is_rate=True),
    _Column(">IN", lambda f: count(f.get("tuples_in")), is_wide=True, is_total=True),
    _Column(">OUT", lambda f: count(f.get("tuples_out")), is_wide=True, is_total=True),
    _Column(">OUT/IN", lambda f: ratio(f.get("selectivity"))),
    _Column(">EVICTED", _evicted),
    _Column(">OF OUT", _evicted_share, is_wide=True),
    _Column(">COST", _cost),
    _Column(">CPU", lambda f: ratio(f.get("cpu_share")), is_wide=True, is_rate=True),
    _Column(">STATE", _used),
    _Column(">ROWS", _state, is_wide=True),
    _Column(">BYTES", _bytes, is_wide=True),
    _Column(">LOST", _lost, is_wide=True),
    _Column(">LAG", lambda f: duration(f.get("lag_ns")), is_rate=True),
)


def _tree(document: Document) -> Iterator[_Line]:
    """Yield the lines of all results; a node that several read has its figures once."""
    nodes = {each["name"]: each for each in document["nodes"]}
    interfaces = {each["name"]: each for each in document["interfaces"]}
    shown: set[str] = set()

    def below(name: str, first: str, rest: str) -> Iterator[_Line]:
        node = nodes[name]
        if name in shown:
            yield _Line(f"{first}{name} (above)", {})
            return
        shown.add(name)
        yield _Line(f"{first}{name}", node)
        if "streams" in node:
            streams = node["streams"]
            for place, stream in enumerate(streams):
                branch, _ = _branches(rest, is_last=place + 1 == len(streams))
                yield _Line(
                    f"{branch}{stream['interface']}",
                    _packets(stream, interfaces.get(stream["interface"])),
                )
            return
        for place, source in enumerate(node["reads"]):
            branch, further = _branches(rest, is_last=place + 1 == len(node["reads"]))
            yield from below(source, branch, further)

    for name in dict.fromkeys(result["node"] for result in document["results"]):
        if name not in shown:
            yield from below(name, "", "")


def _branches(rest: str, *, is_last: bool) -> tuple[str, str]:
    """Return what stands before a node that another reads, and before those below it."""
    return f"{rest}{'└─' if is_last else '├─'} ", f"{rest}{'  ' if is_last else '│ '} "


def _packets(stream: Mapping[str, Any], interface: Mapping[str, Any] | None) -> dict[str, Any]:
    """Return the figures of an interface for one LFTA: packets in, and those that it takes.

    A packet costs what all LFTAs of the interface need for it together.
    """
    found = interface or {}
    packets = found.get("packets")
    return {
        "kind": "packets" if interface else "input",
        "tuples_in": packets,
        "tuples_out": stream["tuples_in"],
        "selectivity": stream["tuples_in"] / packets if packets else None,
        "tuples_in_per_second": found.get("packets_per_second"),
        "tuples_out_per_second": stream["tuples_in_per_second"],
        "cpu_ns_per_tuple": found.get("ns_per_packet"),
        "lag_ns": found.get("lag_ns"),
    }


def _progress(result: Mapping[str, Any], node: Mapping[str, Any], document: Document) -> Text:
    """Return how far a result is, and what holds it up."""
    name = result["name"]
    if node["kind"] == "answers":
        return Text(f"{name}: answered by the hosts")
    if "watermark_ns" not in node:
        return Text(f"{name}: each row leaves its LFTA at once, without Spark")
    if node["has_ended"]:
        return Text(f"{name}: complete")
    line = Text(f"{name}: ")
    if node["watermark_ns"] is None:
        line.append("nothing is complete yet")
    else:
        line.append(f"complete until {moment(node['watermark_ns'])} UTC")
        if node["lag_ns"] is not None:
            line.append(f", {duration(node['lag_ns'])} ago")
    if node["waits_for"]:
        line.append(f"; waits for {_held_up(node['waits_for'], document)}")
    if (trace := node["trace"]) is not None:
        line.append(f"; heartbeat {trace['heartbeat']} took {duration(trace['total_ns'])}, ")
        line.append(f"{duration(trace['hop_ns'])} of it at {trace['hop']}")
    return line


def _held_up(streams: Sequence[str], document: Document) -> str:
    names = list(dict.fromkeys(stream.rpartition("@")[2] for stream in streams))
    if len(names) > 1 and len(names) == len(document["run"]["interfaces"]):
        return "all interfaces"
    return ", ".join(names)


def _bounds(document: Document) -> Iterator[Text]:
    """Yield what bounds the state of each node, and how full the log is."""
    yield Text("Bounds of the state", "bold")
    for node in document["nodes"]:
        line = Text(f"  {node['name']}: ")
        line.append(node["state_bound"], "yellow" if "WARNING" in node["state_bound"] else "dim")
        yield line
    if (log := document["log"]) is not None:
        line = Text("  log: ")
        line.append(f"{size(log['used_bytes'])}B of {size(log['budget_bytes'])}B", "dim")
        yield line
