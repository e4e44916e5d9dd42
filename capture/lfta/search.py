"""Binary search in tables of constants; ``queries/catalog/scalar/tables.py`` has their layout.

The search does not branch on comparisons, so its cost is the table's depth without mispredictions.
"""

from __future__ import annotations

from gscope.capture.kernels.jit import kernel
from gscope.capture.kernels.language.intrinsics import float_bits, ld64, select, ult
from gscope.capture.lfta.runtime_kernels import float_key
from gscope.queries.catalog.scalar.tables import HEADER_BYTES
from gscope.queries.int64 import MAX_INT


@kernel
def is_in_words(table: int, value: int) -> bool:
    """Return whether a table of signed words holds ``value``."""
    count = ld64(table) >> 8
    low = table + HEADER_BYTES
    while count > 1:
        half = count >> 1
        middle = low + 8 * half
        low = select(ld64(middle) <= value, middle, low)
        count -= half
    return count > 0 and ld64(low) == value


@kernel
def is_in_floats(table: int, value: float) -> bool:
    """Return whether a table of FLOATs holds ``value``, by the word that ``float_word`` defines."""
    bits = float_bits(float_key(value))
    return is_in_words(table, bits ^ ((bits >> 63) & MAX_INT))


@kernel
def is_in_addresses(table: int, high: int, low: int) -> bool:
    """Return whether a table of addresses holds the one with these halves."""
    count = ld64(table) >> 8
    place = table + HEADER_BYTES
    while count > 1:
        half = count >> 1
        middle = place + 16 * half
        middle_high = ld64(middle)
        is_above = ult(high, middle_high) | ((high == middle_high) & ult(low, ld64(middle + 8)))
        place = select(is_above, place, middle)
        count -= half
    return count > 0 and ld64(place) == high and ld64(place + 8) == low
