"""Numbers and names of networks from MaxMind DB files (``.mmdb``): GeoLite2 and its like.

A search tree over the bits of addresses ends in records. All of its networks are read at once,
level by level, which takes numpy a fraction of a second for a million.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal

import numpy as np
import pyarrow as pa

from gscope.engine.lookups.maxmind_records import DamagedError, Records
from gscope.engine.lookups.table import ADDRESS_BYTES, NO_VALUE, LookupTable, alias_of
from gscope.errors import EngineError
from gscope.records import dataclass

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import NDArray

    Array = NDArray[Any]

_MARKER = b"\xab\xcd\xefMaxMind.com"
_LARGEST_METADATA = 128 << 10
_GAP = 16
"""Zero bytes between the tree and the data section."""

_V4_DEPTH = 96
_BITS = 128
_V4_FIRST = 0xFFFF << 32
_MAPPED_FIRST = 0xFFFE << 32
"""The block of IP values that stands for ``::ffff:0:0/96`` of IPv6 headers."""

_BEHIND_V4 = 1 << 48

_ASN = (("autonomous_system_number",), ("asn",))
_COUNTRY = (("country", "iso_code"), ("country_code",), ("country",))


def read_asn(data: bytes, path: str) -> LookupTable:
    """Return the table of AS numbers of a file with the contents ``data``.

    Raises:
        EngineError: it is not a MaxMind DB, is damaged, or has no AS numbers.
    """
    return _table(data, path, _ASN, _as_number, "AS numbers", pa.int64())


def read_country(data: bytes, path: str) -> LookupTable:
    """Return the table of country codes of a file with the contents ``data``.

    Raises:
        EngineError: it is not a MaxMind DB, is damaged, or has no country codes.
    """
    return _table(data, path, _COUNTRY, _country_code, "country codes", pa.string())


def _as_number(value: Any) -> int | None:
    """Return an AS number, which some files have as text (``AS64496``)."""
    if isinstance(value, str):
        digits = value[2:] if value[:2].upper() == "AS" else value
        value = int(digits) if digits.isascii() and digits.isdecimal() else None
    return value if isinstance(value, int) and value < 1 << 32 else None


def _country_code(value: Any) -> str | None:
    return value.encode().decode("iso-8859-1") if isinstance(value, str) and value else None


def _table(
    data: bytes,
    path: str,
    fields: tuple[tuple[str, ...], ...],
    convert: Callable[[Any], Any],
    content: str,
    kind: pa.DataType,
) -> LookupTable:
    try:
        tree, records, kind_of_file = _sections(data)
        leaves = tree.leaves()
        distinct, inverse = np.unique(leaves.found, return_inverse=True)
        known: dict[Any, int] = {}
        # Places of values, and aliases as they are, which are below all.
        places = np.array(
            [
                int(each) if each < 0 else _place(records, int(each), fields, convert, known)
                for each in distinct
            ],
            np.int32,
        )[inverse]
    except DamagedError:
        message = f"{path} is not a MaxMind DB, or is damaged"
        raise EngineError(message) from None
    if not known:
        message = f"{path} has no {content}: it is of the type {kind_of_file[:60]!r}"
        raise EngineError(message)
    is_first = np.concatenate(([True], places[1:] != places[:-1]))
    return LookupTable(leaves.keys()[is_first], places[is_first], pa.array(list(known), kind))


def _place(
    records: Records,
    offset: int,
    fields: tuple[tuple[str, ...], ...],
    convert: Callable[[Any], Any],
    known: dict[Any, int],
) -> int:
    for path in fields:
        value = convert(records.at(offset, path))
        if value is not None:
            return known.setdefault(value, len(known))
    return NO_VALUE


def _sections(data: bytes) -> tuple[_Tree, Records, str]:
    """Return the tree, the records and the type that a file states.

    Raises:
        DamagedError: the file has none of these, or they do not fit together.
    """
    begin = data.rfind(_MARKER, max(0, len(data) - _LARGEST_METADATA))
    if begin < 0:
        raise DamagedError
    metadata = Records(data[begin + len(_MARKER) :])
    names = ("node_count", "record_size", "ip_version", "binary_format_major_version")
    count, width, family, version = (metadata.at(0, (name,)) for name in names)
    if not isinstance(count, int) or width not in (24, 28, 32) or family not in (4, 6):
        raise DamagedError
    size = count * width // 4
    if version != 2 or not count or size + _GAP > begin:
        raise DamagedError
    rows = np.frombuffer(data, np.uint8, size).reshape(count, width // 4)
    kind = metadata.at(0, ("database_type",))
    section = Records(data[size + _GAP : begin])
    return _Tree(_children(rows, width), family), section, str(kind)


def _children(rows: Array, width: int) -> Array:
    """Return the two records of each node as columns."""
    wide = rows.astype(np.int64)
    if width == 28:
        low = [wide[:, n] << 16 | wide[:, n + 1] << 8 | wide[:, n + 2] for n in (0, 4)]
        left, right = (wide[:, 3] >> 4) << 24 | low[0], (wide[:, 3] & 15) << 24 | low[1]
        return np.stack((left, right), axis=1)
    columns = []
    for side in np.split(wide, 2, axis=1):
        value = np.zeros(len(wide), np.int64)
        for n in range(side.shape[1]):
            value = value << 8 | side[:, n]
        columns.append(value)
    return np.stack(columns, axis=1)


@dataclass(frozen=True, slots=True)
class _Leaves:
    """Neighbouring ranges in the order of their first keys, which are IP values.

    Attributes:
        high: the upper 64 bits of the first keys.
        low: the lower ones.
        found: the offset of the record of each range, an alias, or ``NO_VALUE``.
    """

    high: Array
    low: Array
    found: Array

    def cut(self, first: int, end: int | None = None) -> _Leaves:
        """Return the ranges from the key ``first`` to ``end``, both of at most 64 bits."""
        begin = self._place(first, "right") - 1
        behind = len(self.high) if end is None else self._place(end, "left")
        low = self.low[begin:behind].copy()
        low[0] = first
        return _Leaves(self.high[begin:behind], low, self.found[begin:behind])

    def moved(self, mask: int) -> _Leaves:
        """Return the ranges with the bits of ``mask`` inverted in their keys."""
        return _Leaves(self.high, self.low ^ np.uint64(mask), self.found)

    def keys(self) -> Array:
        """Return the first keys as a table has them."""
        both = np.stack((self.high, self.low), axis=1).astype(">u8")
        return np.frombuffer(both.tobytes(), f"S{ADDRESS_BYTES}")

    def _place(self, key: int, side: Literal["left", "right"]) -> int:
        short = self.low[: int(np.searchsorted(self.high, 0, "right"))]
        return int(np.searchsorted(short, np.uint64(key), side))


class _Tree:
    """The search tree of a file.

    Args:
        children: the records of each node; those from the number of nodes on are leaves.
        family: the version of IP whose addresses the tree has; one of IPv6 has IPv4 at ``::/96``.
    """

    def __init__(self, children: Array, family: int) -> None:
        self._children = children
        self._count = len(children)
        self._visited = 0
        self._v4_root = 0
        self._is_v6 = family == 6
        for _ in range(_V4_DEPTH if self._is_v6 else 0):
            if self._v4_root < self._count:
                self._v4_root = int(children[self._v4_root, 0])

    def leaves(self) -> _Leaves:
        """Return the ranges of all IP values.

        Raises:
            DamagedError: the tree has a cycle, or is deeper than addresses have bits.
        """
        four = self._below(self._v4_root, _V4_DEPTH).moved(_V4_FIRST)
        six = self._below(0 if self._is_v6 else self._count, 0)
        parts = (
            six.cut(0, _MAPPED_FIRST),
            six.cut(_V4_FIRST, _BEHIND_V4).moved(_V4_FIRST ^ _MAPPED_FIRST),
            four,
            six.cut(_BEHIND_V4),
        )
        columns = ([getattr(part, name) for part in parts] for name in ("high", "low", "found"))
        return _Leaves(*map(np.concatenate, columns))

    def _below(self, root: int, depth: int) -> _Leaves:
        """Return the ranges below a node; other ways to the addresses of IPv4 are aliases."""
        nodes = np.array([root], np.int64)
        high = low = np.zeros(1, np.uint64)
        parts: list[_Leaves] = []
        while len(nodes):
            is_inner = nodes < self._count
            found = np.where(nodes == self._count, NO_VALUE, nodes - self._count - _GAP)
            if np.any(~is_inner & (found < NO_VALUE)):
                raise DamagedError
            if root != self._v4_root and depth % 8 == 0:
                is_alias = is_inner & (nodes == self._v4_root)
                found[is_alias] = alias_of(depth // 8)
                is_inner &= ~is_alias
            parts.append(_Leaves(high[~is_inner], low[~is_inner], found[~is_inner]))
            nodes, high, low = nodes[is_inner], high[is_inner], low[is_inner]
            self._visited += len(nodes)
            if len(nodes) and (depth == _BITS or self._visited > 2 * self._count):
                raise DamagedError
            nodes = self._children[nodes].ravel()
            high, low = np.repeat(high, 2), np.repeat(low, 2)
            half = high if depth < 64 else low
            half[1::2] |= np.uint64(1 << (63 - depth % 64))
            depth += 1
        high, low, found = (
            np.concatenate([getattr(part, name) for part in parts])
            for name in ("high", "low", "found")
        )
        order = np.lexsort((low, high))
        return _Leaves(high[order], low[order], found[order])
