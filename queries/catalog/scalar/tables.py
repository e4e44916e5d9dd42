"""Tables of constants: a long IN list as one sorted array instead of a literal for each choice.

A table is a STRING constant, so that it is shipped, compared and hashed like any other: a header
word (the kind of value in the lowest byte, the number of values above it) and the values in
ascending order, each of them once. Words are little-endian. A kernel searches it in place, by
address; no choice becomes source text.

    INT, MAC, TIMESTAMP, INTERVAL, BOOL   one signed word each
    FLOAT                                 one signed word each, in the order of ``float_word``
    IP                                    two unsigned words each, the high half first
    STRING                                the end of the bytes of each as a word, then all bytes
"""

from __future__ import annotations

import struct
from array import array
from functools import lru_cache
from typing import TYPE_CHECKING

from gscope.queries.catalog.scalar.entry import FunctionEntry, Parameter
from gscope.queries.expressions.types import GsqlType
from gscope.queries.int64 import MAX_INT

if TYPE_CHECKING:
    from collections.abc import Sequence

    from gscope.queries.expressions.expressions import Value

MOST_CHOICES = 16
"""The most choices that an IN list has without becoming a table."""

HEADER_BYTES = 8
_INTEGERS, _FLOATS, _ADDRESSES, _TEXTS = range(1, 5)
_KINDS = {GsqlType.FLOAT: _FLOATS, GsqlType.IP: _ADDRESSES, GsqlType.STRING: _TEXTS}
_WORD = (1 << 64) - 1
_NAN = struct.unpack("<d", struct.pack("<Q", 0x7FF8 << 48))[0]


def float_word(value: float) -> int:
    """Return the word of a FLOAT: ordered alike, with one zero, and one NaN above all numbers."""
    canonical = _NAN if value != value else value + 0.0
    (bits,) = struct.unpack("<q", struct.pack("<d", canonical))
    return int(bits ^ ((bits >> 63) & MAX_INT))


def pack_table(values: Sequence[Value], kind: GsqlType) -> bytes:
    """Pack values of one type, none of them NULL, into a table."""
    tag = _KINDS.get(kind, _INTEGERS)
    if tag == _TEXTS:
        return _pack_texts({value for value in values if isinstance(value, bytes)})
    numbers = [float_word(float(v)) if tag == _FLOATS else int(v) for v in values if v is not None]
    numbers = sorted(set(numbers))
    header = _header(tag, len(numbers))
    if tag == _ADDRESSES:
        halves = (half for number in numbers for half in (number >> 64, number & _WORD))
        return header + _little(array("Q", halves))
    return header + _little(array("q", numbers))


def table_values(table: bytes) -> tuple[Value, ...]:
    """Return the values of a table in order; FLOAT words become floats again."""
    tag, count = table_size(table)
    body = table[HEADER_BYTES:]
    if tag == _TEXTS:
        ends = _words("Q", body[: 8 * count])
        heap = body[8 * count :]
        return tuple(heap[begin:end] for begin, end in zip((0, *ends), ends, strict=False))
    if tag == _ADDRESSES:
        words = _words("Q", body)
        return tuple(high << 64 | low for high, low in zip(words[::2], words[1::2], strict=True))
    numbers = _words("q", body)
    return tuple(map(_float_of, numbers)) if tag == _FLOATS else tuple(numbers)


def table_size(table: bytes) -> tuple[int, int]:
    """Return the kind of value of a table, and how many it has."""
    (header,) = struct.unpack_from("<Q", table)
    return header & 255, header >> 8


@lru_cache(maxsize=64)
def _members(table: bytes) -> frozenset[Value]:
    tag, _ = table_size(table)
    values = table_values(table)
    if tag == _FLOATS:
        return frozenset(float_word(float(value)) for value in values if value is not None)
    return frozenset(values)


def _in_table(value: Value, table: bytes) -> bool:
    members = _members(table)
    return (float_word(value) if isinstance(value, float) else value) in members


def _pack_texts(texts: set[bytes]) -> bytes:
    ordered = sorted(texts)
    ends = array("Q")
    end = 0
    for text in ordered:
        end += len(text)
        ends.append(end)
    return _header(_TEXTS, len(ordered)) + _little(ends) + b"".join(ordered)


def _header(tag: int, count: int) -> bytes:
    return struct.pack("<Q", tag | count << 8)


def _float_of(word: int) -> float:
    bits = word ^ ((word >> 63) & MAX_INT)
    return float(struct.unpack("<d", struct.pack("<q", bits))[0])


def _little(words: array[int]) -> bytes:
    if struct.pack("=H", 1) != struct.pack("<H", 1):
        words.byteswap()
    return words.tobytes()


def _words(code: str, data: bytes) -> array[int]:
    words: array[int] = array(code, data)
    if struct.pack("=H", 1) != struct.pack("<H", 1):
        words.byteswap()
    return words


TABLES = {
    "in_table": FunctionEntry(
        "in_table",
        (Parameter(None), Parameter(GsqlType.STRING, is_literal=True)),
        GsqlType.BOOL,
        _in_table,
        cost=10,
    )
}
