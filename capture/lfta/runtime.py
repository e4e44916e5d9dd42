"""LFTAs of one interface, compiled: blocks in, columnar batches and punctuation out."""

from __future__ import annotations

import queue
from typing import TYPE_CHECKING, Protocol

import numpy as np

from gscope.capture.lfta.batch_decoder import LISTS_BYTES
from gscope.capture.lfta.columns import ColumnBatch, OutputBuffer, column_batches
from gscope.capture.lfta.counters import InterfaceCounters, LftaCounters
from gscope.capture.lfta.declared_orders import NO_FLOOR
from gscope.capture.lfta.kernel_arguments import (
    BatchMemory,
    KernelEntry,
    PacketRange,
    StateArrays,
    block_arrays,
    run_arguments,
)
from gscope.capture.lfta.memory import Area
from gscope.capture.lfta.output_layout import output_layout
from gscope.capture.lfta.pre_sample_table import PreSampleTable
from gscope.capture.lfta.punctuation import NO_BOUND, closed_epoch, punctuations
from gscope.capture.lfta.sampling_kernels import FATES_BYTES
from gscope.capture.lfta.state import (
    MAX_DECLARED,
    PACKETS_PER_BATCH,
    InterfaceState,
    LftaState,
    SamplingState,
    interface_words,
    state_words,
)
from gscope.capture.packet.decode_errors import Reason
from gscope.capture.packet.record import RECORD_BYTES
from gscope.capture.packet.workspace import WORKSPACE_BYTES
from gscope.capture.shedding.thresholds import InitialSampling
from gscope.queries.catalog.scalar.integers import wrap
from gscope.queries.int64 import MAX_TIME_NS
from gscope.queries.plan.sampling.keyed_hash import LANE_PACKETS, HashKey, mix, rate_of

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from numpy.typing import NDArray

    from gscope.capture.lfta.cache import CompiledKernel
    from gscope.capture.lfta.settings import LftaSettings
    from gscope.capture.sources.block import Block
    from gscope.queries.plan.program import Lfta
    from gscope.queries.streams.messages import Punctuation


class LftaEngine(Protocol):
    """The LFTAs of one interface, compiled or interpreted."""

    @property
    def bound_ns(self) -> int:
        """Packets earlier than this are late; it never falls."""

    def process(self, block: Block, start: int, until_ns: int = MAX_TIME_NS) -> int:
        """Process packets of ``block`` from ``start`` on, up to the first at or after ``until_ns``.

        The engine keeps no reference to the block.

        Returns:
            The number of the first packet that was not processed.
        """

    def heartbeat(self, clock_ns: int, skew_ns: int = 0) -> dict[str, tuple[Punctuation, ...]]:
        """Promise that no packet earlier than ``clock_ns - skew_ns`` will be accepted.

        Emits all groups of epochs that this closes, then returns the punctuations of each LFTA's
        stream, which hold for all rows emitted afterwards.
        """

    def finish(self) -> None:
        """Emit all remaining groups and rows."""

    def set_threshold(self, lfta: str, threshold: int) -> None:
        """Keep packets of a sampling LFTA whose hash is at most ``threshold``, from the next on.

        An LFTA whose rows state their rate first emits all of its groups.
        """

    def begin_lane(self, lane: int) -> None:
        """Number packets as those of a lane of the interface; called before the first packet."""

    @property
    def interface_counters(self) -> InterfaceCounters:
        """A snapshot of the interface's counters."""

    def lfta_counters(self, lfta: str) -> LftaCounters:
        """Return a snapshot of one LFTA's counters."""


class MarkedPackets(Protocol):
    """What takes the packets that a kernel marked, for one interface.

    Attributes:
        needs_rows: whether rows are emitted before the packets that they are of are taken.
    """

    needs_rows: bool

    def begin(self, packets: int) -> int:
        """Return the address of a cleared word for each packet of a block of ``packets``."""

    def save(self, block: Block, first: int, stop: int) -> None:
        """Take the marked packets from ``first`` to before ``stop``, and clear their words."""

    def flush(self) -> None:
        """Pass on what was taken so far, unless it can wait."""

    def finish(self) -> None:
        """Pass on everything that was taken."""


