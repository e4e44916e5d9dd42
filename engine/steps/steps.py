"""Steps: what every operator does with everything released by now, as one evaluation.

Control plane only. ``Steps`` routes messages to the operators' ports and asks each operator, inputs
first, what it takes; the data plane then evaluates the works of one ``Step`` together.
"""

from __future__ import annotations

import time
from collections import Counter
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, assert_never

from gscope.engine.operators import (
    aggregation,
    join,
    merge,
    running,
    selection,
    union,
    watchlist_join,
)
from gscope.engine.operators.base import waiting
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
    WatchlistJoinNode,
    node_inputs,
)
from gscope.queries.streams.messages import Batch, EndOfStream, Heartbeat, Message, Shed

if TYPE_CHECKING:
    from collections.abc import Iterable

    from gscope.engine.operators.base import Operator, Work
    from gscope.engine.storage.commits import Output
    from gscope.engine.storage.written import State
    from gscope.engine.watermarks.bounds import Bound
    from gscope.engine.watermarks.release import Fresh
    from gscope.queries.plan.program import Input


@dataclass(frozen=True, slots=True)
class Step:
    """One evaluation: the works of all operators that have something to do, inputs first."""

    number: int
    works: tuple[Work, ...]

    @property
    def reads_rows(self) -> bool:
        """Whether Spark is needed; otherwise only watermarks moved."""
        return any(work.needs_data for work in self.works)


@dataclass(frozen=True, slots=True)
class Carry:
    """Rows of a step that one side of ``reader`` could not take yet; they wait at that side's port."""

    reader: str
    side: int
    batch: Batch


@dataclass(frozen=True, slots=True)
class Evaluation:
    """What evaluating a step gave.

    Attributes:
        outputs: staged, not yet published.
        carries: rows for later steps.
        states: for each operator with a state of its own what it left this time.
        late: for each query rows found below its watermark.
    """

    outputs: tuple[Output, ...] = ()
    carries: tuple[Carry, ...] = ()
    states: tuple[tuple[str, State | None], ...] = ()
    late: tuple[tuple[str, int], ...] = ()


@dataclass(slots=True)
class Steps:
    """The operators of a program and the messages that wait for them.

    Attributes:
        number: of the last step.
        took_ns: how long each operator looked for what is released, the last time.
        shed_tuples: carried rows that were dropped for want of room, by the query that was to read them.
    """

    program: Program
    latent_interfaces: frozenset[str] = frozenset()
    operators: dict[str, Operator] = field(default_factory=dict)
    number: int = 0
    took_ns: dict[str, int] = field(default_factory=dict)
    shed_tuples: Counter[str] = field(default_factory=Counter)
    _readers: dict[str, list[Port]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        latent = latent_sources(self.program, self.latent_interfaces)
        for node in self.program.nodes:
            operator = _operator(node, is_latent=node.query in latent)
            for side, source in zip(operator.sides, node_inputs(node), strict=True):
                for name in self._sources(source):
                    port = side.ports[name] = Port(name)
                    self._readers.setdefault(name, []).append(port)
            self.operators[node.query] = operator

    @property
    def streams(self) -> tuple[str, ...]:
        """The streams of the log that some operator reads."""
        return tuple(name for name in self._readers if name not in self.operators)

    def on_messages(self, messages: Iterable[Message]) -> None:
        """Route messages of the log to the ports that read their stream."""
        for message in messages:
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
        """Everything that is released now; None when nothing is."""
        works: list[Work] = []
        fresh: Fresh = {}
        for query, operator in self.operators.items():
            began_ns = time.perf_counter_ns()
            work = operator.advance(fresh)
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

    def on_evaluated(self, evaluation: Evaluation) -> None:
        """Take over what the data plane made of a step; to be done before its ``snapshot``."""
        for carry in evaluation.carries:
            side = self.operators[carry.reader].sides[carry.side]
            port = side.ports[carry.batch.stream]
            port.pending.append(carry.batch)
            # late rows were left out of it, so that none of its rows is late any more
            port.last_judged_sequence = max(port.last_judged_sequence, carry.batch.sequence)
        for query, state in evaluation.states:
            self.operators[query].state = state
        for query, tuples in evaluation.late:
            self.operators[query].late_tuples += tuples

    def carried(self) -> set[str]:
        """The paths of all carried batches and states that some operator still needs."""
        carries = {
            batch.path
            for operator in self.operators.values()
            for side in operator.sides
            for name, batch in side.pending
            if name in self.operators
        }
        return carries | {o.state.path for o in self.operators.values() if o.state is not None}

    @property
    def is_finished(self) -> bool:
        """Whether every operator has answered everything."""
        return all(operator.watermark == ENDED for operator in self.operators.values())

    def needed(self) -> dict[str, int]:
        """For each stream the sequence number of the oldest message still needed."""
        return {
            stream: min(port.first_needed() for port in self._readers[stream])
            for stream in self.streams
        }

    def snapshot(self) -> dict[str, Any]:
        """The state that a restart needs, and what is to be known, as plain JSON values.

        Bounds may be infinite.
        """
        return {query: self._operator_state(operator) for query, operator in self.operators.items()}

    def restore(self, number: int, state: dict[str, Any]) -> None:
        """Continue after step ``number`` from a ``snapshot``."""
        self.number = number
        for query, saved in state.items():
            operator = self.operators[query]
            operator.restore(saved["watermark"], saved["released"])
            operator.late_tuples = saved["late_tuples"]
            self.shed_tuples[query] = saved["shed_tuples"]
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
                    port.pending = [batch_from_json(batch) for batch in port_state["carry"]]

    def _operator_state(self, operator: Operator) -> dict[str, Any]:
        held = waiting(operator)
        return {
            "watermark": operator.watermark,
            "released": operator.released,
            "late_tuples": operator.late_tuples,
            "shed_tuples": self.shed_tuples[operator.node.query],
            "waiting_tuples": held.tuples,
            "waiting_bytes": held.size_bytes,
            "state": None if operator.state is None else batch_to_json(operator.state),
            "sides": [
                {name: self._port_state(port) for name, port in side.ports.items()}
                for side in operator.sides
            ],
        }

    def _port_state(self, port: Port) -> dict[str, Any]:
        # Batches of the log come again after a restart, and their stream ends again behind them:
        # known to have ended before they are back, it would release them as if there were none.
        # Carried batches are nowhere else.
        is_upstream = port.name in self.operators
        return {
            "needed": 0 if is_upstream else port.first_needed(),
            "last_judged": port.last_judged_sequence,
            "partially_read": sorted(port.partially_read),
            "late_below": port.late_below,
            "ended": port.has_ended and (is_upstream or not port.pending),
            "clock": port.clock,
            "carry": [batch_to_json(batch) for batch in port.pending] if is_upstream else [],
        }

    def output_bounds(self) -> dict[str, dict[str, Bound]]:
        """For each result its temporal columns, below which no later step has rows."""
        return {
            result: self.operators[source.query].output_bounds()
            for result, source in self.program.results
            if isinstance(source, QueryInput)
        }

    def watermarks(self) -> dict[str, Bound]:
        """The watermark of every operator, for commits and status."""
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
        case SelectionNode():
            return selection.bookkeeping(node)
        case MergeNode() if is_latent:
            return union.bookkeeping(node)
        case MergeNode():
            return merge.bookkeeping(node)
        case JoinNode():
            return join.bookkeeping(node)
        case WatchlistJoinNode():
            return watchlist_join.bookkeeping(node)
        case _:
            assert_never(node)
