"""Text of whole columns of addresses, without a Python object for each.

The addresses of one form are written in cells of fixed width: the digits of an octet of IPv4 and a
dot, or the digits of a group of IPv6 and a colon. Unused bytes of cells are 0; without these, the
cells are the text.

IPv4 addresses are stored as ``::ffff:a.b.c.d``. The addresses that IPv6 headers contain in that
form are stored as ``::fffe:a.b.c.d`` and shown as ``::ffff:a.b.c.d`` (decision 24). All others have
groups only, in the form of RFC 5952: ``::`` replaces the longest run of two or more zero groups,
the first of several.
"""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from gscope.engine.sinks.arrow_integers import arrow_integers

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import NDArray

    Array = NDArray[Any]

_BYTES = 16
_GROUPS = 8
_V4_MARK = int.from_bytes(b"\x00\x00\xff\xff", "little")
_MAPPED_MARK = int.from_bytes(b"\x00\x00\xff\xfe", "little")
"""What follows eight zero octets."""

_MAPPED_LEAD = np.frombuffer(b"::ffff:\0", np.uint64)
_GROUP_CELL = np.dtype([("digits", "<u4"), ("colon", "u1")])
_ALL = np.uint32(0xFFFF_FFFF)
_BYTE_SUM = np.uint64(0x0101_0101_0101_0101)
_TOP_BYTE = np.uint64(56)

_SAMPLE_ROWS = 4096
"""Rows at the beginning of a column that show whether its addresses repeat."""


def addresses_as_text(column: pa.Array) -> pa.Array:
    """Return the text of addresses of 16 bytes each; NULL stays NULL.

    To find the distinct addresses takes longer than to write all, unless most of them repeat.
    """
    if not _is_repetitive(column):
        return _texts(column)
    encoded = column.dictionary_encode()
    return _texts(encoded.dictionary).take(encoded.indices)


