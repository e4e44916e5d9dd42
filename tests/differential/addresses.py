"""Addresses as integers: the two families apart, and in the order of the language.

An address is, from the top, its upper 96 bits (of IPv4 those of ``::ffff:0:0/96``), one bit that
IPv4 sets, and its lower 32 bits. So all IPv4 addresses follow the v4-mapped addresses of IPv6.

Decision 24 gives ``::fffe:0:0/96`` away: such an address, from the wire or as the result of a mask
or prefix, is the v4-mapped one with the same low 32 bits.
"""

from __future__ import annotations

from ipaddress import IPv4Address, IPv6Address, ip_address, ip_network

LOW_32 = (1 << 32) - 1
_MAPPED = 0xFFFF
_GIVEN_AWAY = 0xFFFE

Address = IPv4Address | IPv6Address


def numbered(address: Address) -> int:
    """Return the number of an address."""
    is_four = isinstance(address, IPv4Address)
    bits = int(address) | (_MAPPED << 32 if is_four else 0)
    return _from_bits(bits, is_four=is_four)


def of_text(text: str) -> int:
    """Return the number of an address as ``ipaddress`` reads it."""
    return numbered(ip_address(text))


def ipv4(number: int) -> int | None:
    """Return the IPv4 address that is this integer in a query; None if none is."""
    return numbered(IPv4Address(number)) if 0 <= number <= LOW_32 else None


def ipv4_value(address: int) -> int | None:
    """Return the integer of an IPv4 address, None for IPv6."""
    return address & LOW_32 if is_v4(address) else None


def is_v4(address: int) -> bool:
    """Return whether an address is of IPv4."""
    return bool(address >> 32 & 1)


def shown(address: int) -> str:
    """Return an address as text, dotted for IPv4 and behind the prefix of mapped ones."""
    host = _host(address)
    mapped = host.ipv4_mapped if isinstance(host, IPv6Address) else None
    return str(host) if mapped is None else f"::ffff:{mapped}"


def masked(address: int, mask: int) -> int:
    """Return ``address & mask``.

    Of IPv6 the mask is about the low 32 bits, or 64 if it is wider.
    """
    if is_v4(address):
        return address & ~LOW_32 | address & mask & LOW_32
    bits = int(_host(address))
    low = 32 if 0 <= mask <= LOW_32 else 64
    return _from_bits(bits >> low << low | bits & mask & ((1 << low) - 1), is_four=False)


def prefix(address: int, bits4: int, bits6: int) -> int:
    """Return the first bits of an address, by its family."""
    host = _host(address)
    length = bits4 if is_v4(address) else bits6
    return numbered(ip_network((host, length), strict=False).network_address)


def is_in(address: int, network: str) -> bool:
    """Return whether an address is in a network of its own family."""
    host, net = _host(address), ip_network(network)
    return host.version == net.version and host in net


_PRIVATE = ("10.0.0.0/8", "172.16.0.0/12", "192.168.0.0/16", "fc00::/7")


def is_private(address: int) -> bool:
    """Return whether an address is for private use (RFC 1918, RFC 4193)."""
    return any(is_in(address, network) for network in _PRIVATE)


def _from_bits(bits: int, *, is_four: bool) -> int:
    upper = _MAPPED if bits >> 32 == _GIVEN_AWAY else bits >> 32
    return (upper << 1 | is_four) << 32 | bits & LOW_32


def _host(address: int) -> Address:
    if is_v4(address):
        return IPv4Address(address & LOW_32)
    return IPv6Address(address >> 33 << 32 | address & LOW_32)
