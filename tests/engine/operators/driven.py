"""One operator under test: messages in, what each step releases out."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from gscope.engine.steps.steps import Steps
from gscope.queries.compile import CompileContext, QueryText, compile_queries
from gscope.queries.streams.messages import Batch, EndOfStream, Extent, Heartbeat, Punctuation

if TYPE_CHECKING:
    from gscope.engine.operators.base import Operator, Work
    from gscope.queries.plan.program import Program
    from gscope.queries.streams.messages import Message


@dataclass
class Driven:
    """The one query of ``text`` on the interfaces ``a`` and ``b``, or on those that it names.

    Instead of a text it may be a compiled program.

    The n-th stream is the one of the n-th interface. ``column`` is the temporal column of streams.
    """

    text: str | Program
    column: str = "time"
    latent: frozenset[str] = frozenset()
    steps: Steps = field(init=False)
    sent: list[Message] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.steps = self._fresh()

    @property
    def operator(self) -> Operator:
        (operator,) = self.steps.operators.values()
        return operator

    def batch(self, stream: int, least: int, greatest: int, rows: int = 1) -> Batch:
        """Send a batch of rows between two values of the temporal column."""
        name = self.steps.streams[stream]
        path = f"{name}-{len(self.sent)}"
        extents = (Extent(self.column, least, greatest),)
        made = Batch(name, self._next(name), path, rows, 10 * rows, extents)
        self._send(made)
        return made

    def beat(self, *bounds: int) -> None:
        """Send each stream a heartbeat that promises its bound."""
        for name, bound in zip(self.steps.streams, bounds, strict=True):
            promise = (Punctuation(self.column, bound),)
            self._send(Heartbeat(name, self._next(name), 0, 0, promise))

    def end(self, *streams: int) -> None:
        for stream in streams:
            name = self.steps.streams[stream]
            self._send(EndOfStream(name, self._next(name)))

    def released(self) -> list[Work]:
        """Return the works of all steps that there are now."""
        works: list[Work] = []
        before = self.operator.watermark
        while (step := self.steps.next()) is not None:
            works += step.works
            assert self.operator.watermark >= before
            before = self.operator.watermark
        return works

    def restart(self) -> None:
        """Continue from the last commit; the log sends again what the operator still needs."""
        watermark, released = self.operator.watermark, self.operator.released
        state = json.loads(json.dumps(self.steps.snapshot()))
        needed = self.steps.needed()
        number = self.steps.number
        self.steps = self._fresh()
        self.steps.restore(number, state)
        self.steps.on_messages(m for m in self.sent if m.sequence >= needed[m.stream])
        assert (self.operator.watermark, self.operator.released) == (watermark, released)

    def waiting(self) -> list[Batch]:
        """Return the batches that the operator retains."""
        return [batch for side in self.operator.sides for _, batch in side.pending]

    def _send(self, message: Message) -> None:
        self.sent.append(message)
        self.steps.on_messages([message])

    def _next(self, stream: str) -> int:
        return sum(message.stream == stream for message in self.sent)

    def _fresh(self) -> Steps:
        compiled = program(self.text) if isinstance(self.text, str) else self.text
        return Steps(compiled, self.latent)


def program(text: str) -> Program:
    context = CompileContext(("a", "b"))
    compiled = compile_queries([QueryText(text, "q.gsql")], context).program
    assert len(compiled.nodes) == 1
    return compiled


def batches(work: Work, side: int = 0) -> list[Batch]:
    """Return the batches that a side of ``work`` reads."""
    return [batch for _, batch in work.inputs[side].batches]