def _is_repetitive(column: pa.Array) -> bool:
    if len(column) < _SAMPLE_ROWS:
        return False
    sample = column.slice(0, _SAMPLE_ROWS)
    return bool(pc.count_distinct(sample, mode="all").as_py() <= _SAMPLE_ROWS * 3 // 4)


def _texts(column: pa.Array) -> pa.Array:
    """Return the text of each address."""
    if column.null_count:
        is_valid = column.is_valid().to_numpy(zero_copy_only=False)
        places = pa.array(np.cumsum(is_valid) - 1, mask=~is_valid)
        return _texts(column.drop_null()).take(places)
    octets = _octets(column)
    follows_zeros = octets.view(np.uint64)[:, 0] == 0
    mark = octets.view("<u4")[:, 2]
    is_v4 = follows_zeros & (mark == _V4_MARK)
    if is_v4.all():
        return _packed(_dotted(octets))
    is_mapped = follows_zeros & (mark == _MAPPED_MARK)
    forms: list[tuple[Array, Callable[[Array], Array]]] = [
        (is_v4, _dotted),
        (is_mapped, _mapped),
        (~(is_v4 | is_mapped), _grouped),
    ]
    rows = [np.flatnonzero(is_form) for is_form, _ in forms]
    texts = [_packed(cells(octets[each])) for each, (_, cells) in zip(rows, forms, strict=True)]
    places = np.empty(len(octets), np.int64)
    places[np.concatenate(rows)] = np.arange(len(octets))
    return pa.concat_arrays(texts).take(arrow_integers(places))


def _octets(column: pa.Array) -> Array:
    """Return the octets of an array without NULL, an address a row."""
    if len(column) == 0:
        return np.empty((0, _BYTES), np.uint8)
    fixed = pc.cast(column, pa.binary(_BYTES))
    begin = fixed.offset * _BYTES
    octets = np.frombuffer(fixed.buffers()[1], np.uint8, len(fixed) * _BYTES, begin)
    return octets.reshape(-1, _BYTES)


def _packed(cells: Array) -> pa.Array:
    """Return the bytes of each row other than 0, as text; a row has a multiple of 8 bytes."""
    is_used = (cells != 0).view(np.uint64)
    sums = is_used[:, 0].copy()
    for column in range(1, is_used.shape[1]):
        sums += is_used[:, column]
    ends = np.zeros(len(cells) + 1, np.int32)
    np.cumsum(sums * _BYTE_SUM >> _TOP_BYTE, out=ends[1:])
    text = cells.tobytes().translate(None, b"\0")
    return pa.StringArray.from_buffers(len(cells), pa.py_buffer(ends), pa.py_buffer(text))


def _dotted(octets: Array) -> Array:
    """Return the cells of IPv4 addresses: four of 4 bytes."""
    digits, with_dot = _octet_cells()
    cells = np.empty((len(octets), 4), np.uint32)
    cells[:, :3] = with_dot[octets[:, 12:15]]
    cells[:, 3] = digits[octets[:, 15]]
    return cells.view(np.uint8)


def _mapped(octets: Array) -> Array:
    """Return the cells of v4-mapped addresses of IPv6 headers: the prefix, and those of IPv4."""
    cells = np.empty((len(octets), 3), np.uint64)
    cells[:, 0] = _MAPPED_LEAD
    cells[:, 1:] = _dotted(octets).view(np.uint64)
    return cells.view(np.uint8)


def _grouped(octets: Array) -> Array:
    """Return the cells of other addresses: eight of 5 bytes."""
    groups = octets.view(">u2").astype(np.uint16)
    zeros = np.packbits(groups == 0)
    ways = _ways()
    cells = np.empty((len(octets), _GROUPS), _GROUP_CELL)
    cells["digits"] = _hexadecimal()[groups] & ways.keeps[zeros] | ways.leads[zeros]
    cells["colon"] = ways.colons[zeros]
    return cells.view(np.uint8)


@cache
def _octet_cells() -> tuple[Array, Array]:
    """Return the digits of each octet, alone and with a dot, as cells."""
    digits = np.array([str(octet) for octet in range(256)], "S4").view("<u4")
    with_dot = np.array([f"{octet}." for octet in range(256)], "S4").view("<u4")
    return digits, with_dot


@cache
def _hexadecimal() -> Array:
    """Return the digits of each group, as cells."""
    short = np.array([f"{octet:x}" for octet in range(256)], "S4").view("<u4")
    whole = np.array([f"{octet:02x}" for octet in range(256)], "S2").view("<u2")
    first = np.array([f"{octet:x}" for octet in range(256)], "S2").view("<u2")
    cells = first.astype(np.uint32)[:, None] | whole.astype(np.uint32)[None, :] << np.uint32(16)
    cells[0] = short
    return cells.ravel()


class _Ways(NamedTuple):
    """How addresses are abbreviated, by a byte whose bits mark their zero groups.

    Attributes:
        keeps: for each group, which bits of its digits are kept.
        leads: for each group, what is written in place of its digits.
        colons: for each group, whether a colon follows, as a character or 0.
    """

    keeps: Array
    leads: Array
    colons: Array


@cache
def _ways() -> _Ways:
    ways = _Ways(
        np.full((256, _GROUPS), _ALL, np.uint32),
        np.zeros((256, _GROUPS), np.uint32),
        np.tile(np.array([ord(":")] * 7 + [0], np.uint8), (256, 1)),
    )
    for zeros in range(256):
        run = _longest_run(f"{zeros:08b}")
        if len(run) >= 2:
            ways.keeps[zeros, run] = 0
            ways.colons[zeros, run[1:]] = 0
            # A colon ends the group before the run; at the beginning there is none.
            ways.leads[zeros, 0] = 0 if run[0] else ord(":")
            ways.colons[zeros, run[0]] = ord(":")
    return ways


def _longest_run(marks: str) -> range:
    """Return the places of the first of the longest runs of 1 in ``marks``."""
    for length in range(len(marks), 0, -1):
        begin = marks.find("1" * length)
        if begin >= 0:
            return range(begin, begin + length)
    return range(0)
