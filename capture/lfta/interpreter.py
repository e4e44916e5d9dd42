"""LFTAs of one interface, interpreted: slow and simple, the oracle of the compiled runtime.

It shares no code with kernels: packets are dissected in Python, expressions are evaluated by the
catalog, groups are in a dict.
"""

from __future__ import annotations

import math
import random
from dataclasses import field
from typing import TYPE_CHECKING, Any

import numpy as np

from gscope.capture.lfta import declared_orders
from gscope.capture.lfta.columns import ColumnBatch, OutputBuffer, Storage, column_batches
from gscope.capture.lfta.counters import InterfaceCounters, LftaCounters
from gscope.capture.lfta.output_layout import output_layout
from gscope.capture.lfta.punctuation import NO_BOUND, closed_epoch, punctuations
from gscope.capture.packet.decode_errors import Reason
from gscope.capture.packet.dissector.dissect import dissect
from gscope.capture.shedding.thresholds import InitialSampling
from gscope.queries.catalog.aggregate.partial_op import PartialOp
from gscope.queries.catalog.evaluate import evaluate
from gscope.queries.catalog.scalar.integers import wrap
from gscope.queries.catalog.scalar.logic import order_key
from gscope.queries.int64 import MAX_TIME_NS
from gscope.queries.plan.program_sampling import SamplingMethod
from gscope.queries.plan.sampling.keyed_hash import (
    LANE_PACKETS,
    HashKey,
    hash_packet,
    hash_terms,
    rate_of,
)
from gscope.records import dataclass

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from gscope.capture.packet.dissector.dissect import Fields
    from gscope.capture.sources.block import Block
    from gscope.queries.expressions.expressions import Column, Expression, PacketField, Value
    from gscope.queries.plan.program import Lfta, Partial
    from gscope.queries.streams.messages import Punctuation

Row = list["Value"]


