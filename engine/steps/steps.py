"""Steps: one evaluation of all that the operators have released.

Control plane only. ``Steps`` routes messages to the operators' ports and asks each operator, inputs
first, what it reads; the data plane then evaluates the works of one ``Step`` together.
"""

from __future__ import annotations

import time
from collections import Counter
from dataclasses import asdict, field, replace
from typing import TYPE_CHECKING, Any, assert_never

from gscope.engine.operators import (
    aggregation,
    join,
    merge,
    running,
    sample,
    selection,
    top,
    union,
    watchlist_join,
    window,
)
from gscope.engine.operators.base import pending_input
from gscope.engine.operators.lost_rows import is_running
from gscope.engine.steps.incomplete_epochs import IncompleteTracker
from gscope.engine.steps.node_counts import NodeTotals
from gscope.engine.steps.partial_epochs import PartialEpochs
from gscope.engine.steps.unordered_queries import latent_sources
from gscope.engine.storage.commits import batch_from_json, batch_to_json, state_from_json
from gscope.engine.watermarks.bounds import ENDED
from gscope.engine.watermarks.ports import Port
from gscope.queries.plan.program import (
    AggregationNode,
    HftaNode,
    JoinNode,
    MergeNode,
    Program,
    QueryInput,
    RunningNode,
    SelectionNode,
    StreamInput,
    TopNode,
    WatchlistJoinNode,
    node_inputs,
)
from gscope.queries.plan.sampling_operator import SampleNode
from gscope.queries.plan.window_node import WindowNode
from gscope.queries.streams.messages import Batch, EndOfStream, Heartbeat, Message, Shed
from gscope.records import dataclass

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from gscope.engine.operators.base import Operator, Work
    from gscope.engine.steps.epoch_thresholds import SampleThresholds
    from gscope.engine.steps.node_counts import NodeRun
    from gscope.engine.storage.commits import Output
    from gscope.engine.storage.parquet_files import State
    from gscope.engine.watermarks.bounds import Bound
    from gscope.engine.watermarks.release import Fresh
    from gscope.queries.plan.program import Input
    from gscope.queries.streams.leases import AnsweredTimes
    from gscope.queries.streams.thresholds import ThresholdSchedule


@dataclass(frozen=True, slots=True)
class Step:
    """One evaluation: the works of all operators that have some, inputs first."""

    number: int
    works: tuple[Work, ...]

    @property
    def reads_rows(self) -> bool:
        """Whether Spark is needed; if not, only watermarks rose."""
        return any(work.needs_data for work in self.works)


@dataclass(frozen=True, slots=True)
class Carry:
    """Rows of a step that a side of ``reader`` may not read yet; they wait at that side's port."""

    reader: str
    side: int
    batch: Batch


@dataclass(frozen=True, slots=True)
class Evaluation:
    """The results of evaluating a step.

    Attributes:
        outputs: the rows answered, staged but not yet published.
        carries: the rows kept for later steps.
        states: for each operator with rows of its own, those that it keeps for the next step; None
            if it keeps none.
        late: for each query, the number of rows below its watermark.
        trimmed: for each query, the number of rows above the threshold of their epoch.
        runs: what the step did for each node that read rows.
    """

    outputs: tuple[Output, ...] = ()
    carries: tuple[Carry, ...] = ()
    states: tuple[tuple[str, State | None], ...] = ()
    late: tuple[tuple[str, int], ...] = ()
    trimmed: tuple[tuple[str, int], ...] = ()
    runs: tuple[NodeRun, ...] = ()


