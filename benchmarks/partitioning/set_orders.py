"""The order of partitioning sets as ``gscope explain`` predicts it, and as hosts send rows.

    python -m benchmarks.partitioning.set_orders [--packets 300000] [--hosts 2]

Needs the extra ``bench``. A replay of the whole trace gives the counts for ``--statistics``. Then
packets are divided by each candidate, each host replays its share, and its answers are the rows
that it would send to the aggregating host: partial rows of a split grouping are the groups of a
host, without HAVING. Bytes are those of their Arrow columns on all hosts, without framing and TLS.
They depend neither on time nor on load. Two orders are compared: by the greatest cost of one
operator and then the sum, as the optimizer ranks, and by the sum alone.
"""

from __future__ import annotations

import argparse
import json
import re
import subprocess
import tempfile
from dataclasses import dataclass
from itertools import combinations
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
from tests.support.gscope_command import command, run

from benchmarks.partitioning.plans import query_text
from benchmarks.partitioning.plots import plot_orders
from benchmarks.partitioning.stations import read_answers
from benchmarks.partitioning.traffic import GSQL, parts, traffic
from benchmarks.records import write_records
from benchmarks.sampling.connections import write_capture
from benchmarks.trace import OUT

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from benchmarks.sampling.connections import Packets

QUERY_SETS = {
    "D5": ("suspicious",),
    "D7": ("subnet_stats", "jitter"),
    "D8": ("flow_pairs",),
    "D5 to D8 together": ("flow_pairs", "suspicious", "subnet_stats", "jitter"),
}

_CHAIN = ("flows", "heavy_flows", "flow_pairs")
_SENT_OF_CHAIN = {
    "prefix": "flow_pairs",
    "subnet": "heavy_flows",
    "source": "flow_pairs",
    "pair": "heavy_flows",
    "flow": "flows",
    "none": "flows",
}
"""The query of D8 whose rows hosts send: the first one that is not compatible, or the answer."""

_PACKETS_OF_JITTER = """DEFINE { query_name 'jitter'; }
SELECT time/60 as tb, timestamp, srcIP, destIP, srcPort, destPort, sequence_number FROM TCP"""
_SLOTS = 262_144
_RECEIVED = re.compile(r"([\d,]+) packets received")

NOISE = 0.006
"""Costs that differ by less may change places with another hash of the same sets.

Groups of ``subnet_stats`` on two hosts, 300,000 packets, twelve random divisions: the costs of a
set differ by up to 0.6 %.
"""

_ROUNDING = 1e-4
"""Equal rows differ by less: Arrow rounds the bits of NULL up to bytes on each host."""

Cost: TypeAlias = tuple[float, float]
"""The greatest cost of one operator, and the sum: bytes for each packet."""

Pairs: TypeAlias = "list[tuple[Ranked, Ranked]]"


@dataclass(frozen=True, slots=True)
class Ranked:
    """A candidate of a query set.

    Attributes:
        queries: the query set.
        hosts: their number.
        candidate: the set, as text.
        predicted_cost: bytes for each packet, the most for one operator.
        predicted_total: bytes for each packet, for all operators.
        measured_cost: as predicted, of the rows that hosts would send.
        measured_total: as predicted, of the rows that hosts would send.
        rows: that hosts would send.
        most_loaded: the share of the packets that the host with most has.
    """

    queries: str
    hosts: int
    candidate: str
    predicted_cost: float
    predicted_total: float
    measured_cost: float
    measured_total: float
    rows: int
    most_loaded: float

    @property
    def predicted(self) -> Cost:
        return self.predicted_cost, self.predicted_total

    @property
    def measured(self) -> Cost:
        return self.measured_cost, self.measured_total


def sent(name: str, by: str) -> str:
    """Return the query whose rows hosts send for a query of a set, if packets are divided so."""
    return _SENT_OF_CHAIN[by] if name == "flow_pairs" else name


def answered_by(by: str) -> set[str]:
    """Return the queries of D5 to D8 that hosts answer if packets are divided so."""
    found = {"suspicious", "jitter"} if by != "none" else set()
    if by in ("prefix", "subnet"):
        found.add("subnet_stats")
    if sent("flow_pairs", by) == "flow_pairs":
        found.add("flow_pairs")
    return found