class LftaInterpreter:
    """The equivalent of ``LftaRuntime``, one packet at a time; see ``LftaEngine``.

    Args:
        lftas: LFTAs; those attached to ``interface`` are run.
        emit: receives finished batches.
        groups: limit of groups of each LFTA; beyond it a group chosen at random is evicted.
        seed: seed of that choice.
        sampling: which packets sampling LFTAs keep; None to keep all packets.
    """

    def __init__(
        self,
        lftas: Sequence[Lfta],
        interface: str,
        emit: Callable[[str, ColumnBatch], None],
        groups: int = 1 << 16,
        seed: int = 0,
        sampling: InitialSampling | None = None,
    ) -> None:
        self.bound_ns = NO_BOUND
        self.interface_counters = InterfaceCounters()
        self._emit = emit
        chance = random.Random(seed)
        sampling = sampling or InitialSampling(HashKey.of_seed(0), {})
        self._lftas = [
            _InterpretedLfta(lfta, groups, chance, sampling.threshold(lfta.name))
            for lfta in lftas
            if interface in lfta.interfaces
        ]
        self._interface = interface
        self._key = sampling.key
        self._start = self._key.of_interface(interface)
        self._number = 0

    def process(self, block: Block, start: int, until_ns: int = MAX_TIME_NS) -> int:
        """See ``LftaEngine``."""
        for n in range(start, block.count):
            if block.time_ns[n] >= until_ns:
                return n
            self._take(block, n)
        return max(start, block.count)

    def _take(self, block: Block, n: int) -> None:
        time_ns = int(block.time_ns[n])
        counters = self.interface_counters
        number, self._number = self._number, self._number + 1
        if time_ns < self.bound_ns:
            counters.late_packets += 1
            return
        begin = int(block.offset[n])
        fields, reason = dissect(
            block.data[begin : begin + int(block.caplen[n])].tobytes(),
            linktype=int(block.linktype[n]),
            wirelen=int(block.wirelen[n]),
            time_ns=time_ns,
        )
        wanting = [lfta for lfta in self._lftas if lfta.wants(fields)]
        sampled = [lfta for lfta in wanting if self._keeps(lfta, fields, number)]
        if reason is not Reason.NONE:
            counters.odd_packets[reason] = counters.odd_packets.get(reason, 0) + 1
        elif wanting and not sampled:
            counters.shed_packets += 1
        else:
            counters.accepted_packets += 1
        for lfta in sampled:
            lfta.take(fields)

    def _keeps(self, lfta: _InterpretedLfta, fields: Fields, number: int) -> bool:
        """Return whether the packet with a number is in the sample of an LFTA."""
        sampling = lfta.plan.sampling
        if sampling is None:
            return True
        if sampling.method is SamplingMethod.TUPLES:
            hashed = hash_packet(number, self._start, self._key)
        else:
            types = [term.type for term in sampling.terms]
            hashed = hash_terms([_value(term, fields) for term in sampling.terms], types, self._key)
        return self.is_kept(hashed, lfta.threshold)

    def is_kept(self, hashed: int, threshold: int) -> bool:
        """Return whether a hash is in the sample of a threshold."""
        return hashed <= threshold

    def heartbeat(self, clock_ns: int, skew_ns: int = 0) -> dict[str, tuple[Punctuation, ...]]:
        """See ``LftaEngine``."""
        self.bound_ns = max(self.bound_ns, clock_ns - skew_ns)
        promises = {}
        for lfta in self._lftas:
            if lfta.plan.is_aggregation:
                last = closed_epoch(lfta.plan, self.bound_ns)
                if last is not None:
                    lfta.flush(last)
            self._hand_over(lfta)
            promises[lfta.plan.name] = punctuations(lfta.plan, self.bound_ns, lfta.floors)
        return promises

    def finish(self) -> None:
        """See ``LftaEngine``."""
        for lfta in self._lftas:
            lfta.flush(MAX_TIME_NS)
            self._hand_over(lfta)

    def _hand_over(self, lfta: _InterpretedLfta) -> None:
        if lfta.rows:
            buffer = _filled(lfta, self._interface)
            rows = (0, len(lfta.rows))
            (batch,) = column_batches(lfta.plan.name, buffer, (rows,), lambda _: None)
            lfta.rows = []
            self._emit(lfta.plan.name, batch)

    def set_threshold(self, lfta: str, threshold: int) -> None:
        """See ``LftaEngine``."""
        for each in self._lftas:
            if each.plan.name == lfta:
                if each.plan.has_rate_column:
                    each.flush(MAX_TIME_NS)
                    self._hand_over(each)
                each.threshold = threshold

    def begin_lane(self, lane: int) -> None:
        """See ``LftaEngine``."""
        self._number = lane * LANE_PACKETS

    def lfta_counters(self, lfta: str) -> LftaCounters:
        """See ``LftaEngine``."""
        return next(x.counters for x in self._lftas if x.plan.name == lfta)


@dataclass(slots=True)
class _InterpretedLfta:
    plan: Lfta
    limit: int
    chance: random.Random
    threshold: int
    counters: LftaCounters = field(default_factory=LftaCounters)
    groups: dict[tuple[Value, ...], list[Value]] = field(default_factory=dict)
    rows: list[Row] = field(default_factory=list)
    floors: list[int] = field(init=False)

    def __post_init__(self) -> None:
        self.floors = [declared_orders.NO_FLOOR] * len(self.plan.declared)

    def wants(self, fields: Fields) -> bool:
        predicate = self.plan.predicate
        return predicate is None or _value(predicate, fields) is True

    def take(self, fields: Fields) -> None:
        def value(expression: Expression) -> Value:
            return _value(expression, fields)

        plan = self.plan
        self.counters.matched_tuples += 1
        if plan.declared:
            values = [value(call.arguments[0]) for call in plan.declared]
            if not declared_orders.take(plan.declared, self.floors, values):
                self.counters.out_of_order_tuples += 1
                return
        if not plan.is_aggregation:
            self._put_out([value(column.expression) for column in plan.columns])
            return
        key = tuple(_canonical(value(term.expression)) for term in plan.keys)
        if key[self._epoch] is None:
            self.counters.without_epoch_tuples += 1
            return
        if key not in self.groups:
            if len(self.groups) >= self.limit:
                self._evict(self.chance.choice(list(self.groups)))
            self.groups[key] = [0 if p.op is PartialOp.COUNT else None for p in plan.partials]
        states = self.groups[key]
        for n, partial in enumerate(plan.partials):
            argument = None if partial.argument is None else value(partial.argument)
            states[n] = _fold(partial, states[n], argument)
        self.counters.live_groups = len(self.groups)

    @property
    def _epoch(self) -> int:
        return [key.name for key in self.plan.keys].index(self.plan.epoch or "")

    def _evict(self, key: tuple[Value, ...]) -> None:
        self.counters.evicted_groups += 1
        self._leave(key)

    def _leave(self, key: tuple[Value, ...]) -> None:
        self._put_out([*key, *self.groups.pop(key)])
        self.counters.live_groups = len(self.groups)

    def _put_out(self, row: Row) -> None:
        self.rows.append(row)
        self.counters.out_tuples += 1

    def flush(self, last: int) -> None:
        """Emit the groups of epochs up to ``last``."""
        for key in list(self.groups):
            epoch = key[self._epoch]
            if isinstance(epoch, int) and epoch <= last:
                self._leave(key)


