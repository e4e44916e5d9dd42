"""Which bits of an address a function of it keeps, by family."""

from __future__ import annotations

from typing import NamedTuple

_LOW_32 = (1 << 32) - 1
_ALL_128 = (1 << 128) - 1


class AddressBits(NamedTuple):
    """The bits that count.

    Attributes:
        of_ipv4: of the 32 of an IPv4 address.
        of_ipv6: of the 128 of an IPv6 address.
    """

    of_ipv4: int
    of_ipv6: int


WHOLE_ADDRESS = AddressBits(_LOW_32, _ALL_128)


def address_bits(function: str, constants: tuple[int, ...]) -> AddressBits | None:
    """Return the bits that ``ip_mask`` or ``prefix`` keeps with some constants.

    None for another function, or if the result is not those bits: a long mask may make an address
    of another family.
    """
    match function, constants:
        case "ip_mask", (mask,) if 0 <= mask <= _LOW_32:
            return AddressBits(mask, _ALL_128 ^ _LOW_32 | mask)
        case "prefix", (bits4, bits6) if 0 <= bits4 <= 32 and 0 <= bits6 <= 128:
            return AddressBits(_LOW_32 ^ (_LOW_32 >> bits4), _ALL_128 ^ (_ALL_128 >> bits6))
    return None
