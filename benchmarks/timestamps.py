"""E1 and E2: how long a union waits for its slow side and how much it holds, by heartbeat mode.

    python -m benchmarks.timestamps [--seconds 2000] [--step-s 0 0.2] [--rates 1 2 5 …]

A stream of 50 tuples/s and one of 0.05 tuples/s, Poisson arrivals, a filter before the union that
passes 95 %, as published (Bai, Thakkar, Wang, Zaniolo, ICDE 2007). The union is the HFTA job's own
merge of the published query: its ports, bounds, releases and demands are the code that runs live.
Only arrivals and the clock are simulated, so that hours can be observed. The cost of the
bookkeeping is measured (the CPU time of its thread) and passes on the simulated clock, while
messages queue. ``--step-s`` adds that many seconds to every step that reads rows: 0 is the
bookkeeping alone, 0.2 the time of Spark for a small step. Every tuple comes when it arrives and is
the punctuation of its own stream, as in the publication, in four scenarios:

* none: there is no other punctuation;
* periodic: both streams send heartbeats at a rate;
* on demand: the merge asks the stream that delays it, which answers with its clock, at once (as in
  the publication's measurements, in one process) or after the time that this takes between
  processes;
* latent: rows are in no order, so the union takes them as they come.

Writes ``benchmarks/out/timestamps.csv`` and ``.png``.
"""

from __future__ import annotations

import argparse
import heapq
import itertools
import random
import statistics
import time
from collections import deque
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from benchmarks.records import write_records
from gscope.engine.steps.heartbeat_requests import Asker
from gscope.engine.steps.steps import Steps
from gscope.queries.compile import CompileContext, QueryText, compile_queries
from gscope.queries.streams.messages import Batch, Extent, Heartbeat, Punctuation

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from gscope.queries.plan.program import Program
    from gscope.queries.streams.messages import Message

RATES = (1, 2, 5, 10, 20, 50, 100, 200, 500, 1000)
BUSY_PER_S, SLOW_PER_S, PASSES = 50.0, 0.05, 0.95
MOST_BEATS = 200_000
"""Largest number of heartbeats in a scenario; one that would have more lasts less long."""

ANSWER_S = 0.002
"""Seconds from a demand to its answer between processes, as ``benchmarks.live_union`` measures."""

BETWEEN_PROCESSES = "on demand, between processes"

SECOND_NS = 1_000_000_000
OUT = Path(__file__).parent / "out"
INTERFACES = ("interface1", "interface2")
QUERY = (
    Path(__file__).parents[1] / "queries" / "library" / "published" / "union_filtered.gsql"
).read_text(encoding="utf-8")


@dataclass(frozen=True, slots=True)
class Scenario:
    """A scenario of punctuation.

    Attributes:
        per_s: heartbeats a second of each stream; 0 for none.
        answer_s: seconds from a demand to its answer; None without demands.
    """

    name: str
    per_s: int = 0
    answer_s: float | None = None


@dataclass(frozen=True, slots=True)
class Row:
    """The result of one scenario.

    Attributes:
        step_s: seconds added to each step that reads rows.
        latency_ms: mean time from a tuple's arrival to its release.
        median_ms: median of that time.
        worst_ms: longest such time.
        idle_share: share of the time in which tuples waited while there was no work.
        peak_tuples: largest number of tuples that waited at the merge or before it.
        peak_queue: the same, with waiting heartbeats.
        cpu_share: share of the time in which the bookkeeping worked.
    """

    scenario: str
    per_s: int
    step_s: float
    seconds: float
    tuples: int
    latency_ms: float
    median_ms: float
    worst_ms: float
    idle_share: float
    peak_tuples: int
    peak_queue: int
    cpu_share: float