def sent_text(by: str) -> str:
    """Return queries whose answers are the rows that a host sends for all queries of D5 to D8."""
    texts = [query_text(sent("flow_pairs", by)), query_text("subnet_stats")]
    suspicious = query_text("suspicious")
    if by == "none":
        suspicious = suspicious.replace("PATTERN 41; ", "").partition("HAVING")[0]
    return ";\n".join(
        [*texts, suspicious, _PACKETS_OF_JITTER if by == "none" else query_text("jitter")]
    )


def differing(ranked: Sequence[Ranked], *, by_sum: bool) -> tuple[Pairs, Pairs]:
    """Return the pairs that were measured in another order than predicted.

    The first ones differ by more than the noise, the second ones are ties within it.

    Args:
        ranked: the candidates of one query set.
        by_sum: whether to compare the sum alone.
    """
    wrong: Pairs = []
    ties: Pairs = []
    first = 1 if by_sum else 0
    for one, other in combinations(ranked, 2):
        order, share = _compared(one.measured[first:], other.measured[first:])
        if order != _compared(one.predicted[first:], other.predicted[first:])[0]:
            (wrong if share > NOISE else ties).append((one, other))
    return wrong, ties


def _compared(one: Sequence[float], other: Sequence[float]) -> tuple[int, float]:
    """Return the sign of the first difference, and its share of the greater value; 0 if equal."""
    for left, right in zip(one, other, strict=True):
        if (share := abs(left - right) / max(left, right)) > _ROUNDING:
            return (-1 if left < right else 1), share
    return 0, 0.0


class Shares:
    """What hosts send, by what divides the packets; and what a run of them all counts.

    Args:
        packets: the traffic.
        hosts: their number.
        folder: for all files.
    """

    def __init__(self, packets: Packets, hosts: int, folder: Path) -> None:
        self._packets = packets
        self._hosts = hosts
        self._folder = folder

    def counted(self) -> tuple[Path, dict[str, int]]:
        """Return a file for ``--statistics``.

        It has the counts of a run, and the rows of each query.
        """
        path = self._folder / "whole.pcap"
        write_capture(self._packets, path)
        names = QUERY_SETS["D5 to D8 together"]
        (errors,) = self._replayed([path], ";\n".join(map(query_text, names)), "whole")
        found = _RECEIVED.search(errors)
        assert found is not None, errors
        rows = {name: read_answers(self._folder / "whole-0", name).num_rows for name in names}
        document: dict[str, Any] = {
            "capture": {"interfaces": [{"received_packets": int(found[1].replace(",", ""))}]},
            "queries": [{"name": name, "rows_total": number} for name, number in rows.items()],
        }
        status = self._folder / "status.json"
        status.write_text(json.dumps(document))
        return status, rows

    def sent(self, by: str) -> tuple[dict[str, tuple[int, int]], float]:
        """Return rows and bytes that hosts send of each query, and the most loaded host's share."""
        part = parts(self._packets, by, self._hosts)
        paths = [self._folder / f"{by}-{host}.pcap" for host in range(self._hosts)]
        for host, path in enumerate(paths):
            write_capture(self._packets.taken(np.flatnonzero(part == host)), path)
        self._replayed(paths, sent_text(by), by)
        found = {}
        for query in (*_CHAIN, "suspicious", "subnet_stats", "jitter"):
            tables = [
                read_answers(self._folder / f"{by}-{host}", query) for host in range(self._hosts)
            ]
            found[query] = sum(t.num_rows for t in tables), sum(t.nbytes for t in tables)
        return found, float(np.bincount(part).max() / len(part))

    def _replayed(self, paths: Sequence[Path], text: str, name: str) -> list[str]:
        """Replay captures side by side, each by a process of its own; return what they report."""
        running = []
        for number, path in enumerate(paths):
            folder, work = self._folder / f"{name}-{number}", self._folder / f"work-{name}-{number}"
            place = ("-w", folder, "--work-dir", work)
            words = ("replay", f"p0={path}", "-e", text, "-o", "arrow", *place)
            options = ("--table-slots", str(_SLOTS), "--no-progress")
            running.append(
                subprocess.Popen(command(*words, *options), stderr=subprocess.PIPE, text=True)
            )
        reported = [each.communicate()[1] for each in running]
        for process, errors in zip(running, reported, strict=True):
            assert process.returncode == 0, errors
        return reported


