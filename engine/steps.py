"""Steps: what every operator does with everything released by now, as one evaluation.

Control plane only. ``Steps`` routes messages to the operators' ports and asks each operator, inputs
first, what it takes; the data plane then evaluates the works of one ``Step`` together.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, assert_never

from gscope.engine.commits import batch_from_json, batch_to_json
from gscope.engine.operators import aggregation, merge, selection
from gscope.engine.release import ENDED, Port
from gscope.queries.plan.program import (
    AggregationNode,
    HftaNode,
    MergeNode,
    Program,
    QueryInput,
    SelectionNode,
    StreamInput,
)
from gscope.queries.streams.messages import Batch, EndOfStream, Heartbeat, Message

if TYPE_CHECKING:
    from collections.abc import Iterable

    from gscope.engine.operators.base import Fresh, Operator, Work
    from gscope.engine.release import Bound


@dataclass(frozen=True, slots=True)
class Step:
    """One evaluation: the works of all operators that have something to do, inputs first."""

    number: int
    works: tuple[Work, ...]

    @property
    def reads_rows(self) -> bool:
        """Whether Spark is needed; otherwise only watermarks moved."""
        return any(work.reads_rows or work.carries for work in self.works)


@dataclass(slots=True)
class Steps:
    """The operators of a program and the messages that wait for them."""

    program: Program
    operators: dict[str, Operator] = field(default_factory=dict)
    number: int = 0
    _readers: dict[str, list[Port]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        for node in self.program.nodes:
            operator = _operator(node)
            for name in self._sources(node):
                port = Port(name)
                operator.ports[name] = port
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
                    case _:
                        assert_never(message)

    def next(self) -> Step | None:
        """Everything that is released now; None when nothing is."""
        works: list[Work] = []
        fresh: Fresh = {}
        for query, operator in self.operators.items():
            work = operator.advance(fresh)
            if work is not None:
                works.append(work)
                if work.reads_rows:
                    fresh[query] = work.extents
            bounds = operator.output_bounds()
            for port in self._readers.get(query, ()):
                port.raise_bounds(bounds)
                port.has_ended = port.has_ended or operator.watermark == ENDED
        if not works:
            return None
        self.number += 1
        return Step(self.number, tuple(works))

    def add_carry(self, query: str, upstream: str, batch: Batch) -> None:
        """Rows of ``upstream`` that ``query`` could not take yet wait at its port."""
        self.operators[query].ports[upstream].pending.append(batch)

    def carried(self) -> set[str]:
        """The paths of all carried batches that some operator still waits for."""
        return {
            batch.path
            for operator in self.operators.values()
            for name, port in operator.ports.items()
            if name in self.operators
            for batch in port.pending
        }

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
        """The state that a restart needs, as plain JSON values (bounds may be infinite)."""
        return {
            query: {
                "watermark": operator.watermark,
                "ports": {name: self._port_state(port) for name, port in operator.ports.items()},
            }
            for query, operator in self.operators.items()
        }

    def restore(self, number: int, state: dict[str, Any]) -> None:
        """Continue after step ``number`` from a ``snapshot``."""
        self.number = number
        for query, saved in state.items():
            operator = self.operators[query]
            operator.restore(saved["watermark"])
            for name, port_state in saved["ports"].items():
                port = operator.ports[name]
                port.cursor = port_state["needed"] - 1
                port.has_ended = port_state["ended"]
                port.pending = [batch_from_json(batch) for batch in port_state["carry"]]

    def _port_state(self, port: Port) -> dict[str, Any]:
        if port.name in self.operators:
            # carried batches are nowhere else
            carry = [batch_to_json(batch) for batch in port.pending]
            return {"needed": 0, "ended": port.has_ended, "carry": carry}
        # Batches of the log come again after a restart, and their stream ends again behind them:
        # known to have ended before they are back, it would release them as if there were none.
        is_drained = port.has_ended and not port.pending
        return {"needed": port.first_needed(), "ended": is_drained, "carry": []}

    def watermarks(self) -> dict[str, Bound]:
        """The watermark of every operator, for commits and status."""
        return {query: operator.watermark for query, operator in self.operators.items()}

    def _sources(self, node: HftaNode) -> list[str]:
        inputs = node.inputs if isinstance(node, MergeNode) else (node.input,)
        names: list[str] = []
        for source in inputs:
            match source:
                case StreamInput(lfta=name):
                    names += self.program.lfta(name).streams
                case QueryInput(query=name):
                    names.append(name)
        return names


def _operator(node: HftaNode) -> Operator:
    match node:
        case AggregationNode():
            return aggregation.bookkeeping(node)
        case SelectionNode():
            return selection.bookkeeping(node)
        case MergeNode():
            return merge.bookkeeping(node)
        case _:
            assert_never(node)
