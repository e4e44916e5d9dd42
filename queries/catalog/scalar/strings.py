"""Functions on STRING: plain bytes, offsets count from 0, letters are those of ASCII."""

from __future__ import annotations

from typing import TYPE_CHECKING

from gscope.queries.catalog.scalar.entry import FunctionEntry, Parameter, always
from gscope.queries.catalog.scalar.integers import wrap
from gscope.queries.catalog.scalar.regex import RegexError, check_regex, find, matches
from gscope.queries.expressions.types import GsqlType

if TYPE_CHECKING:
    from gscope.queries.expressions.expressions import Value

_STRING = Parameter(GsqlType.STRING)
_INT = Parameter(GsqlType.INT)
_FIXED = Parameter(GsqlType.STRING, is_literal=True)

_FNV_OFFSET = 0xCBF29CE484222325
_FNV_PRIME = 0x100000001B3


def _regex_objection(value: Value) -> str:
    if not isinstance(value, bytes):
        return "invalid regular expression: expected a text"
    try:
        check_regex(value)
    except RegexError as error:
        return f"invalid regular expression: {error}"
    return ""


_REGEX = Parameter(GsqlType.STRING, is_literal=True, objection=_regex_objection)


def _match_offset(offset: int, needle: bytes, text: bytes) -> bool:
    return 0 <= offset <= len(text) and text.startswith(needle, offset)


def _byte_at(offset: int, byte: int, text: bytes) -> bool:
    return 0 <= offset < len(text) and text[offset] == byte


def _suffix(text: bytes, count: int) -> bytes:
    return text[max(0, len(text) - max(count, 0)) :]


def _substr(text: bytes, first: int, count: int) -> bytes:
    """Return the bytes at places ``first`` to ``first + count - 1``, the first byte being at 1."""
    return text[max(first, 1) - 1 : max(first + max(count, 0), 1) - 1]


def _find(text: bytes, needle: bytes) -> int | None:
    offset = text.find(needle)
    return None if offset < 0 else offset


def _hash(text: bytes) -> int:
    """Return FNV-1a with 64 bits."""
    state = _FNV_OFFSET
    for byte in text:
        state = (state ^ byte) * _FNV_PRIME & ((1 << 64) - 1)
    return wrap(state)


def _number(text: bytes) -> int | None:
    """Return the bytes as a number in network order; NULL if there are none or more than eight."""
    return wrap(int.from_bytes(text, "big")) if 1 <= len(text) <= 8 else None


_FUNCTIONS = (
    FunctionEntry(
        "str_match_start",
        (_STRING, _FIXED),
        GsqlType.BOOL,
        lambda text, needle: text.startswith(needle),
        cost=10,
    ),
    FunctionEntry("byte_match_offset", (_INT, _INT, _STRING), GsqlType.BOOL, _byte_at, cost=3),
    FunctionEntry(
        "str_match_offset",
        (_INT, _FIXED, _STRING),
        GsqlType.BOOL,
        _match_offset,
        cost=10,
        is_lfta_safe=False,
    ),
    FunctionEntry(
        "str_exists_substr",
        (_STRING, _FIXED),
        GsqlType.BOOL,
        lambda text, needle: needle in text,
        cost=200,
    ),
    FunctionEntry(
        "str_regex_match",
        (_STRING, _REGEX),
        GsqlType.BOOL,
        matches,
        cost=1000,
        is_lfta_safe=False,
    ),
    FunctionEntry(
        "str_extract_regex",
        (_STRING, _REGEX),
        GsqlType.STRING,
        find,
        makes_null=always,
        cost=1000,
        is_lfta_safe=False,
    ),
    FunctionEntry(
        "str_truncate",
        (_STRING, _INT),
        GsqlType.STRING,
        lambda text, count: text[: max(count, 0)],
        cost=10,
    ),
    FunctionEntry(
        "str_suffix", (_STRING, _INT), GsqlType.STRING, _suffix, cost=10, is_lfta_safe=False
    ),
    FunctionEntry(
        "substr",
        (_STRING, _INT, _INT),
        GsqlType.STRING,
        _substr,
        cost=10,
        is_lfta_safe=False,
    ),
    FunctionEntry(
        "concat",
        (_STRING, _STRING),
        GsqlType.STRING,
        lambda left, right: left + right,
        cost=20,
        is_lfta_safe=False,
    ),
    FunctionEntry(
        "str_find",
        (_STRING, _STRING),
        GsqlType.INT,
        _find,
        makes_null=always,
        cost=200,
        is_lfta_safe=False,
    ),
    FunctionEntry("length", (_STRING,), GsqlType.INT, len),
    *(
        FunctionEntry(name, (_STRING,), GsqlType.STRING, rule, cost=100, is_lfta_safe=False)
        for name, rule in (
            ("lower", bytes.lower),
            ("upper", bytes.upper),
            ("to_hex", lambda text: text.hex().encode()),
        )
    ),
    FunctionEntry("string_hash", (_STRING,), GsqlType.INT, _hash, cost=100, is_lfta_safe=False),
    FunctionEntry(
        "to_int",
        (_STRING,),
        GsqlType.INT,
        _number,
        makes_null=always,
        cost=20,
        is_lfta_safe=False,
    ),
)
STRINGS = {entry.name: entry for entry in _FUNCTIONS}