def explained(names: Sequence[str], hosts: int, status: Path, *options: str) -> dict[str, Any]:
    """Return what ``gscope explain`` says of a query set among hosts."""
    text = ";\n".join(map(query_text, names))
    words = ("explain", "-e", text, "-i", "p0", "--hosts", str(hosts), "--statistics", status)
    done = run(*words, "--json", *options)
    assert done.returncode == 0, done.stderr
    found: dict[str, Any] = json.loads(done.stdout)["partitioning"]
    return found


def ranked(
    queries: str,
    shown: Mapping[str, Any],
    measured: Mapping[str, tuple[dict[str, tuple[int, int]], float]],
    packets: int,
) -> list[Ranked]:
    """Return the candidates of a query set in the order that was predicted.

    Args:
        queries: the name of the query set.
        shown: what ``explained`` returned.
        measured: what ``Shares.sent`` returned, by what divides the packets.
        packets: their number.
    """
    by_set = {candidate: by for by, candidate in GSQL.items()}
    found = []
    for each in shown["candidates"]:
        by = by_set[tuple(each["set"])]
        of_query, most_loaded = measured[by]
        costs = [of_query[sent(name, by)] for name in QUERY_SETS[queries]]
        sizes = [size / packets for _, size in costs]
        found.append(
            Ranked(
                queries,
                shown["hosts"],
                ", ".join(each["set"]) or "no function of packets",
                each["cost"],
                each["total"],
                max(sizes),
                sum(sizes),
                sum(rows for rows, _ in costs),
                most_loaded,
            )
        )
    return found


def table(found: Sequence[Ranked]) -> str:
    """Return candidates as a Markdown table, and what agrees."""
    lines = [
        "| | set | predicted: one operator | sum"
        " | measured: one operator | sum | rows | most loaded host |",
        "| --- | --- | ---: | ---: | ---: | ---: | ---: | ---: |",
    ]
    lines += [
        f"| {e.queries} | {e.candidate} | {e.predicted_cost:.3f} | {e.predicted_total:.3f} | "
        f"{e.measured_cost:.3f} | {e.measured_total:.3f} | {e.rows:,} | "
        f"{100 * e.most_loaded:.1f} % |"
        for e in found
    ]
    for queries in dict.fromkeys(each.queries for each in found):
        own = [each for each in found if each.queries == queries]
        pairs = len(own) * (len(own) - 1) // 2
        for by_sum in (False, True):
            wrong, ties = differing(own, by_sum=by_sum)
            basis = "the sum" if by_sum else "one operator, then the sum"
            shown = f"{len(wrong)} in another order, and {len(ties)} within the noise"
            lines.append(f"{queries} by {basis}: of {pairs} pairs {shown}")
            lines += [f"  ({one.candidate}) and ({other.candidate})" for one, other in wrong + ties]
    return "\n".join(lines)


def _main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, allow_abbrev=False)
    parser.add_argument("--packets", type=int, default=300_000)
    parser.add_argument("--hosts", type=int, default=2)
    arguments = parser.parse_args()
    packets = traffic(arguments.packets)
    with tempfile.TemporaryDirectory(prefix="gscope-sets-") as name:
        folder = Path(name)
        folder.chmod(0o755)
        shares = Shares(packets, arguments.hosts, folder)
        status, answered = shares.counted()
        measured = {}
        for by in GSQL:
            measured[by] = shares.sent(by)
            for query in QUERY_SETS["D5 to D8 together"]:
                if query in answered_by(by):
                    rows = measured[by][0][query][0]
                    assert rows == answered[query], f"other rows of {query} by {by}"
        found = []
        for queries, names in QUERY_SETS.items():
            shown = explained(names, arguments.hosts, status)
            found += ranked(queries, shown, measured, len(packets.at))
    path = OUT / f"partitioning_set_orders-{arguments.hosts}.csv"
    write_records(found, path)
    plot_orders(path, arguments.hosts, path.with_suffix(".svg"))
    print(table(found))


if __name__ == "__main__":
    _main()
