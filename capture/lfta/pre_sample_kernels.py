"""The table of a pre-sample: for each supergroup the least different values that the LFTA has seen.

``queries/plan/split/pre_samples.py`` describes which tuples may be left out. The memory of an LFTA
begins with the key of the tuple that is tested. Entries follow, one for each slot, in buckets of
``WAYS`` that share a cache line, then the slots::

    entry     hash of the key, 0 if the slot is free; the window
    slot      number of values; greatest time of a tuple whose value was added; the key (words of
              the window, if there is one, then of the supergroup); values, ascending

A supergroup has a slot of its bucket. If all are in use, one of an earlier window is replaced;
where there is none, the tuples of the supergroup are shipped. A slot that is lost costs tuples, but
no answer.
"""

from __future__ import annotations

from gscope.capture.kernels.jit import kernel_part
from gscope.capture.kernels.language.intrinsics import ld64, lshr, st64, wrap_mul

KEY_BYTES = 256
"""Room for the key of a tuple, so that buckets begin with a cache line."""

WAYS = 4
ENTRY_BYTES = 16
COUNT, LATEST, KEY = 0, 8, 16
_FACTOR = -7046029254386353131


@kernel_part
def is_left_out(
    memory: int,
    slots: int,
    words: int,
    rank: int,
    has_window: bool,
    is_distinct: bool,
    time_ns: int,
    value: int,
) -> bool:
    """Return whether a tuple need not be shipped; otherwise add its value to its supergroup.

    Args:
        memory: address of the table, whose first words are the key of the tuple.
        slots: number of slots, a power of two.
        words: words of a key.
        rank: values of a slot.
        has_window: whether the first word of a key is the window.
        is_distinct: whether a tuple of a value that is in the slot is left out.
        time_ns: time of the tuple.
        value: what is compared.
    """
    slot = slot_of(memory, slots, words, rank, has_window, time_ns)
    if slot == 0:
        return False
    count = ld64(slot + COUNT)
    latest = ld64(slot + LATEST)
    values = slot + KEY + 8 * words
    if count == rank and ld64(values + 8 * (count - 1)) < value:
        # The operator tests tuples in the order of time: later ones do not concern this one.
        return time_ns >= latest
    low = 0
    high = count
    while low < high:
        middle = (low + high) >> 1
        if ld64(values + 8 * middle) < value:
            low = middle + 1
        else:
            high = middle
    if low < count and ld64(values + 8 * low) == value:
        return is_distinct and time_ns >= latest
    if count < rank:
        count += 1
        st64(slot + COUNT, count)
    for n in range(count - 1, low, -1):
        st64(values + 8 * n, ld64(values + 8 * (n - 1)))
    st64(values + 8 * low, value)
    st64(slot + LATEST, max(latest, time_ns))
    return False


@kernel_part
def slot_of(memory: int, slots: int, words: int, rank: int, has_window: bool, time_ns: int) -> int:
    """Return the address of the slot of a tuple's supergroup, new or old; 0 if there is no room."""
    hashed = 0
    for n in range(words):
        hashed = wrap_mul(hashed ^ ld64(memory + 8 * n), _FACTOR)
        hashed ^= lshr(hashed, 32)
    tag = hashed | 1
    size = KEY + 8 * (words + rank)
    first = lshr(hashed, 1) & (slots - WAYS)
    bucket = memory + KEY_BYTES + first * ENTRY_BYTES
    free = -1
    for way in range(WAYS):
        entry = bucket + way * ENTRY_BYTES
        known = ld64(entry)
        slot = memory + KEY_BYTES + slots * ENTRY_BYTES + (first + way) * size
        if known == tag:
            differing = 0
            for n in range(words):
                differing |= ld64(slot + KEY + 8 * n) ^ ld64(memory + 8 * n)
            if differing == 0:
                return slot
        is_older = has_window and ld64(entry + 8) != ld64(memory)
        if free < 0 and (known == 0 or (is_older and ld64(slot + LATEST) < time_ns)):
            free = way
    if free < 0:
        return 0
    st64(bucket + free * ENTRY_BYTES, tag)
    st64(bucket + free * ENTRY_BYTES + 8, ld64(memory))
    slot = memory + KEY_BYTES + slots * ENTRY_BYTES + (first + free) * size
    st64(slot + COUNT, 0)
    st64(slot + LATEST, time_ns)
    for n in range(words):
        st64(slot + KEY + 8 * n, ld64(memory + 8 * n))
    return slot
