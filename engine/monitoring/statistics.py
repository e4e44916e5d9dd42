"""The HFTA job's counters for other processes: ``job/stats.json`` in the run's folder.

The job writes the file before and after each step, and once a second while messages arrive, even if
nothing is released. Counters start with the run: a restarted job continues from the file of the job
before it, and from the commits after that. ``docs/status.schema.json`` lists the fields.
"""

from __future__ import annotations

import math
import os
import threading
import time
from dataclasses import asdict, field
from typing import TYPE_CHECKING, Any

from gscope.engine.monitoring.step_progress import CurrentStep
from gscope.engine.operators.base import pending_input
from gscope.engine.operators.window import WindowOperator
from gscope.engine.steps.blocking_streams import held_by
from gscope.engine.storage.counts import Counts
from gscope.engine.watermarks.event_time import EventTimes
from gscope.queries.plan.program import QueryInput
from gscope.queries.run_folder.recent_counts import RecentCounts
from gscope.queries.run_folder.snapshot import SnapshotFile, read_snapshot
from gscope.queries.streams.messages import Batch, EndOfStream, Heartbeat
from gscope.records import dataclass

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping
    from pathlib import Path

    from gscope.engine.monitoring.traces import Tracer
    from gscope.engine.operators.base import Operator
    from gscope.engine.steps.steps import Step, Steps
    from gscope.engine.storage.commits import Commit, Output
    from gscope.engine.watermarks.bounds import Bound
    from gscope.engine.watermarks.ports import Port
    from gscope.queries.plan.program import Input
    from gscope.queries.streams.messages import Message

SCHEMA = 1

_PAGE_BYTES = os.sysconf("SC_PAGE_SIZE")
_TICKS = os.sysconf("SC_CLK_TCK")


@dataclass(slots=True)
class _StreamCounters:
    """The messages received of one stream of the log."""

    batches_total: int = 0
    tuples_total: int = 0
    bytes_total: int = 0
    heartbeats_total: int = 0
    last_heartbeat_ns: int | None = None
    has_ended: bool = False


@dataclass(slots=True)
class _StepCounters:
    """The steps that were evaluated and committed."""

    evaluated_total: int = 0
    seconds_total: float = 0.0
    tuples_total: int = 0
    rows_total: int = 0
    last_seconds: float = 0.0
    last_tuples: int = 0


@dataclass(slots=True)
class _QueryCounters:
    """The answers of one query."""

    rows_total: int = 0
    last_answer_ns: int | None = None


@dataclass(slots=True)
class _Since:
    """What the job is doing, since when, and the counts of the last commit."""

    state: str
    since_ns: int
    counts: Counts = field(default_factory=Counts)