class LftaRuntime:
    """Runs a compiled kernel on the packets of one interface; see ``LftaEngine``.

    One thread at a time may call it; kernels run without the GIL. Its memory is allocated once:
    tables, scratch areas and ``settings.buffers`` output buffers for each LFTA.

    Args:
        lftas: LFTAs of the kernel, or some of them; those attached to ``interface`` are run.
        interface: name of the interface.
        settings: sizes of their memory.
        kernel: the compiled LFTAs.
        emit: receives finished batches, on the calling thread.
        marked: takes the packets that the kernel marks; None for a kernel that marks none.
        sampling: which packets sampling LFTAs keep; None to keep all packets.
    """

    def __init__(
        self,
        lftas: Sequence[Lfta],
        interface: str,
        settings: LftaSettings,
        kernel: CompiledKernel,
        emit: Callable[[str, ColumnBatch], None],
        marked: MarkedPackets | None = None,
        sampling: InitialSampling | None = None,
    ) -> None:
        self.bound_ns = NO_BOUND
        self._marked = marked
        self._kernel = kernel
        numbers = {name: number for number, name in enumerate(kernel.lftas)}
        # In the order of the program, which streams keep.
        running = {numbers[lfta.name]: lfta for lfta in lftas if interface in lfta.interfaces}
        self._lftas = {
            number: _RunningLfta(lfta, interface, settings, kernel.slot_bytes[number], emit)
            for number, lfta in running.items()
        }
        widest = max((len(lfta.schema.columns) for lfta in lftas), default=0)
        self._state = StateArrays(
            interface=np.zeros(interface_words(len(kernel.lftas)), np.int64),
            lftas=np.zeros((len(kernel.lftas), state_words(widest)), np.int64),
        )
        for number, each in self._lftas.items():
            each.attach(self._state.lftas[number])
        self._state.interface[InterfaceState.WAITING] = -1
        self._state.interface[InterfaceState.LITERALS] = kernel.literals.ctypes.data
        batch = PACKETS_PER_BATCH
        sizes = BatchMemory(
            records=batch * RECORD_BYTES,
            inner_records=batch * RECORD_BYTES,
            lists=LISTS_BYTES,
            signatures=batch * 8,
            scratch=batch * 8 * kernel.scratch_words,
            workspace=WORKSPACE_BYTES,
        )
        self._areas = [Area(size) for size in sizes]
        self._memory = BatchMemory(*(area.address for area in self._areas))
        self._numbers = numbers
        self._begin_sampling(interface, sampling)

    def _begin_sampling(self, interface: str, sampling: InitialSampling | None) -> None:
        """Set the words that kernels that sample read; without sampling, all packets are kept."""
        sampling = sampling or InitialSampling(HashKey.of_seed(0), {})
        key, words = sampling.key, self._state.interface
        for word, value in (
            (SamplingState.START, key.start),
            (SamplingState.ADDRESS, key.address),
            (SamplingState.IPV4, mix(key.address, key)),
            (SamplingState.PACKET, key.of_interface(interface)),
            (SamplingState.FIRST, key.first),
            (SamplingState.SECOND, key.second),
        ):
            words[word] = wrap(value)
        self._fates = Area(FATES_BYTES)
        words[SamplingState.FATES] = self._fates.address
        for lfta in self._numbers:
            self.set_threshold(lfta, sampling.threshold(lfta))

    def set_threshold(self, lfta: str, threshold: int) -> None:
        """See ``LftaEngine``."""
        number = self._numbers[lfta]
        running = self._lftas.get(number)
        if running is not None and running.states_other_rate(threshold):
            # Groups and rows of packets that were tested by the threshold before.
            self._flush(number, MAX_TIME_NS)
            running.begin_rate(threshold)
        self._state.interface[SamplingState.THRESHOLDS + number] = wrap(threshold)

    def begin_lane(self, lane: int) -> None:
        """See ``LftaEngine``."""
        self._state.interface[SamplingState.SEEN] = lane * LANE_PACKETS

    def process(self, block: Block, start: int, until_ns: int = MAX_TIME_NS) -> int:
        """See ``LftaEngine``."""
        # The arrays as they are: asking numpy for an address takes as long as ten packets.
        arrays = block_arrays(block)
        first = start
        if self._marked is not None:
            self._state.lftas[:, LftaState.MARKS] = self._marked.begin(block.count)
        while True:
            span = PacketRange(
                first=start, stop=block.count, until_ns=until_ns, bound_ns=self.bound_ns
            )
            full = self._kernel.tiers.functions.run(
                *run_arguments(arrays, span, self._memory, self._state)
            )
            if full < 0:
                break
            start = self.make_room(full)
        if self._marked is not None:
            for running in self._lftas.values() if self._marked.needs_rows else ():
                running.hand_over()
            self._marked.save(block, first, self._position)
        self._kernel.tiers.count(self._position - first)
        return self._position

    @property
    def lftas(self) -> tuple[str, ...]:
        """The names of the LFTAs that it runs."""
        return tuple(running.lfta.name for running in self._lftas.values())

    @property
    def marks_packets(self) -> bool:
        """Whether packets have to pass through ``process``, which takes those that are marked."""
        return self._marked is not None

    def kernel_entry(self) -> KernelEntry | None:
        """Return the compiled ``run`` as it is now; None if only Python can call it.

        Its caller calls ``make_room`` when ``run`` returns the number of an LFTA, and ``count``.
        """
        address = self._kernel.tiers.functions.address
        return None if address is None else KernelEntry(address, self._memory, self._state)

    def count(self, packets: int) -> None:
        """Count packets that a caller of ``kernel_entry`` has processed."""
        self._kernel.tiers.count(packets)

    def make_room(self, full: int) -> int:
        """Emit the rows of the LFTA that ``run`` returned; return the packet to continue at."""
        self._lftas[full].hand_over()
        return self._position

    @property
    def _position(self) -> int:
        """The number of the first packet that has not been processed."""
        return int(self._state.interface[InterfaceState.POSITION])

    def heartbeat(self, clock_ns: int, skew_ns: int = 0) -> dict[str, tuple[Punctuation, ...]]:
        """See ``LftaEngine``."""
        self.bound_ns = max(self.bound_ns, clock_ns - skew_ns)
        promises = {}
        for number, running in self._lftas.items():
            if running.lfta.is_aggregation:
                last = closed_epoch(running.lfta, self.bound_ns)
                if last is not None:
                    self._flush(number, last)
            promise = punctuations(running.lfta, self.bound_ns, running.floors)
            running.promise(promise)
            promises[running.lfta.name] = promise
        if self._marked is not None:
            self._marked.flush()
        return promises

    def finish(self) -> None:
        """See ``LftaEngine``."""
        for number, running in self._lftas.items():
            if running.lfta.is_aggregation:
                self._flush(number, MAX_TIME_NS)
            running.hand_over()
        if self._marked is not None:
            self._marked.finish()

    def _flush(self, number: int, last: int) -> None:
        running = self._lftas[number]
        state = self._state.lftas[number]
        # An empty table, or one without groups that old, need not be searched.
        if state[LftaState.LIVE] == 0 or state[LftaState.OLDEST] > last:
            return
        while not self._kernel.tiers.functions.flush(number, state, last):
            running.hand_over()

    @property
    def interface_counters(self) -> InterfaceCounters:
        """See ``LftaEngine``."""
        words = self._state.interface
        by_reason = [int(words[InterfaceState.REASONS + reason]) for reason in Reason]
        odd = {reason: by_reason[reason] for reason in Reason if reason and by_reason[reason]}
        shed = int(words[SamplingState.SHED])
        accepted = by_reason[Reason.NONE] - shed
        return InterfaceCounters(accepted, int(words[InterfaceState.LATE]), shed, odd)

    def lfta_counters(self, lfta: str) -> LftaCounters:
        """See ``LftaEngine``."""
        return next(r.counters for r in self._lftas.values() if r.lfta.name == lfta)