@dataclass(slots=True)
class Union:
    """The bookkeeping of the HFTA job on a simulated clock."""

    program: Program
    scenario: Scenario
    step_s: float
    steps: Steps = field(init=False)
    asker: Asker | None = None
    asked: set[str] = field(default_factory=set)
    latencies_s: list[float] = field(default_factory=list)
    held: int = 0
    free_s: float = 0.0
    idle_s: float = 0.0
    worked_s: float = 0.0
    peak_tuples: int = 0
    peak_queue: int = 0

    def __post_init__(self) -> None:
        latent = INTERFACES if self.scenario.name == "latent" else ()
        self.steps = Steps(self.program, frozenset(latent))
        if self.scenario.answer_s is not None:
            self.asker = Asker(self.steps.operators, self._ask)

    def take(self, now_s: float, inbox: Sequence[Message]) -> None:
        """Do what the job does with all messages that have come; afterwards it is ``free_s``."""
        held = self.held
        if held:
            self.idle_s += now_s - self.free_s
        came = sum(isinstance(message, Batch) for message in inbox)
        self.peak_tuples = max(self.peak_tuples, held + came)
        self.peak_queue = max(self.peak_queue, held + len(inbox))
        released: list[Batch] = []
        has_rows = False
        began = time.thread_time()
        self.steps.on_messages(inbox)
        if self.asker is not None:
            self.asker.on_messages(inbox)
        while (step := self.steps.next()) is not None:
            has_rows = has_rows or step.reads_rows
            released += [
                batch for work in step.works for side in work.inputs for _, batch in side.batches
            ]
        if self.asker is not None:
            self.asker.ask()
        spent_s = time.thread_time() - began
        self.worked_s += spent_s
        self.free_s = now_s + spent_s + self.step_s * has_rows
        self.held += came - len(released)
        self.latencies_s += [self.free_s - _extent_s(batch) for batch in released]

    def _ask(self, wanted: Mapping[str, Mapping[str, int]]) -> None:
        self.asked |= set(wanted)


def run(program: Program, scenario: Scenario, step_s: float, seconds: float, seed: int) -> Row:
    """Simulate a scenario."""
    union = Union(program, scenario, step_s)
    streams = union.steps.streams
    numbers = {stream: itertools.count() for stream in streams}
    events = _events(scenario, streams, seconds, seed)
    answers: list[tuple[float, str]] = []
    inbox: deque[Message] = deque()
    upcoming = next(events, None)
    while upcoming is not None or answers:
        first = min(
            upcoming[0] if upcoming is not None else float("inf"),
            answers[0][0] if answers else float("inf"),
        )
        now_s = max(union.free_s, first)
        while upcoming is not None and upcoming[0] <= now_s:
            inbox += _messages(*upcoming, numbers)
            upcoming = next(events, None)
        while answers and answers[0][0] <= now_s:
            inbox += _messages(*heapq.heappop(answers), False, numbers)
        union.take(now_s, inbox)
        inbox.clear()
        for stream in union.asked:
            heapq.heappush(answers, (union.free_s + (scenario.answer_s or 0.0), stream))
        union.asked.clear()
    latencies = union.latencies_s
    lasted_s = max(seconds, union.free_s)
    return Row(
        scenario.name,
        scenario.per_s,
        step_s,
        seconds,
        len(latencies),
        1000 * statistics.fmean(latencies),
        1000 * statistics.median(latencies),
        1000 * max(latencies),
        union.idle_s / lasted_s,
        union.peak_tuples,
        union.peak_queue,
        union.worked_s / lasted_s,
    )


def _events(
    scenario: Scenario, streams: Sequence[str], seconds: float, seed: int
) -> Iterator[tuple[float, str, bool]]:
    """Yield times of messages, their streams, and whether they are tuples or heartbeats."""
    sources = [
        _arrivals(stream, per_s, seconds, random.Random(f"{seed} {stream}"))
        for stream, per_s in zip(streams, (BUSY_PER_S, SLOW_PER_S), strict=True)
    ]
    if scenario.per_s:
        sources += [_beats(stream, scenario.per_s, seconds) for stream in streams]
    return heapq.merge(*sources)


def _arrivals(
    stream: str, per_s: float, seconds: float, chance: random.Random
) -> Iterator[tuple[float, str, bool]]:
    at_s = 0.0
    while (at_s := at_s + chance.expovariate(per_s)) < seconds:
        if chance.random() < PASSES:
            yield at_s, stream, True


def _beats(stream: str, per_s: int, seconds: float) -> Iterator[tuple[float, str, bool]]:
    for number in range(1, int(seconds * per_s)):
        yield number / per_s, stream, False


