"""Values of the reference as a reader of CSV sees them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tests.differential import addresses
from tests.differential.syntax import Type
from tests.reference.reference import when

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from tests.differential.syntax import Field


def shown(rows: Sequence[dict[str, Any]], fields: Sequence[Field]) -> list[tuple[str, ...]]:
    """Rows as text, NULL as nothing."""
    return [tuple(_text(row.get(f.name), f.type) for f in fields) for row in rows]


def _text(value: Any, kind: Type) -> str:
    return "" if value is None else _TEXTS[kind](value)


def _escaped(value: bytes) -> str:
    text = value.replace(b"\\", b"\\\\").decode("utf-8", errors="backslashreplace")
    return "".join(c if c.isprintable() else _unprintable(c) for c in text)


def _unprintable(character: str) -> str:
    short = {"\n": "\\n", "\r": "\\r", "\t": "\\t"}
    code = ord(character)
    wide = f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"
    return short.get(character) or (f"\\x{code:02x}" if code < 0x80 else wide)


_TEXTS: dict[Type, Callable[[Any], str]] = {
    Type.BOOL: lambda value: "true" if value else "false",
    Type.INT: lambda value: str(int(value)),
    Type.FLOAT: lambda value: repr(float(value) + 0.0),
    Type.STRING: _escaped,
    Type.IP: addresses.shown,
    Type.MAC: lambda value: value.to_bytes(6, "big").hex(":"),
    Type.TIMESTAMP: when,
}