class JobStatistics:
    """The job's counters and their file; for one thread, except for ``on_look``.

    Args:
        path: the path of the file.
        steps: the operators.
        tracer: the tracer of heartbeats.
        java_pid: returns the process number of Spark's Java; None if there is none.
        wall_ns: a clock, nanoseconds since 1970.
        monotonic: a monotonic clock, seconds.

    Attributes:
        asked_total: the number of heartbeats demanded so far.
    """

    def __init__(
        self,
        path: Path,
        steps: Steps,
        tracer: Tracer,
        java_pid: Callable[[], int | None],
        *,
        wall_ns: Callable[[], int] = time.time_ns,
        monotonic: Callable[[], float] = time.monotonic,
    ) -> None:
        self.asked_total = 0
        self._steps = steps
        self._tracer = tracer
        self._java_pid = java_pid
        self._wall_ns = wall_ns
        self._times = EventTimes(steps.program)
        self._file = SnapshotFile(path, monotonic)
        earlier = read_snapshot(path) or {}
        self._earlier = earlier if earlier.get("schema") == SCHEMA else {}
        self._began_ns = self._earlier.get("began_ns", wall_ns())
        self._streams = {name: _StreamCounters() for name in steps.streams}
        self._answered = _StepCounters()
        self._queries: dict[str, _QueryCounters] = {}
        self._since = _Since("waiting", wall_ns())
        self._recent = RecentCounts()
        self._current_step: CurrentStep | None = None
        self._written: dict[str, Any] = {}
        self._writing = threading.Lock()

    def recover(self, commits: Iterable[Commit]) -> None:
        """Continue from the file of an earlier job of the run, and from commits that it lacks."""
        written = self._earlier.get("steps", {})
        for query in self._earlier.get("queries", ()):
            self._queries[query["name"]] = _QueryCounters(
                query["rows_total"], query["last_answer_ns"]
            )
        for name in ("evaluated_total", "seconds_total", "tuples_total", "rows_total"):
            setattr(self._answered, name, written.get(name, 0))
        for commit in commits:
            self._since.counts = commit.counts
            if commit.step > written.get("number", 0):
                self._answered.evaluated_total += 1
                self._count(commit.outputs)

    def on_messages(self, messages: Iterable[Message]) -> None:
        """Count messages from the log."""
        for message in messages:
            counters = self._streams.get(message.stream)
            if counters is None:
                continue
            if isinstance(message, Batch):
                counters.batches_total += 1
                counters.tuples_total += message.rows
                counters.bytes_total += message.size_bytes
            elif isinstance(message, Heartbeat):
                counters.heartbeats_total += 1
                counters.last_heartbeat_ns = self._wall_ns()
            elif isinstance(message, EndOfStream):
                counters.has_ended = True

    def evaluating(self, step: Step) -> None:
        """Note that the evaluation of a step begins."""
        self._since.state, self._since.since_ns = f"step {step.number}", self._wall_ns()
        self._current_step = CurrentStep(step.number, 0.0, 0.0)
        self.write()

    def on_look(self, step: CurrentStep) -> None:
        """Write the duration of the current step if the file is old; for any thread.

        All other fields keep the values that they had when the step began.
        """
        with self._writing:
            written = self._written.get("current_step")
            if written is not None and written["number"] == step.number and self._file.is_due:
                now = {"current_step": _current_step_fields(step), **self._process_fields()}
                self._file.write({**self._written, **now})

    def on_commit(
        self, step: Step, outputs: Iterable[Output], seconds: float, counts: Counts
    ) -> None:
        """Count a committed step, whose evaluation took ``seconds``."""
        tuples = sum(work.rows for work in step.works)
        self._answered.evaluated_total += 1
        self._answered.seconds_total += seconds
        self._answered.last_seconds = seconds
        self._answered.tuples_total += tuples
        self._answered.last_tuples = tuples
        self._count(outputs)
        self._since = _Since("waiting", self._wall_ns(), counts)
        self._current_step = None
        self.write()

    def refresh(self) -> None:
        """Replace the file if it is older than its interval."""
        if self._file.is_due:
            self.write()

    def write(self) -> None:
        """Replace the file."""
        document = self._document()
        with self._writing:
            self._written = document
            self._file.write(document)

    def _count(self, outputs: Iterable[Output]) -> None:
        for output in outputs:
            counters = self._queries.setdefault(output.query, _QueryCounters())
            counters.rows_total += output.rows
            self._answered.rows_total += output.rows
            if output.rows:
                counters.last_answer_ns = self._wall_ns()

    def _document(self) -> dict[str, Any]:
        steps, tracer = self._steps, self._tracer
        counts = {name: self._node_counts(name) for name in steps.operators}
        recent = self._recent.since(self._wall_ns(), {n: _rated(f) for n, f in counts.items()})
        return {
            "schema": SCHEMA,
            "began_ns": self._began_ns,
            **self._process_fields(),
            "state": self._since.state,
            "state_since_ns": self._since.since_ns,
            "clock_ns": tracer.clock_ns,
            "current_step": None
            if self._current_step is None
            else _current_step_fields(self._current_step),
            "steps": {"number": steps.number, **_step_fields(self._answered)},
            "streams": [self._stream(name) for name in steps.streams],
            "operators": [
                {**self._operator(name), **counts[name], "recent": recent[name]}
                for name in steps.operators
            ],
            "queries": [self._query(name, source) for name, source in steps.program.results],
            **asdict(self._since.counts),
            "heartbeats": {
                "heartbeats_total": tracer.heartbeats_total,
                "idle_total": tracer.idle_total,
                "asked_total": self.asked_total,
                "newest": tracer.newest(steps),
            },
        }

    def _process_fields(self) -> dict[str, Any]:
        java_pid = self._java_pid()
        return {
            "written_ns": self._wall_ns(),
            "pid": os.getpid(),
            "memory_bytes": _memory_bytes("self"),
            "cpu_s": round(time.process_time(), 3),
            "java_pid": java_pid,
            "java_memory_bytes": _memory_bytes(java_pid),
            "java_cpu_s": _cpu_s(java_pid),
        }

    def _stream(self, name: str) -> dict[str, Any]:
        counters = self._streams[name]
        return {
            "name": name,
            "batches_total": counters.batches_total,
            "tuples_total": counters.tuples_total,
            "bytes_total": counters.bytes_total,
            "heartbeats_total": counters.heartbeats_total,
            "last_heartbeat_ns": counters.last_heartbeat_ns,
            "has_ended": counters.has_ended,
        }

    def _operator(self, name: str) -> dict[str, Any]:
        operator = self._steps.operators[name]
        held, state = pending_input(operator), operator.state
        return {
            "name": name,
            "kind": type(operator.node).__name__.removesuffix("Node").lower(),
            **self._progress(name, operator),
            "late_tuples_total": operator.late_tuples,
            "shed_tuples_total": self._steps.shed_tuples.get(name, 0),
            "trimmed_tuples_total": self._steps.trimmed_tuples.get(name, 0),
            "partial": [asdict(each) for each in self._steps.partial.of(name, operator.watermark)],
            "incomplete_epochs_total": self._steps.incomplete.counts(name),
            "incomplete_epochs": [
                {field: value for field, value in asdict(each).items() if field != "query"}
                for each in self._steps.incomplete.recent(name)
            ],
            "waiting_tuples": held.tuples,
            "waiting_bytes": held.size_bytes,
            "state_tuples": 0 if state is None else state.rows,
            "state_bytes": 0 if state is None else state.size_bytes,
            "open_window_end": _finite(operator.open_window_end)
            if isinstance(operator, WindowOperator)
            else None,
            "waits_for": list(held_by(self._steps.operators, name)),
            "sides": [[_port(port) for port in side.ports.values()] for side in operator.sides],
        }

    def _node_counts(self, name: str) -> dict[str, int | None]:
        """Return what an operator has read and given, never less than an earlier job has written.

        A job that was killed had counted tuples that reached it since its last commit; they are
        redelivered soon after the start.
        """
        counts = self._steps.counts.fields(name)
        for earlier in self._earlier.get("operators", ()):
            if earlier["name"] == name:
                for counter, count in counts.items():
                    before = earlier.get(counter)
                    if count is not None and before is not None:
                        counts[counter] = max(count, before)
        return counts

    def _query(self, name: str, source: Input) -> dict[str, Any]:
        """Return the fields of a result.

        A result that needs no Spark bypasses this process; its LFTA counts the rows.
        """
        counters = self._queries.get(name, _QueryCounters())
        operator = None
        if isinstance(source, QueryInput):
            operator = self._steps.operators[source.query]
        return {
            "name": name,
            "lfta": None if isinstance(source, QueryInput) else source.lfta,
            **self._progress(name if operator is None else operator.node.query, operator),
            "rows_total": counters.rows_total,
            "late_tuples_total": 0 if operator is None else operator.late_tuples,
            "last_answer_ns": counters.last_answer_ns,
        }

    def _progress(self, name: str, operator: Operator | None) -> dict[str, Any]:
        watermark = -math.inf if operator is None else operator.watermark
        return {
            "watermark": _finite(watermark),
            "watermark_ns": self._times.of(name, watermark),
            "has_ended": watermark == math.inf,
        }