@dataclass(slots=True)
class Steps:
    """The operators of a program and the messages that wait for them.

    Attributes:
        number: the number of the last step.
        took_ns: how long each operator's last ``advance`` took, nanoseconds.
        shed_tuples: carried rows that were shed for lack of disk space, by the query that was to
            read them.
        trimmed_tuples: rows left out because a sample's threshold fell, by the query that read
            them.
        samples: the thresholds that follow the load; None if none does.
        partial: the epochs that are answered without a host.
        incomplete: the epochs whose answers may lack packets.
        counts: what each operator has read and given.
    """

    program: Program
    latent_interfaces: frozenset[str] = frozenset()
    samples: SampleThresholds | None = None
    operators: dict[str, Operator] = field(default_factory=dict)
    number: int = 0
    took_ns: dict[str, int] = field(default_factory=dict)
    shed_tuples: Counter[str] = field(default_factory=Counter)
    trimmed_tuples: Counter[str] = field(default_factory=Counter)
    partial: PartialEpochs = field(init=False)
    incomplete: IncompleteTracker = field(init=False)
    counts: NodeTotals = field(init=False)
    _readers: dict[str, list[Port]] = field(default_factory=dict)
    _reached: dict[str, frozenset[str]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.partial = PartialEpochs(self.program)
        latent = latent_sources(self.program, self.latent_interfaces)
        for node in self.program.nodes:
            operator = _operator(node, is_latent=node.query in latent)
            for side, source in zip(operator.sides, node_inputs(node), strict=True):
                for name in self._sources(source):
                    port = side.ports[name] = Port(name)
                    self._readers.setdefault(name, []).append(port)
            self.operators[node.query] = operator
        self.incomplete = IncompleteTracker(self.program, self.operators)
        self.counts = NodeTotals(self.operators, self.shed_tuples)

    @property
    def streams(self) -> tuple[str, ...]:
        """The streams of the log that at least one operator reads."""
        return tuple(name for name in self._readers if name not in self.operators)

    def reached(self, name: str) -> frozenset[str]:
        """Return the operators that the punctuation of a stream or query reaches, itself excepted.

        The operators and their sources never change, so the answer is found once for each name.
        """
        found = self._reached.get(name)
        if found is None:
            sources = {name}
            for query, operator in self.operators.items():
                # Inputs come first.
                if any(not sources.isdisjoint(side.ports) for side in operator.sides):
                    sources.add(query)
            found = self._reached[name] = frozenset(sources - {name})
        return found

    def on_messages(self, messages: Iterable[Message]) -> None:
        """Route messages of the log to the ports that read their stream."""
        for message in messages:
            if self.samples is not None and isinstance(message, Heartbeat) and message.schedule:
                self.samples.on_schedule(message.stream, message.schedule)
            if isinstance(message, Heartbeat) and message.gaps:
                self.partial.on_gaps(message.stream, message.gaps)
            self.incomplete.on_message(message)
            for port in self._readers.get(message.stream, ()):
                match message:
                    case Batch():
                        port.on_batch(message)
                    case Heartbeat():
                        port.on_heartbeat(message)
                    case EndOfStream():
                        port.on_end(message.sequence)
                    case Shed():
                        port.on_shed(message)
                    case _:
                        assert_never(message)

    def next(self) -> Step | None:
        """Return a step of all that is released now; None if nothing is.

        What it leaves out of samples, ``sampled`` decides.
        """
        works: list[Work] = []
        fresh: Fresh = {}
        for query, operator in self.operators.items():
            began_ns = time.perf_counter_ns()
            had_state = operator.state is not None
            work = operator.advance(fresh)
            if is_running(operator):
                self.incomplete.on_step(query, had_state=had_state)
            self.took_ns[query] = time.perf_counter_ns() - began_ns
            if work is not None:
                works.append(work)
                if work.reads_rows:
                    fresh[query] = work.extents
            bounds = operator.output_bounds()
            has_ended = operator.watermark == ENDED
            clock = operator.clock() if has_ended else {}
            for port in self._readers.get(query, ()):
                port.raise_bounds(bounds)
                port.raise_clock(clock)
                port.has_ended = port.has_ended or has_ended
        if not works:
            return None
        self.number += 1
        return Step(self.number, tuple(works))

    def answered(self) -> dict[str, AnsweredTimes]:
        """Return the packet times of streams that the last step answers, and those before it."""
        return {} if self.samples is None else self.samples.answered(self.watermarks())

    def sampled(self, step: Step, limits: Mapping[str, ThresholdSchedule]) -> Step:
        """Return ``step`` with what it leaves out of samples, and with the rates that it reads.

        Args:
            step: the last step.
            limits: the limits that the log has set, by stream; they replace those of before.
        """
        if self.samples is None:
            return step
        self.samples.on_limits(limits)
        return replace(step, works=tuple(map(self.samples.applied, step.works)))

    def on_evaluated(self, evaluation: Evaluation) -> None:
        """Record the results of a step; call this before the ``snapshot`` of its commit."""
        for operator in self.operators.values():
            for side in operator.sides:
                side.note_carried((), {})
        for carry in evaluation.carries:
            side = self.operators[carry.reader].sides[carry.side]
            port = side.ports[carry.batch.stream]
            port.pending.append(carry.batch)
            # late rows were left out of it, so none of its rows is late
            port.last_judged_sequence = max(port.last_judged_sequence, carry.batch.sequence)
        for query, state in evaluation.states:
            self.operators[query].state = state
        for query, tuples in evaluation.late:
            self.operators[query].late_tuples += tuples
        self.trimmed_tuples.update(dict(evaluation.trimmed))
        self.counts.on_evaluated(evaluation.runs)

    def carried(self) -> set[str]:
        """Return the paths of all carried batches and states that an operator still needs."""
        carries = {
            batch.path
            for operator in self.operators.values()
            for side in operator.sides
            for name, batch in side.pending
            if name in self.operators
        }
        states = [o.state for o in self.operators.values() if o.state is not None]
        return carries.union(*(state.paths for state in states))

    @property
    def is_finished(self) -> bool:
        """Whether every operator has answered everything."""
        return all(operator.watermark == ENDED for operator in self.operators.values())

    def needed(self) -> dict[str, int]:
        """Return, for each stream, the sequence number of the oldest message still needed."""
        return {
            stream: min(port.first_needed() for port in self._readers[stream])
            for stream in self.streams
        }

    def snapshot(self) -> dict[str, Any]:
        """Return the state that a restart needs, and counters, as plain JSON values.

        Bounds may be infinite.
        """
        return {query: self._operator_state(operator) for query, operator in self.operators.items()}

    @property
    def partitioning(self) -> str:
        """What row groups of carried batches are divided by; "" if by nothing."""
        found = self.program.partitioning
        return "" if found is None else str(found)

    def restore(self, number: int, state: dict[str, Any], partitioning: str | None = None) -> None:
        """Continue after step ``number`` from a ``snapshot``.

        Args:
            number: the number of the last step.
            state: the snapshot.
            partitioning: what carried batches were divided by, None for what divides rows now. If
                it differs, their rows are divided again when they are read.
        """
        is_divided = partitioning in (None, self.partitioning)
        self.number = number
        for query, saved in state.items():
            operator = self.operators[query]
            operator.restore(saved["watermark"], saved["released"])
            operator.late_tuples = saved["late_tuples"]
            self.shed_tuples[query] = saved["shed_tuples"]
            self.trimmed_tuples[query] = saved["trimmed_tuples"]
            self.incomplete.restore(query, saved["incomplete"])
            self.counts.restore(query, saved["counts"])
            if self.samples is not None:
                self.samples.restore(saved["schedules"])
            self.partial.restore(saved["gaps"])
            operator.state = state_from_json(saved["state"]) if saved["state"] else None
            for side, ports in zip(operator.sides, saved["sides"], strict=True):
                for name, port_state in ports.items():
                    port = side.ports[name]
                    port.cursor = port_state["needed"] - 1
                    port.last_judged_sequence = port_state["last_judged"]
                    port.partially_read = frozenset(port_state["partially_read"])
                    port.late_below = {int(n): low for n, low in port_state["late_below"].items()}
                    port.has_ended = port_state["ended"]
                    port.clock = port_state["clock"]
                    port.counted_sequence, port.tuples_in = port_state["counted"]
                    carried = [batch_from_json(batch) for batch in port_state["carry"]]
                    port.pending = [b if is_divided else replace(b, row_groups=()) for b in carried]

    def _operator_state(self, operator: Operator) -> dict[str, Any]:
        held = pending_input(operator)
        return {
            "watermark": operator.watermark,
            "released": operator.released,
            "late_tuples": operator.late_tuples,
            "shed_tuples": self.shed_tuples[operator.node.query],
            "trimmed_tuples": self.trimmed_tuples[operator.node.query],
            "incomplete": self.incomplete.snapshot(operator.node.query),
            "counts": self.counts.snapshot(operator.node.query),
            "schedules": {} if self.samples is None else self.samples.snapshot(operator.node.query),
            "gaps": self.partial.snapshot(operator.node.query),
            "partial": [
                asdict(each) for each in self.partial.of(operator.node.query, operator.watermark)
            ],
            "waiting_tuples": held.tuples,
            "waiting_bytes": held.size_bytes,
            "state": None if operator.state is None else batch_to_json(operator.state),
            "sides": [
                {name: self._port_state(port) for name, port in side.ports.items()}
                for side in operator.sides
            ],
        }

    def _port_state(self, port: Port) -> dict[str, Any]:
        # After a restart the log redelivers its batches, and after them the end of their stream. A
        # port that had already ended would release epochs before these batches are back. Carried
        # batches exist only here.
        is_upstream = port.name in self.operators
        return {
            "needed": 0 if is_upstream else port.first_needed(),
            "last_judged": port.last_judged_sequence,
            "partially_read": sorted(port.partially_read),
            "late_below": port.late_below,
            "ended": port.has_ended and (is_upstream or not port.pending),
            "clock": port.clock,
            "counted": [port.counted_sequence, port.tuples_in],
            "carry": [batch_to_json(batch) for batch in port.pending] if is_upstream else [],
        }

    def output_bounds(self) -> dict[str, dict[str, Bound]]:
        """Return, for each result, bounds of its temporal columns: no later step has rows below."""
        return {
            result: self.operators[source.query].output_bounds()
            for result, source in self.program.results
            if isinstance(source, QueryInput)
        }

    def output_clocks(self) -> dict[str, dict[str, Bound]]:
        """Return, for each result, how far its temporal columns had come when the input ended."""
        return {
            result: self.operators[source.query].clock()
            for result, source in self.program.results
            if isinstance(source, QueryInput)
        }

    def watermarks(self) -> dict[str, Bound]:
        """Return the watermark of every operator, for commits and status."""
        return {query: operator.watermark for query, operator in self.operators.items()}

    def _sources(self, source: Input) -> tuple[str, ...]:
        match source:
            case StreamInput(lfta=name):
                return self.program.lfta(name).streams
            case QueryInput(query=name):
                return (name,)


def _operator(node: HftaNode, *, is_latent: bool) -> Operator:
    match node:
        case AggregationNode():
            return aggregation.bookkeeping(node)
        case RunningNode():
            return running.bookkeeping(node)
        case SampleNode():
            return sample.bookkeeping(node)
        case WindowNode():
            return window.bookkeeping(node)
        case SelectionNode():
            return selection.bookkeeping(node)
        case MergeNode() if is_latent:
            return union.bookkeeping(node)
        case MergeNode():
            return merge.bookkeeping(node)
        case JoinNode():
            return join.bookkeeping(node)
        case TopNode():
            return top.bookkeeping(node)
        case WatchlistJoinNode():
            return watchlist_join.bookkeeping(node)
        case _:
            assert_never(node)
