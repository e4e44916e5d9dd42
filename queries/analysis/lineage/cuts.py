"""Functions of one value, ordered by how finely they distinguish values, and their meet.

A *cut* stands for a function up to renaming of its results: the partition of values that it makes.
``x >> 4`` and ``x & ~15`` are one cut. Below the identity there are masks (some bits of a value),
quotients and remainders by a divisor that is not a power of two, and masks of IP addresses. The
meet of two cuts is the finest cut that is a function of both:

    x & 0xFF0 ∧ x & 0x0FF   =  x & 0x0F0
    x/60      ∧ x/90        =  x/180
    x % 12    ∧ x % 18      =  x % 6
    x & ~3    ∧ x/6         =  x/12

Quotients and remainders are those of values of 0 or more, which fields of headers are.
"""

from __future__ import annotations

import math
from dataclasses import field, replace
from typing import TYPE_CHECKING

from gscope.queries.catalog.evaluate import call
from gscope.queries.expressions.expressions import Literal
from gscope.queries.expressions.types import GsqlType
from gscope.records import dataclass

if TYPE_CHECKING:
    from gscope.queries.expressions.expressions import Expression

_BITS = 64
_ALL = (1 << _BITS) - 1
_ALL_32 = (1 << 32) - 1
_ALL_128 = (1 << 128) - 1
_LARGEST = 1 << 62
"""The largest divisor; every value that fits 64 bits has the quotient 0 or 1 by it."""


@dataclass(frozen=True, slots=True)
class Whole:
    """The identity: it distinguishes all values."""

    def applied(self, expression: Expression) -> Expression:
        """Return the function of ``expression``."""
        return expression


@dataclass(frozen=True, slots=True)
class Mask:
    """``x & bits``, with at least one of 64 bits.

    A quotient by 2ⁿ is the mask of all but the last n bits, a remainder that of the last n.
    """

    bits: int

    def applied(self, expression: Expression) -> Expression:
        """Return the function of ``expression``."""
        signed = self.bits - (1 << _BITS) if self.bits >> (_BITS - 1) else self.bits
        return call("bit_and", expression, Literal(signed, GsqlType.INT))


@dataclass(frozen=True, slots=True)
class Quotient:
    """``x / divisor``, where the divisor is not a power of two."""

    divisor: int

    def applied(self, expression: Expression) -> Expression:
        """Return the function of ``expression``."""
        return call("idiv_int", expression, Literal(self.divisor, GsqlType.INT))


@dataclass(frozen=True, slots=True)
class Remainder:
    """``x % divisor``, where the divisor is not a power of two."""

    divisor: int

    def applied(self, expression: Expression) -> Expression:
        """Return the function of ``expression``."""
        return call("mod_int", expression, Literal(self.divisor, GsqlType.INT))


