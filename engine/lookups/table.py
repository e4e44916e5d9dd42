"""The table of a lookup: sorted ranges of keys, each with the place of its value."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from gscope.records import dataclass

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from numpy.typing import NDArray

NO_VALUE = -1
"""The place of keys without a value."""

ADDRESS_BYTES = 16
_ADDRESS = np.dtype(f"S{ADDRESS_BYTES}")

Range = tuple[int, int, int]
"""The first key, the last key, and the place of their value."""


@dataclass(frozen=True, slots=True)
class LookupTable:
    """What a lookup knows, in the order of its keys.

    A key is an INT or MAC, or an IP as 16 bytes. The memory of a table is 12 bytes (20 for
    addresses) for each range, and the distinct values.

    Attributes:
        starts: the first key of each range, ascending; a range ends before the next begins.
        places: the place in ``values`` of each range; ``NO_VALUE`` for none, and less for an alias
            (``alias_of``).
        values: the distinct values: STRING with one character for each byte, or INT.
    """

    starts: NDArray[Any]
    places: NDArray[np.int32]
    values: pa.Array

    def find(self, keys: NDArray[Any]) -> pa.Array:
        """Return the value of each key; NULL where there is none."""
        places = self._places(keys)
        for alias in np.unique(places[places < NO_VALUE]):
            is_alias = places == alias
            places[is_alias] = self._places(_embedded(keys[is_alias], alias_of(int(alias))))
        return self.values.take(pa.array(places, pa.int32(), mask=places == NO_VALUE))

    def _places(self, keys: NDArray[Any]) -> NDArray[np.int32]:
        found = np.searchsorted(self.starts, keys, side="right") - 1
        return np.where(found < 0, np.int32(NO_VALUE), self.places[np.maximum(found, 0)])


def alias_of(byte: int) -> int:
    """Return the place of addresses that have the value of the IPv4 address from that byte on.

    It is its own inverse: ``alias_of`` an alias is the byte.
    """
    return NO_VALUE - 1 - byte


def _embedded(keys: NDArray[Any], byte: int) -> NDArray[Any]:
    """Return the keys of the IPv4 addresses that addresses have from a byte on."""
    octets = np.frombuffer(keys.tobytes(), np.uint8).reshape(-1, ADDRESS_BYTES)
    made = np.zeros_like(octets)
    made[:, 10:12] = 0xFF
    made[:, 12:] = octets[:, byte : byte + 4]
    return np.frombuffer(made.tobytes(), _ADDRESS)


def address_table(ranges: Iterable[Range], values: Sequence[bytes]) -> LookupTable:
    """Return a table whose keys are addresses; the narrowest range that holds a key counts."""
    starts, places = flatten(ranges)
    packed = b"".join(start.to_bytes(ADDRESS_BYTES, "big") for start in starts)
    return _table(np.frombuffer(packed, _ADDRESS), places, values)


def number_table(ranges: Iterable[Range], values: Sequence[bytes]) -> LookupTable:
    """Return a table whose keys are INT or MAC; the narrowest range that holds a key counts."""
    starts, places = flatten(ranges)
    return _table(np.array(starts, np.int64), places, values)


def address_keys(column: pa.Array) -> NDArray[Any]:
    """Return a column of IP values as keys; NULL becomes any key."""
    if not len(column):
        return np.empty(0, _ADDRESS)
    packed = column.fill_null(bytes(ADDRESS_BYTES)).cast(pa.binary(ADDRESS_BYTES))
    whole = np.frombuffer(packed.buffers()[1], _ADDRESS)
    return whole[packed.offset : packed.offset + len(packed)]


def flatten(ranges: Iterable[Range]) -> tuple[list[int], list[int]]:
    """Return the first keys and the places of disjoint ranges that cover all keys from 0.

    Args:
        ranges: ranges that are equal, nested or disjoint, as networks are. A range hides those
            around it, and equal ones before it.
    """
    starts, places = [0], [NO_VALUE]

    def begin(key: int, place: int) -> None:
        if starts[-1] == key:
            places[-1] = place
        elif places[-1] != place:
            starts.append(key)
            places.append(place)

    around: list[tuple[int, int]] = []
    for first, last, place in sorted(ranges, key=lambda each: (each[0], -each[1])):
        while around and around[-1][0] < first:
            ended = around.pop()[0]
            begin(ended + 1, around[-1][1] if around else NO_VALUE)
        begin(first, place)
        around.append((last, place))
    while around:
        ended = around.pop()[0]
        if ended < _LAST_ADDRESS:
            begin(ended + 1, around[-1][1] if around else NO_VALUE)
    return starts, places


_LAST_ADDRESS = (1 << 8 * ADDRESS_BYTES) - 1


def _table(starts: NDArray[Any], places: Sequence[int], values: Sequence[bytes]) -> LookupTable:
    texts = pa.array([value.decode("iso-8859-1") for value in values], pa.string())
    return LookupTable(starts, np.array(places, np.int32), texts)