def _value(expression: Expression, fields: Fields) -> Value:
    def leaf(name: PacketField | Column) -> Value:
        return fields[name.name]

    return evaluate(expression, leaf)


def _canonical(value: Value) -> Value:
    """Return the value that represents all that compare equal: one NaN, one zero."""
    if isinstance(value, float):
        return math.nan if math.isnan(value) else value + 0.0
    return value


def _fold(partial: Partial, state: Value, argument: Value) -> Value:
    """Return the state after one more tuple."""
    if partial.op is PartialOp.COUNT:
        counts = partial.argument is None or argument is not None
        return wrap(int(state or 0) + counts) if isinstance(state, int) else state
    if argument is None:
        return state
    argument = _canonical(argument)
    if state is None:
        return argument
    match partial.op:
        case PartialOp.MIN:
            return min(state, argument, key=order_key)
        case PartialOp.MAX:
            return max(state, argument, key=order_key)
    assert isinstance(state, int)
    assert isinstance(argument, int)
    match partial.op:
        case PartialOp.OR:
            return state | argument
        case PartialOp.AND:
            return state & argument
        case PartialOp.XOR:
            return state ^ argument
    return wrap(state + argument)


_DTYPES: dict[Storage, np.dtype[Any]] = {
    Storage.BYTE: np.dtype(np.uint8),
    Storage.INT32: np.dtype(np.int32),
    Storage.INT64: np.dtype(np.int64),
    Storage.FLOAT: np.dtype(np.float64),
}


def _filled(lfta: _InterpretedLfta, interface: str) -> OutputBuffer:
    """Return the rows of an LFTA in a buffer of their own."""
    layout = output_layout(lfta.plan, interface)
    rows = lfta.rows
    heap = sum(len(value) for row in rows for value in row if isinstance(value, bytes))
    buffer = OutputBuffer(layout, len(rows), heap + 1)
    buffer.set_rate(rate_of(lfta.threshold))
    for n, column in enumerate(layout.columns):
        values = [row[n] for row in rows]
        validity = buffer.validity[n]
        if validity is not None:
            validity[:] = [value is not None for value in values]
        target = buffer.values[n]
        if column.storage is Storage.STRING:
            texts = [value if isinstance(value, bytes) else b"" for value in values]
            joined = b"".join(texts)
            heap_bytes = buffer.heaps[n]
            assert heap_bytes is not None
            heap_bytes[: len(joined)] = np.frombuffer(joined, np.uint8)
            target.view(np.int32)[:] = np.cumsum([0, *map(len, texts)])
        elif column.storage is Storage.IP:
            words = [_integer(value).to_bytes(16, "big") for value in values]
            target[: 16 * len(rows)] = np.frombuffer(b"".join(words), np.uint8)
        else:
            target.view(_DTYPES[column.storage])[: len(rows)] = [
                0 if value is None else value for value in values
            ]
    return buffer


def _integer(value: Value) -> int:
    return value if isinstance(value, int) else 0