@dataclass(frozen=True, slots=True)
class AddressMask:
    """Some bits of an IP address, and its family.

    Attributes:
        bits4: the bits of an IPv4 address that count, of 32.
        bits6: the bits of an IPv6 address that count, of 128.
        steps: the calls whose composition it is, each a function with its constants.
    """

    bits4: int
    bits6: int
    steps: tuple[tuple[str, tuple[int, ...]], ...] = field(compare=False)

    @classmethod
    def masked(cls, mask: int) -> AddressMask | None:
        """Return the cut of ``address & mask``; see ``addresses.py`` for the bits of IPv6.

        None if the mask makes ``::ffff:a.b.c.d`` of other addresses: such a result is written as
        another address, so that it has not only the bits of the mask.
        """
        kept = 32 if 0 <= mask <= _ALL_32 else 64
        high = (mask & _ALL) >> 32
        if kept > 32 and high & 0xFFFF == 0xFFFF and high != _ALL_32:
            return None
        bits6 = (_ALL_128 >> kept << kept) | (mask & ((1 << kept) - 1))
        return cls(mask & _ALL_32, bits6, (("ip_mask", (mask,)),))

    @classmethod
    def prefix(cls, bits4: int, bits6: int) -> AddressMask:
        """Return the cut of ``prefix(address, bits4, bits6)``."""
        first4 = _ALL_32 >> (32 - bits4) << (32 - bits4)
        first6 = _ALL_128 >> (128 - bits6) << (128 - bits6)
        return cls(first4, first6, (("prefix", (bits4, bits6)),))

    def applied(self, expression: Expression) -> Expression:
        """Return the function of ``expression``."""
        for function, constants in self.steps:
            literals = (Literal(each, GsqlType.INT) for each in constants)
            expression = call(function, expression, *literals)
        return expression

    def with_bits_of(self, other: AddressMask) -> AddressMask | None:
        """Return the cut by the bits that count in both; None if none does."""
        if not self.bits4 & other.bits4 and not self.bits6 & other.bits6:
            return None
        both = replace(self, bits4=self.bits4 & other.bits4, bits6=self.bits6 & other.bits6)
        if both in (self, other):
            return self if both == self else other
        steps = tuple(sorted({*self.steps, *other.steps}))
        return replace(both, steps=steps)


Cut = Whole | Mask | Quotient | Remainder | AddressMask

WHOLE = Whole()


def mask(bits: int) -> Cut | None:
    """Return the cut of ``x & bits``; None if it is constant."""
    bits &= _ALL
    if bits == _ALL:
        return WHOLE
    return Mask(bits) if bits else None


def quotient(divisor: int) -> Cut | None:
    """Return the cut of ``x / divisor`` for values and divisors of 0 or more; None if constant."""
    if divisor < 1 or divisor > _LARGEST:
        return None
    if divisor & (divisor - 1) == 0:
        return mask(-divisor)
    return Quotient(divisor)


def remainder(divisor: int) -> Cut | None:
    """Return the cut of ``x % divisor`` for values and divisors of 0 or more; None if constant."""
    if divisor < 2 or divisor > _LARGEST:
        return None
    if divisor & (divisor - 1) == 0:
        return mask(divisor - 1)
    return Remainder(divisor)


def meet(one: Cut, other: Cut) -> Cut | None:
    """Return the finest cut that is a function of both; None if only constants are."""
    match one, other:
        case (Whole(), _):
            return other
        case (_, Whole()):
            return one
        case (Mask(), Mask()):
            return mask(one.bits & other.bits)
        case (Quotient(), Quotient()):
            return quotient(math.lcm(one.divisor, other.divisor))
        case (Remainder(), Remainder()):
            return remainder(math.gcd(one.divisor, other.divisor))
        case (AddressMask(), AddressMask()):
            return one.with_bits_of(other)
        case (Mask(), Quotient()) | (Quotient(), Mask()):
            bits, divisor = (
                (one.bits, other.divisor)
                if isinstance(one, Mask) and isinstance(other, Quotient)
                else _swapped(one, other)
            )
            # All bits from the last one that is missing on make a quotient; others make none.
            missing = (bits ^ _ALL).bit_length()
            return None if missing >= _BITS else quotient(math.lcm(1 << missing, divisor))
        case (Mask(), Remainder()) | (Remainder(), Mask()):
            bits, divisor = (
                (one.bits, other.divisor)
                if isinstance(one, Mask) and isinstance(other, Remainder)
                else _swapped(one, other)
            )
            # The last bits of a value are those of its remainder as far as the divisor is even.
            return mask(bits & ((divisor & -divisor) - 1))
        case _:
            return None


def _swapped(one: Cut, other: Cut) -> tuple[int, int]:
    assert isinstance(one, Quotient | Remainder)
    assert isinstance(other, Mask)
    return other.bits, one.divisor


def is_function_of(cut: Cut, finer: Cut) -> bool:
    """Return whether ``cut`` distinguishes only values that ``finer`` distinguishes."""
    return meet(cut, finer) == cut
