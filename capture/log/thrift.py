"""As much of Thrift's compact protocol as Parquet's headers need: encoding only.

Each function gives a field of a struct, (number, type, bytes); ``encode`` joins fields, in rising
order of their numbers, to a struct.
https://github.com/apache/thrift/blob/master/doc/specs/thrift-compact-protocol.md
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

Field = tuple[int, int, bytes]

_I32, _I64, _BINARY, _LIST, _STRUCT = 5, 6, 8, 9, 12
_STOP = b"\0"


def encode(*fields: Field) -> bytes:
    """Return a struct of ``fields``."""
    parts = []
    last = 0
    for number, type_, value in fields:
        # Parquet's numbers are close together: the long form for jumps of more than 15 is not
        # needed.
        parts += [bytes([(number - last) << 4 | type_]), value]
        last = number
    return b"".join(parts) + _STOP


def i32(number: int, value: int) -> Field:
    """Return an i32, or an enumeration."""
    return number, _I32, zigzag(value)


def i64(number: int, value: int) -> Field:
    """Return an i64."""
    return number, _I64, zigzag(value)


def text(number: int, value: str) -> Field:
    """Return a string."""
    return number, _BINARY, _sized(value.encode())


def struct(number: int, *fields: Field) -> Field:
    """Return a struct within the struct."""
    return number, _STRUCT, encode(*fields)


def i32s(number: int, values: Sequence[int]) -> Field:
    """Return a list of i32 or of an enumeration."""
    return _list(number, _I32, [zigzag(value) for value in values])


def texts(number: int, values: Sequence[str]) -> Field:
    """Return a list of strings."""
    return _list(number, _BINARY, [_sized(value.encode()) for value in values])


def structs(number: int, values: Iterable[bytes]) -> Field:
    """Return a list of structs, each encoded already."""
    return _list(number, _STRUCT, list(values))


def _list(number: int, type_: int, items: Sequence[bytes]) -> Field:
    size = len(items)
    head = bytes([size << 4 | type_]) if size < 15 else bytes([0xF0 | type_]) + varint(size)
    return number, _LIST, head + b"".join(items)


def varint(value: int) -> bytes:
    """Return a number that is not negative, seven bits a byte, the least first."""
    made = bytearray()
    while value > 127:
        made.append(value & 127 | 128)
        value >>= 7
    made.append(value)
    return bytes(made)


def zigzag(value: int) -> bytes:
    """Any integer, so that those near zero are short."""
    return varint(value << 1 if value >= 0 else ~(value << 1))


def _sized(value: bytes) -> bytes:
    return varint(len(value)) + value
