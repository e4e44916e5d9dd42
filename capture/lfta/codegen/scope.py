"""Straight-line code for one packet: statements, the values they compute, and facts about these."""

from __future__ import annotations

import re
from dataclasses import replace
from enum import IntEnum
from typing import TYPE_CHECKING

from gscope.capture.packet.fields import bindings
from gscope.queries.expressions.types import GsqlType
from gscope.records import dataclass

if TYPE_CHECKING:
    from collections.abc import Iterable

    from gscope.queries.expressions.expressions import Value

ALWAYS = "True"
"""NULL condition of a value that is always NULL."""

IPV4_MAPPED = 0xFFFF << 32


class Variant(IntEnum):
    """What a copy of an LFTA's code may assume about its packets.

    Plain packets (``packet/fast_path.py``) have no record.
    """

    OTHER = 0
    IPV4 = 4
    IPV6 = 6
    PLAIN_IPV4 = 16 + 4
    PLAIN_IPV6 = 16 + 6

    @property
    def version(self) -> int:
        """The IP version; 0 for packets without IP."""
        return self & 15

    @property
    def is_plain(self) -> bool:
        """Whether its packets are plain ones."""
        return self >= Variant.PLAIN_IPV4


@dataclass(frozen=True, slots=True)
class Lowered:
    """An expression that has been computed: names or literals for its value.

    Attributes:
        parts: one name (BOOL a boolean, FLOAT a double, others int64); two for IP (high and low
            half) and STRING (address and length). Meaningless if the value is NULL.
        null: name of a boolean, whether the value is NULL; None for never, ``ALWAYS`` for always.
        is_literal: whether the value is a constant.
        literal: the constant; None otherwise.
        is_ipv4: whether an IP is known to be v4-mapped.
    """

    type: GsqlType
    parts: tuple[str, ...]
    null: str | None = None
    is_literal: bool = False
    literal: Value = None
    is_ipv4: bool = False

    @property
    def code(self) -> str:
        """The only part."""
        return self.parts[0]

    @property
    def is_always_null(self) -> bool:
        """Whether it is NULL for every packet."""
        return self.null == ALWAYS

    def with_null(self, null: str | None) -> Lowered:
        """Return the same value with another NULL condition."""
        return replace(self, null=null)


def null_literal(type_: GsqlType) -> Lowered:
    """Return NULL of a type."""
    parts = {
        GsqlType.BOOL: ("False",),
        GsqlType.FLOAT: ("0.0",),
        GsqlType.IP: ("0", "0"),
        GsqlType.STRING: ("0", "0"),
    }.get(type_, ("0",))
    return Lowered(type_, parts, ALWAYS, is_literal=True)


class Literals:
    """The bytes of all STRING literals of a query set, one after another."""

    def __init__(self) -> None:
        self.data = bytearray()
        self._places: dict[bytes, int] = {}

    def place(self, value: bytes) -> int:
        """Return the offset of ``value`` in ``data``, which may grow."""
        if value not in self._places:
            self._places[value] = len(self.data)
            self.data += value
        return self._places[value]


class Scope:
    """The statements of one packet's code, each value computed once.

    Statements use these names: ``i`` (the packet's number in the batch), ``p`` (its number in the
    block), and ``BATCH_PARAMETERS`` of ``names.py``.
    """

    def __init__(self, variant: Variant, literals: Literals, indent: int) -> None:
        self.variant = variant
        self.literals = literals
        self.lines: list[str] = []
        self.lowered: dict[str, Lowered] = {}
        self._pad = "    " * indent
        self._names: dict[str, str] = {}
        self._bound: set[str] = set()

    def emit(self, line: str) -> None:
        """Add a statement."""
        self.lines.append(self._pad + line)

    def value(self, code: str) -> str:
        """Return a name for the value of ``code``, which is ``code`` itself if a name or number."""
        if code.isidentifier() or code.lstrip("-").isdigit():
            return code
        if code not in self._names:
            # A letter for each variant: they share functions, and numba gives a name one type.
            name = f"{_LETTERS[self.variant]}{len(self._names)}"
            self._names[code] = name
            self.emit(f"{name} = {code}")
        return self._names[code]

    def bind(self, snippets: Iterable[str]) -> None:
        """Define the variables that field snippets use."""
        snippets = tuple(snippets)
        plain = self.variant.version if self.variant.is_plain else None
        derived = bindings(snippets, plain)
        words = set(re.findall(r"\w+", " ".join((*snippets, *(code for _, code in derived)))))
        for name, code in _GIVEN.items():
            if name in words:
                self._bind(name, code)
        for name, code in derived:
            self._bind(name, str(self.variant.version) if name == "version" else code)

    def _bind(self, name: str, code: str) -> None:
        if name not in self._bound:
            self._bound.add(name)
            self.emit(f"{name} = {code}")

    def either(self, *nulls: str | None) -> str | None:
        """Return the NULL condition of a value that is NULL if any of these is."""
        conditions = sorted({null for null in nulls if null is not None})
        if ALWAYS in conditions:
            return ALWAYS
        return self.value(" | ".join(conditions)) if conditions else None

    def is_true(self, lowered: Lowered) -> str:
        """Return code for whether the BOOL is true and not NULL."""
        if lowered.null is None:
            return lowered.code
        if lowered.is_always_null:
            return "False"
        return self.value(f"{lowered.code} & (not {lowered.null})")

    def is_false(self, lowered: Lowered) -> str:
        """Return code for whether the BOOL is false and not NULL."""
        if lowered.is_always_null:
            return "False"
        if lowered.null is None:
            return self.value(f"not {lowered.code}")
        return self.value(f"(not {lowered.code}) & (not {lowered.null})")


RECORD_VARIANTS = (Variant.IPV4, Variant.IPV6, Variant.OTHER)
"""Variants of packets with a record."""

PLAIN_VARIANTS = (Variant.PLAIN_IPV4, Variant.PLAIN_IPV6)
"""Variants of packets without a record."""

_LETTERS = {
    Variant.IPV4: "v",
    Variant.IPV6: "u",
    Variant.OTHER: "t",
    Variant.PLAIN_IPV4: "y",
    Variant.PLAIN_IPV6: "z",
}

_GIVEN = {
    "record": "memory.records + i * RECORD_BYTES",
    "inner_record": "memory.inner_records + i * RECORD_BYTES",
    "base": "packets.data + ld64(packets.offset + 8 * p)",
    "caplen": "ld32(packets.caplen + 4 * p)",
    "wirelen": "(ld32(packets.wirelen + 4 * p) << 32) >> 32",
    "time_ns": "ld64(packets.time_ns + 8 * p)",
    "linktype": "ld32(packets.linktype + 4 * p)",
}
