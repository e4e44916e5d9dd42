"""Group keys packed into words: each key in the bits that its range needs, the epoch as a tag."""

from __future__ import annotations

from typing import TYPE_CHECKING

from gscope.capture.lfta.value_ranges import Range, range_of
from gscope.errors import UnsupportedError
from gscope.queries.expressions.expressions import Literal
from gscope.queries.expressions.types import GsqlType
from gscope.records import dataclass

if TYPE_CHECKING:
    from collections.abc import Sequence

    from gscope.capture.lfta.codegen.scope import Lowered, Scope
    from gscope.queries.expressions.expressions import NamedExpression

MIN_TAG_BITS = 16
MAX_TAG_BITS = 62
WORD_BITS = 64


@dataclass(frozen=True, slots=True)
class BitField:
    """A range of bits in a word of a slot."""

    word: int
    shift: int
    bits: int

    def put(self, code: str) -> str:
        """Return code that shifts ``code``, which fits the bits, to its place."""
        return f"({code} << {self.shift})" if self.shift else f"({code})"

    def take(self, *, is_signed: bool = False) -> str:
        """Return code that reads the bits from the variable of the word."""
        word = f"w{self.word}"
        if self.bits == WORD_BITS:
            return word
        if is_signed:
            return f"(({word} << {WORD_BITS - self.shift - self.bits}) >> {WORD_BITS - self.bits})"
        if self.shift + self.bits == WORD_BITS:
            return f"lshr({word}, {self.shift})"
        return f"(lshr({word}, {self.shift}) & {(1 << self.bits) - 1})"


@dataclass(frozen=True, slots=True)
class PackedKey:
    """One key in a slot.

    Attributes:
        places: bits of its value; two fields for 128 bits, none for a constant or the epoch.
        constant: value that all groups share; None if they do not.
        null: bit that marks NULL; None if it is never NULL.
    """

    name: str
    type: GsqlType
    places: tuple[BitField, ...]
    is_signed: bool
    is_ipv4: bool
    constant: Lowered | None
    null: BitField | None
    is_epoch: bool


@dataclass(frozen=True, slots=True)
class Packing:
    """All keys of a table.

    Attributes:
        words: number of words of the packed keys.
        tag: bits of the epoch's tag, the highest of a word.
    """

    keys: tuple[PackedKey, ...]
    words: int
    tag: BitField

    @property
    def tags(self) -> int:
        """Number of epochs that the tag distinguishes; a tag of 0 marks an empty slot."""
        return (1 << min(self.tag.bits, MAX_TAG_BITS)) - 1


def plan_packing(
    keys: Sequence[NamedExpression], epoch: str | None, variants: Sequence[Sequence[Lowered]]
) -> Packing:
    """Plan how to pack ``keys``, as lowered by each variant that shares the table.

    Raises:
        UnsupportedError: a STRING key.
    """
    shelf = _Shelf()
    # Wide keys first, so that narrow ones fill the rest.
    wants = [
        _Want.of(key, [v[n] for v in variants], key.name == epoch) for n, key in enumerate(keys)
    ]
    packed = [want.place(shelf) for want in sorted(wants, key=lambda want: -want.bits)]
    order = {key.name: n for n, key in enumerate(keys)}
    packed.sort(key=lambda key: order[key.name])
    return Packing(tuple(packed), *shelf.finish())


class _Shelf:
    """The words of a slot while they are filled."""

    def __init__(self) -> None:
        self._used: list[int] = []

    def take(self, bits: int) -> BitField:
        for word, used in enumerate(self._used):
            if used + bits <= WORD_BITS:
                self._used[word] += bits
                return BitField(word, used, bits)
        self._used.append(bits)
        return BitField(len(self._used) - 1, 0, bits)

    def finish(self) -> tuple[int, BitField]:
        """Return the number of words and the tag's place: the most free bits or a new word."""
        free, word = max(
            ((WORD_BITS - used, n) for n, used in enumerate(self._used)), default=(0, 0)
        )
        if free < MIN_TAG_BITS:
            self._used.append(0)
            free, word = WORD_BITS, len(self._used) - 1
        return len(self._used), BitField(word, WORD_BITS - free, free)