def _messages(
    at_s: float, stream: str, is_tuple: bool, numbers: Mapping[str, Iterator[int]]
) -> list[Message]:
    time_ns = int(at_s * SECOND_NS)
    found: list[Message] = []
    if is_tuple:
        extents = (
            Extent("time", time_ns // SECOND_NS, time_ns // SECOND_NS),
            Extent("timestamp", time_ns, time_ns),
        )
        found.append(Batch(stream, next(numbers[stream]), "", 1, 40, extents))
    promises = (Punctuation("time", time_ns // SECOND_NS), Punctuation("timestamp", time_ns))
    found.append(Heartbeat(stream, next(numbers[stream]), 0, time_ns, promises))
    return found


def _extent_s(batch: Batch) -> float:
    return batch.extent("timestamp").least / SECOND_NS


def table(rows: Sequence[Row]) -> str:
    """Return the rows as a Markdown table."""
    head = ["scenario", "step s", "mean ms", "median ms", "longest ms", "waits idly %"]
    head += ["peak tuples", "peak tuples and heartbeats", "CPU %"]
    lines = [head, ["---"] + ["---:"] * (len(head) - 1)]
    for row in rows:
        name = f"{row.scenario}, {row.per_s}/s" if row.per_s else row.scenario
        times = (row.latency_ms, row.median_ms, row.worst_ms)
        line = [
            name,
            f"{row.step_s:g}",
            *(f"{ms:.4g}" for ms in times),
            f"{100 * row.idle_share:.3g}",
        ]
        line += [str(row.peak_tuples), str(row.peak_queue), f"{100 * row.cpu_share:.2g}"]
        lines.append(line)
    return "\n".join("| " + " | ".join(line) + " |" for line in lines)


def plot(rows: Sequence[Row], path: Path) -> None:
    """Plot latency, idle waiting and peak queue against heartbeats a second, for each step cost."""
    from matplotlib.figure import Figure

    figures = (
        ("latency_ms", "E1: mean output latency, ms"),
        ("idle_share", "E1: share of time that the union waits idly"),
        ("peak_queue", "E2: peak queue, tuples and heartbeats"),
    )
    steps = sorted({row.step_s for row in rows})
    figure = Figure(figsize=(5 * len(figures), 5 * len(steps)))
    axes = figure.subplots(len(steps), len(figures), squeeze=False)
    for line, step_s in zip(axes, steps, strict=True):
        chosen = [row for row in rows if row.step_s == step_s]
        periodic = [row for row in chosen if row.per_s]
        for ax, (name, caption) in zip(line, figures, strict=True):
            ax.set_xscale("log")
            ax.set_yscale("log")
            rates = [row.per_s for row in periodic]
            ax.plot(rates, [getattr(row, name) for row in periodic], "o-", label="periodic")
            styles = {"none": "k:", "on demand": "C1-", BETWEEN_PROCESSES: "C3-", "latent": "C2--"}
            for scenario, style in styles.items():
                value = next(getattr(row, name) for row in chosen if row.scenario == scenario)
                if value > 0:
                    ax.plot(rates, [value] * len(rates), style, label=f"{scenario}: {value:.3g}")
                else:
                    ax.plot([], [], style, label=f"{scenario}: 0")
            ax.set_title(f"{caption}\n({_cost(step_s)})", fontsize=10)
            ax.set_xlabel("heartbeats/s of each stream")
            ax.grid(visible=True, which="major", alpha=0.3)
            ax.legend(fontsize=8, loc="upper center", bbox_to_anchor=(0.5, -0.16), ncols=2)
    figure.tight_layout()
    figure.savefig(path, dpi=110)


def _cost(step_s: float) -> str:
    return f"steps of {step_s:g} s" if step_s else "bookkeeping alone"


def _main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, allow_abbrev=False)
    parser.add_argument("--seconds", type=float, default=2000)
    parser.add_argument("--step-s", type=float, nargs="+", default=[0, 0.2])
    parser.add_argument("--rates", type=int, nargs="+", default=list(RATES))
    parser.add_argument("--seed", type=int, default=1)
    arguments = parser.parse_args()
    text = QueryText(QUERY, "union_filtered.gsql")
    program = compile_queries([text], CompileContext(INTERFACES)).program
    scenarios = [
        Scenario("none"),
        *(Scenario("periodic", rate) for rate in arguments.rates),
        Scenario("on demand", answer_s=0.0),
        Scenario(BETWEEN_PROCESSES, answer_s=ANSWER_S),
        Scenario("latent"),
    ]
    rows = []
    for step_s in arguments.step_s:
        for scenario in scenarios:
            seconds = arguments.seconds
            if scenario.per_s:
                seconds = min(seconds, MOST_BEATS / 2 / scenario.per_s)
            rows.append(run(program, scenario, step_s, seconds, arguments.seed))
            print(table(rows[-1:]).splitlines()[-1], flush=True)
    write_records(rows, OUT / "timestamps.csv")
    plot(rows, OUT / "timestamps.png")
    print(table(rows))


if __name__ == "__main__":
    _main()
