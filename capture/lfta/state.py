"""The state that generated kernels and the runtime share: the words of two int64 arrays.

``InterfaceState`` and ``SamplingState`` number the words of an interface's array, ``LftaState``
those of the array that each of its LFTAs has. Generated source defines these enumerations as module
constants.
"""

from __future__ import annotations

from enum import IntEnum

from gscope.capture.packet.decode_errors import REASON_COUNT

PACKETS_PER_BATCH = 128
"""Packets that are decoded, then selected, then folded together: enough for prefetches to arrive,
few enough to stay in the first-level cache."""


class _Word(IntEnum):
    """Number of a word, which is its name in generated source."""

    def __format__(self, spec: str) -> str:
        return self.name


class InterfaceState(_Word):
    """Words of an interface's array; ``REASONS`` is followed by one counter for each ``Reason``.

    ``REASONS[Reason.NONE]`` counts accepted packets.
    """

    POSITION = 0
    """Number of the next packet of the block."""
    WAITING = 1
    """Number of the LFTA that needs room in the middle of a batch; -1 for none."""
    LATE = 2
    """Late packets: those below the bound."""
    LITERALS = 3
    """Address of the bytes of STRING literals."""
    REASONS = 4


class SamplingState(_Word):
    """Words of an interface's array behind those of ``InterfaceState``.

    Only kernels that sample read and write them. The runtime sets the thresholds between two calls
    of a kernel, never while a batch waits for room: it would be packed otherwise than before.
    """

    START = InterfaceState.REASONS + REASON_COUNT
    """Constant of the keyed hash, as in ``HashKey``."""
    ADDRESS = START + 1
    """Constant of the keyed hash, as in ``HashKey``."""
    IPV4 = START + 2
    """The hash of the high half of an IP that is an IPv4 address, which is 0."""
    PACKET = START + 3
    """The hash before the number of a packet, for this interface."""
    FIRST = START + 4
    """The first multiplier of the hash."""
    SECOND = START + 5
    """The second multiplier of the hash."""
    FATES = START + 6
    """Address of a byte for each packet of a batch (``sampling_kernels.py``)."""
    SEEN = START + 7
    """Packets of all batches that are done."""
    SHED = START + 8
    """Packets that an LFTA wanted and none took, of those that are decoded as a whole."""
    THRESHOLDS = START + 9
    """The threshold of each LFTA, an unsigned number."""


def interface_words(lftas: int) -> int:
    """Return the length of the array of an interface with this number of LFTAs."""
    return SamplingState.THRESHOLDS + lftas


VALUES, VALIDITY, HEAP = 0, 1, 2
COLUMN_WORDS = 3
"""Words of a column: addresses of values, validity bytes and heap."""


MAX_DECLARED = 4
"""Declared orders that one LFTA can have."""


class LftaState(_Word):
    """Words of an LFTA's array; ``COLUMNS`` begins ``COLUMN_WORDS`` for each output column."""

    ACTIVE = 0
    """Whether the LFTA runs on this interface."""
    ROWS = 1
    """Rows at the front of the output buffer."""
    CAPACITY = 2
    """Row at which the back of the output buffer begins: there is room up to it."""
    HEAP_CAPACITY = 3
    """Size of each heap in bytes."""
    HEAP_WANTED = 4
    """Bytes that a heap needs for the batch that did not fit."""
    MATCHED = 5
    """Packets that passed the predicate."""
    OUT = 6
    """Rows emitted."""
    EVICTED = 7
    """Groups evicted on a collision."""
    LIVE = 8
    """Groups in the tables."""
    WITHOUT_EPOCH = 9
    """Packets that passed and whose epoch is NULL: they belong to no group."""
    RESUME = 10
    """First packet of the batch not yet folded, when room ran out in the middle of it."""
    BUCKETS = 11
    """Buckets of each table."""
    SHIFT = 12
    """Number of bits by which a hash is shifted right to give its bucket."""
    BASE = 13
    """Epoch of the tag 1."""
    NEWEST = 14
    """Greatest epoch seen."""
    OLDEST = 15
    """No group in the tables is of an earlier epoch."""
    CURSOR = 16
    """Next bucket of the slow flush; it rests at the end of the tables."""
    PENDING = 17
    """Value of OLDEST once the slow flush has finished."""
    SWEEP = 18
    """Next bucket of a flush that ran out of room; 0 for none."""
    SLOW = 19
    """Buckets that the slow flush examines with each batch."""
    TABLE_A = 20
    """Address of the table for packets with IPv4 addresses in their key, or of the only table; of
    a selection that of its pre-sample."""
    TABLE_B = 21
    """Address of the table for all others."""
    OUT_OF_ORDER = 22
    """Packets that passed and break a declared order."""
    PARTING = 23
    """Epoch from which on an aggregation's rows go to the back of the output buffer."""
    CROWDED = 24
    """With fewer free rows than this in the output buffer, a new epoch gets a buffer of its own."""
    MARKS = 25
    """Address of a word for each packet of the block, with a bit for each LFTA that saves packets;
    0 if none does."""
    DECLARED = 26
    """For each declared order the least value (of a decreasing one: of its negative) that keeps it.
    """
    COLUMNS = DECLARED + MAX_DECLARED


def state_words(columns: int) -> int:
    """Return length of the array of an LFTA with ``columns`` output columns."""
    return LftaState.COLUMNS + columns * COLUMN_WORDS


WORD_NAMES = "\n".join(
    f"{word.name} = {int(word)}" for words in (InterfaceState, LftaState) for word in words
)
"""Source that defines the words' names."""

SAMPLING_NAMES = "\n".join(f"{word.name} = {int(word)}" for word in SamplingState)
"""Source that defines the names of the words of sampling, for kernels that sample."""