@dataclass(frozen=True, slots=True)
class _Want:
    key: NamedExpression
    lowered: Sequence[Lowered]
    bits: int
    values: Range | None
    is_epoch: bool

    @classmethod
    def of(cls, key: NamedExpression, lowered: Sequence[Lowered], is_epoch: bool) -> _Want:
        type_ = key.expression.type
        if type_ is GsqlType.STRING:
            message = f"the key {key.name!r} is a STRING; an LFTA groups by fixed-size values only"
            raise UnsupportedError(message)
        values = None
        if is_epoch or _is_constant(lowered):
            bits = 0
        elif type_ is GsqlType.IP:
            bits = 32 if all(x.is_ipv4 or x.is_always_null for x in lowered) else 128
        elif type_ is GsqlType.FLOAT:
            bits = WORD_BITS
        else:
            values = _values(key, lowered)
            bits = values.bits
        return cls(key, lowered, bits, values, is_epoch)

    def place(self, shelf: _Shelf) -> PackedKey:
        constant = self.lowered[0] if _is_constant(self.lowered) and not self.is_epoch else None
        null = None
        if constant is None and not self.is_epoch and any(x.null for x in self.lowered):
            null = shelf.take(1)
        sizes = (WORD_BITS, WORD_BITS) if self.bits == 128 else (self.bits,) * (self.bits > 0)
        places = [shelf.take(bits) for bits in sizes]
        return PackedKey(
            self.key.name,
            self.key.expression.type,
            tuple(places),
            self.values is not None and self.values.is_signed,
            self.bits == 32 and self.key.expression.type is GsqlType.IP,
            constant,
            null,
            self.is_epoch,
        )


def _is_constant(lowered: Sequence[Lowered]) -> bool:
    first = lowered[0]
    return all(x.is_literal and (x.null, x.literal) == (first.null, first.literal) for x in lowered)


def _values(key: NamedExpression, lowered: Sequence[Lowered]) -> Range:
    """Return the range over all variants; that of their constants if each has one (IP version)."""
    ranges = [
        range_of(Literal(x.literal, x.type))
        if x.is_literal and not x.is_always_null
        else range_of(key.expression)
        for x in lowered
        if not x.is_always_null
    ]
    result = ranges[0] if ranges else Range(0, 0)
    for other in ranges[1:]:
        result = result.union(other)
    return result


def pack(scope: Scope, packing: Packing, lowered: Sequence[Lowered]) -> list[str]:
    """Return the names of the key words, with zeros in place of the tag."""
    terms: list[list[str]] = [[] for _ in range(packing.words)]
    for key, value in zip(packing.keys, lowered, strict=True):
        if key.null is not None:
            flag = {None: "0", "True": "1"}.get(value.null, f"(1 if {value.null} else 0)")
            terms[key.null.word].append(key.null.put(flag))
        if value.is_always_null:
            continue
        for place, part in zip(key.places, _integers(key, value), strict=True):
            code = part
            if key.is_signed and place.bits < WORD_BITS:
                code = f"({code} & {(1 << place.bits) - 1})"
            if value.null is not None:
                code = f"(0 if {value.null} else {code})"
            terms[place.word].append(place.put(code))
    return [scope.value(" | ".join(word) or "0") for word in terms]


def _integers(key: PackedKey, value: Lowered) -> tuple[str, ...]:
    """Return the parts of a key as non-negative integers of its width."""
    if not key.places:
        return ()
    if key.is_ipv4:
        return (f"({value.parts[1]} & 4294967295)",)
    if key.type is GsqlType.FLOAT:
        return (f"float_bits(float_key({value.code}))",)
    if key.type is GsqlType.BOOL:
        return (f"(1 if {value.code} else 0)",)
    return value.parts


def unpack(key: PackedKey, packing: Packing) -> tuple[tuple[str, ...], str | None]:
    """Return code for the parts and the NULL condition of a key from a slot's words w0, w1 …."""
    if key.is_epoch:
        return (f"base + {packing.tag.take()} - 1",), None
    if key.constant is not None:
        return key.constant.parts, key.constant.null
    null = None if key.null is None else f"({key.null.take()} != 0)"
    parts = tuple(place.take(is_signed=key.is_signed) for place in key.places) or ("0",)
    if key.is_ipv4:
        return ("0", f"({parts[0]} | 281470681743360)"), null
    if key.type is GsqlType.FLOAT:
        return (f"bits_float({parts[0]})",), null
    if key.type is GsqlType.BOOL:
        return (f"({parts[0]} != 0)",), null
    return parts, null
