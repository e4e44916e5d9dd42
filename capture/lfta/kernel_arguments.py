"""The arguments of generated kernels: the one table of their names, order, types and owners.

Each record below is a row of the table: its fields are arguments, its docstring names their owner
and their meaning. ``run``, the entry of a generated kernel, takes the fields of four records one
after another, because Python passes plain numbers and arrays to compiled code several times as fast
as records. ``run_records`` alone knows the order: the generated signature, the call by the runtime
and the call by the compiled loop of a replay are all made by it. Within a kernel, records are
passed whole and read by name.
"""

from __future__ import annotations

from operator import attrgetter
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar, cast

from gscope.capture.kernels.jit import kernel_part

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    import numpy as np
    from numpy.typing import NDArray

    from gscope.capture.sources.block import Block

A = TypeVar("A")
B = TypeVar("B")
C = TypeVar("C")
D = TypeVar("D")


class BlockArrays(NamedTuple):
    """The arrays of a block. Owner: the packet source, which may reuse them after the call.

    Attributes:
        data: bytes of all packets.
        offset: where each packet begins in ``data``.
        caplen: captured bytes of each packet.
        wirelen: bytes that each packet had on the wire.
        time_ns: time of each packet, in nanoseconds since 1970 UTC.
        linktype: link type of each packet.
    """

    data: NDArray[np.uint8]
    offset: NDArray[np.int64]
    caplen: NDArray[np.int32]
    wirelen: NDArray[np.int32]
    time_ns: NDArray[np.int64]
    linktype: NDArray[np.int32]


class PacketRange(NamedTuple):
    """The packets of a block to process. Owner: the caller, who sets them for each call.

    Attributes:
        first: number of the first packet.
        stop: number behind the last packet.
        until_ns: processing ends at the first packet with this time or a later one.
        bound_ns: packets earlier than this are late: counted, and given to no LFTA.
    """

    first: int
    stop: int
    until_ns: int
    bound_ns: int


class BatchMemory(NamedTuple):
    """Addresses of memory for one batch of packets. Owner: the runtime, which allocates it once.

    Attributes:
        records: a decoded record for each packet (``packet/record.py``).
        inner_records: a record for the packet inside each packet.
        lists: lists of packet numbers by kind of packet (``batch_decoder.py``).
        signatures: a word for each packet, with a bit for each shared predicate.
        scratch: entries that wait to be folded into group tables.
        workspace: what the decoder keeps during a batch (``packet/workspace.py``).
    """

    records: int
    inner_records: int
    lists: int
    signatures: int
    scratch: int
    workspace: int


class StateArrays(NamedTuple):
    """What kernels remember from call to call. Owner: the runtime.

    Attributes:
        interface: words numbered by ``InterfaceState``.
        lftas: a row for each LFTA, with words numbered by ``LftaState``.
    """

    interface: NDArray[np.int64]
    lftas: NDArray[np.int64]


class KernelEntry(NamedTuple):
    """The LFTAs of an interface as a native kernel, for code that calls it with ``call_at``.

    Attributes:
        address: where the machine code of ``run`` begins.
        memory: memory for their batches.
        state: what they remember from call to call.
    """

    address: int
    memory: BatchMemory
    state: StateArrays


class PacketAddresses(NamedTuple):
    """Addresses of the ``BlockArrays`` of the same names, for use within a kernel."""

    data: int
    offset: int
    caplen: int
    wirelen: int
    time_ns: int
    linktype: int


class SamplingRule(NamedTuple):
    """The rule by which a sampling kernel keeps packets. Owner: the runtime.

    They are words of ``SamplingState``, which ``run`` reads again for each batch.

    Attributes:
        start, address, first, second: constants of the keyed hash, as in ``HashKey``.
        ipv4: the hash of the high half of an IPv4 address.
        packet: the hash before the number of a packet, for this interface.
        number: number of the batch's first packet, counted from the first of the interface.
        fates: address of a byte for each packet of the batch (``sampling_kernels.py``).
    """

    start: int
    address: int
    ipv4: int
    packet: int
    first: int
    second: int
    number: int
    fates: int


def run_records(arrays: A, span: B, memory: C, state: D) -> tuple[A, B, C, D]:
    """Return the records in the order in which ``run`` takes their fields."""
    return arrays, span, memory, state


compiled_run_records = kernel_part(run_records)
"""``run_records`` for kernels that call ``run`` with ``call_at``."""


def run_arguments(
    arrays: Iterable[Any], span: Iterable[Any], memory: Iterable[Any], state: Iterable[Any]
) -> tuple[Any, ...]:
    """Return the arguments of ``run`` in order."""
    a, b, c, d = run_records(arrays, span, memory, state)
    return (*a, *b, *c, *d)


RUN_PARAMETERS: tuple[str, ...] = run_arguments(
    BlockArrays._fields, PacketRange._fields, BatchMemory._fields, StateArrays._fields
)
"""The names of the arguments of ``run``, in order."""

block_arrays = cast("Callable[[Block], tuple[Any, ...]]", attrgetter(*BlockArrays._fields))
"""``block_arrays(block)``: the ``BlockArrays`` of a block, as a plain tuple, which is faster to
make."""


def made_of(record: type[tuple[Any, ...]], source: str = "{}") -> str:
    """Return code that makes ``record`` from ``source`` for each field; ``{}`` is its name."""
    fields: tuple[str, ...] = getattr(record, "_fields", ())
    return f"{record.__name__}({', '.join(f'{n}={source.format(n)}' for n in fields)})"