class _RunningLfta:
    """Tables, output buffers and state of one LFTA on one interface."""

    def __init__(
        self,
        lfta: Lfta,
        interface: str,
        settings: LftaSettings,
        slot_bytes: tuple[int, ...],
        emit: Callable[[str, ColumnBatch], None],
    ) -> None:
        self.lfta = lfta
        self._emit = emit
        self._settings = settings
        self._tables = [Area(size * settings.table_slots) for size in slot_bytes]
        self._pre_sample = (
            None
            if lfta.pre_sample is None
            else Area(PreSampleTable.of(lfta, lfta.pre_sample).bytes)
        )
        self._is_busy = False
        layout = output_layout(lfta, interface)
        # Last in, first out: the buffer released last is still in a near cache.
        self._free: queue.LifoQueue[OutputBuffer] = queue.LifoQueue()
        rows = max(settings.batch_rows, PACKETS_PER_BATCH)
        for _ in range(settings.buffers):
            self._free.put(OutputBuffer(layout, rows, settings.heap_bytes))
        self._buffer = self._free.get()
        self._promised: tuple[Punctuation, ...] = ()
        self._rate = 1.0

    def attach(self, state: NDArray[np.int64]) -> None:
        """Initialise the words of the LFTA's state."""
        self._state = state
        buckets = self._settings.table_slots // 2
        state[LftaState.ACTIVE] = 1
        state[LftaState.BUCKETS] = buckets
        state[LftaState.SHIFT] = 64 - (buckets.bit_length() - 1)
        state[LftaState.SLOW] = self._settings.slow_flush_buckets
        state[LftaState.NEWEST] = NO_BOUND
        state[LftaState.OLDEST] = MAX_TIME_NS
        state[LftaState.PENDING] = MAX_TIME_NS
        state[LftaState.DECLARED : LftaState.DECLARED + MAX_DECLARED] = NO_FLOOR
        state[LftaState.CURSOR] = buckets * len(self._tables)
        for word, table in zip((LftaState.TABLE_A, LftaState.TABLE_B), self._tables, strict=False):
            state[word] = table.address
        if self._pre_sample is not None:
            state[LftaState.TABLE_A] = self._pre_sample.address
        self._connect()

    def _connect(self) -> None:
        state, buffer = self._state, self._buffer
        buffer.set_rate(self._rate)
        state[LftaState.ROWS] = 0
        state[LftaState.CAPACITY] = buffer.rows
        state[LftaState.PARTING] = state[LftaState.NEWEST]
        state[LftaState.CROWDED] = buffer.rows - buffer.rows // 32
        state[LftaState.HEAP_CAPACITY] = buffer.heap_bytes
        state[LftaState.COLUMNS : LftaState.COLUMNS + buffer.addresses.size] = buffer.addresses

    def states_other_rate(self, threshold: int) -> bool:
        """Return whether rows must be apart from those so far.

        The rows are of packets tested by ``threshold``.
        """
        return self.lfta.has_rate_column and rate_of(threshold) != self._rate

    def begin_rate(self, threshold: int) -> None:
        """Emit all rows; those that follow are of packets tested by ``threshold``."""
        self._rate = rate_of(threshold)
        self.hand_over()

    def promise(self, punctuations: tuple[Punctuation, ...]) -> None:
        """Emit the rows that must precede ``punctuations``.

        If an aggregation repeats its last promise, rows emitted since then keep it and may wait
        until the buffer is full. A selection's rows are answers, for which a reader may wait.
        """
        if not self.lfta.is_aggregation or punctuations != self._promised:
            self.hand_over()
            self._promised = punctuations

    def hand_over(self) -> None:
        """Emit all rows and continue with an empty buffer, once one is free."""
        front, back = int(self._state[LftaState.ROWS]), int(self._state[LftaState.CAPACITY])
        if not self._is_busy and self._state[LftaState.LIVE] >= self._settings.table_slots // 4:
            self._is_busy = True
            for table in self._tables:
                table.collapse()
        batches = column_batches(
            self.lfta.name,
            self._buffer,
            ((0, front), (back, self._buffer.rows)),
            self._free.put,
        )
        if batches:
            for batch in batches:
                self._emit(self.lfta.name, batch)
            self._buffer = self._free.get()
        self._buffer.ensure_heap(int(self._state[LftaState.HEAP_WANTED]))
        self._connect()

    @property
    def floors(self) -> list[int]:
        """The floors of declared orders, in order of declaration."""
        first = int(LftaState.DECLARED)
        return [int(floor) for floor in self._state[first : first + len(self.lfta.declared)]]

    @property
    def counters(self) -> LftaCounters:
        state = self._state
        return LftaCounters(
            int(state[LftaState.MATCHED]),
            int(state[LftaState.OUT]),
            int(state[LftaState.EVICTED]),
            int(state[LftaState.LIVE]),
            int(state[LftaState.WITHOUT_EPOCH]),
            int(state[LftaState.OUT_OF_ORDER]),
            table_slots=self._settings.table_slots * len(self._tables),
            table_bytes=sum(table.bytes.size for table in self._tables),
        )
