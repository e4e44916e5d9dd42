"""Functions on IP and MAC addresses; an IP value is 128 bits, IPv4 as ``::ffff:a.b.c.d``.

The IPv6 address ``::ffff:a.b.c.d`` of an IPv6 header is another address than the IPv4 address
``a.b.c.d``: its value is ``::fffe:a.b.c.d``, from a block that is not assigned. Decision 24 gives
the reason.
"""

from __future__ import annotations

import ipaddress
import socket
from typing import TYPE_CHECKING

from gscope.queries.catalog.scalar.entry import FunctionEntry, Parameter, always
from gscope.queries.expressions.types import GsqlType

if TYPE_CHECKING:
    from gscope.queries.expressions.expressions import Value

_IP = GsqlType.IP
_INT = GsqlType.INT
_BOOL = GsqlType.BOOL
_STRING = GsqlType.STRING

_V4_PREFIX = 0xFFFF << 32
_MAPPED_PREFIX = 0xFFFE << 32
_V4_BITS = 96
_LOW_32 = (1 << 32) - 1
_LOW_64 = (1 << 64) - 1
_ALL_128 = (1 << 128) - 1

PRIVATE_NETWORKS: tuple[tuple[int, int], ...] = (
    (_V4_PREFIX | 10 << 24, 96 + 8),
    (_V4_PREFIX | 172 << 24 | 16 << 16, 96 + 12),
    (_V4_PREFIX | 192 << 24 | 168 << 16, 96 + 16),
    (0xFC << 120, 7),
)
"""Networks for private use (RFC 1918, RFC 4193), with their prefix length of 128 bits."""


def is_ipv4(address: int) -> bool:
    """Return whether the 128-bit ``address`` stands for an IPv4 address."""
    return address >> 32 == 0xFFFF


def is_mapped(address: int) -> bool:
    """Return whether the value stands for ``::ffff:a.b.c.d`` of an IPv6 header."""
    return address >> 32 == _MAPPED_PREFIX >> 32


def ipv6_value(bits: int) -> int:
    """Return the value of the IPv6 address with these 128 bits; never that of an IPv4 address."""
    return bits ^ _V4_PREFIX ^ _MAPPED_PREFIX if is_ipv4(bits) else bits


def ipv6_bits(address: int) -> int:
    """Return the 128 bits of the IPv6 address of a value: the inverse of ``ipv6_value``."""
    return address ^ _V4_PREFIX ^ _MAPPED_PREFIX if is_mapped(address) else address


def parse_ip(text: str) -> int | None:
    """Return the 128-bit value of an IPv4 or IPv6 address in text form, None if it is invalid."""
    try:
        return _V4_PREFIX | int.from_bytes(socket.inet_pton(socket.AF_INET, text))
    except (OSError, ValueError):
        pass  # an IPv6 address, or no address
    try:
        address = ipaddress.ip_address(text)
    except ValueError:
        return None
    if isinstance(address, ipaddress.IPv4Address):
        return _V4_PREFIX | int(address)
    return None if address.scope_id else ipv6_value(int(address))


def format_ip(address: int) -> str:
    """Return an address as text, IPv4 dotted and IPv6 by RFC 5952."""
    dotted = str(ipaddress.IPv4Address(address & _LOW_32))
    if is_ipv4(address):
        return dotted
    return f"::ffff:{dotted}" if is_mapped(address) else str(ipaddress.IPv6Address(address))


def format_mac(address: int) -> str:
    """Return an address as ``aa:bb:cc:dd:ee:ff``."""
    return (address & ((1 << 48) - 1)).to_bytes(6, "big").hex(":")


def in_network(address: int, network: int, bits: int) -> bool:
    """Return whether the first ``bits`` of 128 agree; no IPv4 address is in an IPv6 network."""
    if bits < _V4_BITS and is_ipv4(address):
        return False
    return (address ^ network) >> (128 - bits) == 0


def covers_ipv4(network: int, bits: int) -> bool:
    """Return whether an IPv6 network has the first ``bits`` of all IPv4 addresses."""
    return bits < _V4_BITS and (_V4_PREFIX ^ network) >> (128 - bits) == 0