def _rated(fields: Mapping[str, int | None]) -> dict[str, int | None]:
    """Return the counters of which there are rates, by the names of rates."""
    return {
        "tuples_in": fields["tuples_in_total"],
        "tuples_out": fields["tuples_out_total"],
        "cpu_ns": fields["cpu_ns"],
    }


def _current_step_fields(step: CurrentStep) -> dict[str, Any]:
    return {
        "number": step.number,
        "seconds": round(step.seconds, 1),
        "still_seconds": round(step.still_seconds, 1),
    }


def _step_fields(counters: _StepCounters) -> dict[str, Any]:
    seconds, evaluated = counters.seconds_total, counters.evaluated_total
    return {
        "evaluated_total": evaluated,
        "seconds_total": round(seconds, 3),
        "tuples_total": counters.tuples_total,
        "rows_total": counters.rows_total,
        "last_seconds": round(counters.last_seconds, 3),
        "last_tuples": counters.last_tuples,
        "average_seconds": round(seconds / evaluated, 3) if evaluated else None,
        "tuples_per_second": round(counters.tuples_total / seconds, 1) if seconds else None,
    }


def _port(port: Port) -> dict[str, Any]:
    return {
        "name": port.name,
        "punctuation": {column: _finite(bound) for column, bound in port.bounds.items()},
        "waiting_tuples": sum(batch.rows for batch in port.pending),
        "waiting_bytes": sum(batch.size_bytes for batch in port.pending),
        "has_ended": port.has_ended,
    }


def _finite(bound: Bound) -> Bound | None:
    return bound if math.isfinite(bound) else None


def _memory_bytes(pid: int | str | None) -> int | None:
    """Return the resident memory of a process; None if it is gone."""
    try:
        with open(f"/proc/{pid}/statm", "rb") as file:  # noqa: PTH123  # 3 times as fast as Path
            return int(file.read().split()[1]) * _PAGE_BYTES
    except (OSError, IndexError, ValueError):
        return None


def _cpu_s(pid: int | None) -> float | None:
    """Return the CPU time of a process, seconds; None if it is gone."""
    try:
        with open(f"/proc/{pid}/stat", "rb") as file:  # noqa: PTH123  # as above
            fields = file.read().rsplit(b")", 1)[1].split()
        return (int(fields[11]) + int(fields[12])) / _TICKS
    except (OSError, IndexError, ValueError):
        return None