def _mask(address: int, mask: int) -> int:
    if is_ipv4(address):
        return _V4_PREFIX | (address & mask & _LOW_32)
    if 0 <= mask <= _LOW_32:
        return address & (_ALL_128 ^ _LOW_32 | mask)
    return ipv6_value(ipv6_bits(address) & (_ALL_128 ^ _LOW_64 | (mask & _LOW_64)))


def _prefix(address: int, bits4: int, bits6: int) -> int:
    bits = 96 + bits4 if is_ipv4(address) else bits6
    return address >> (128 - bits) << (128 - bits)


def _in_subnet(address: int, network: int, length: int) -> bool | None:
    bits = _bits_of(network, length)
    return None if bits is None else in_network(address, network, bits)


def _prefix_of(address: int, bits4: int, bits6: int) -> int | None:
    bits = _bits_of(address, bits4 if is_ipv4(address) else bits6)
    return None if bits is None else address >> (128 - bits) << (128 - bits)


def _bits_of(address: int, length: int) -> int | None:
    """Return a prefix length of the address's family as one of 128 bits; None if it is invalid."""
    largest, offset = (32, _V4_BITS) if is_ipv4(address) else (128, 0)
    return offset + length if 0 <= length <= largest else None


def _from_int(number: int) -> int | None:
    return _V4_PREFIX | number if 0 <= number <= _LOW_32 else None


def _is_private(address: int) -> bool:
    return any(in_network(address, network, bits) for network, bits in PRIVATE_NETWORKS)


def _from_string(text: bytes) -> int | None:
    try:
        return parse_ip(text.decode("ascii"))
    except UnicodeDecodeError:
        return None


def _bits(largest: int) -> Parameter:
    def objection(value: Value) -> str:
        if isinstance(value, int) and 0 <= value <= largest:
            return ""
        return f"invalid prefix length: expected 0 to {largest}, got {value!r}"

    return Parameter(_INT, is_literal=True, objection=objection)


_FUNCTIONS = (
    FunctionEntry(
        "ip_to_int",
        (Parameter(_IP),),
        _INT,
        lambda a: a & _LOW_32 if is_ipv4(a) else None,
        makes_null=always,
    ),
    FunctionEntry(
        "int_to_ip",
        (Parameter(_INT),),
        _IP,
        _from_int,
        makes_null=always,
        cost=2,
    ),
    FunctionEntry("ip_mask", (Parameter(_IP), Parameter(_INT)), _IP, _mask, cost=2),
    FunctionEntry("prefix", (Parameter(_IP), _bits(32), _bits(128)), _IP, _prefix, cost=2),
    FunctionEntry(
        "in_net",
        (Parameter(_IP), Parameter(_IP, is_literal=True), _bits(128)),
        _BOOL,
        in_network,
        cost=2,
    ),
    FunctionEntry(
        "in_subnet",
        (Parameter(_IP), Parameter(_IP), Parameter(_INT)),
        _BOOL,
        _in_subnet,
        makes_null=always,
        cost=8,
    ),
    FunctionEntry(
        "prefix_of",
        (Parameter(_IP), Parameter(_INT), Parameter(_INT)),
        _IP,
        _prefix_of,
        makes_null=always,
        cost=8,
    ),
    FunctionEntry("is_private", (Parameter(_IP),), _BOOL, _is_private, cost=5),
    FunctionEntry(
        "string_to_ip",
        (Parameter(_STRING),),
        _IP,
        _from_string,
        makes_null=always,
        cost=100,
        is_lfta_safe=False,
    ),
    FunctionEntry(
        "ip_to_string",
        (Parameter(_IP),),
        _STRING,
        lambda a: format_ip(a).encode(),
        cost=100,
        is_lfta_safe=False,
    ),
    FunctionEntry(
        "mac_to_string",
        (Parameter(GsqlType.MAC),),
        _STRING,
        lambda a: format_mac(a).encode(),
        cost=100,
        is_lfta_safe=False,
    ),
)
ADDRESSES = {entry.name: entry for entry in _FUNCTIONS}
