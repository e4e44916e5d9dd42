"""The Community ID of a flow, by which different tools give the same flow the same name.

Community ID flow hashing, version 1: https://github.com/corelight/community-id-spec.

    "1:" + base64(sha1(seed . source . destination . protocol . 0 . source port . destination port))

in network byte order, with the smaller endpoint first, so that both directions have one ID.
"""

from __future__ import annotations

import base64
import hashlib

from gscope.queries.catalog.scalar.addresses import ipv6_bits, is_ipv4
from gscope.queries.catalog.scalar.entry import FunctionEntry, Parameter, always
from gscope.queries.expressions.types import GsqlType

_ICMP, _ICMP6 = 1, 58
_WITH_PORTS = frozenset({_ICMP, 6, 17, _ICMP6, 132})
_REQUESTS = {
    _ICMP: ((8, 0), (13, 14), (15, 16), (10, 9), (17, 18)),
    _ICMP6: ((128, 129), (130, 131), (133, 134), (135, 136), (139, 140), (144, 145)),
}
"""ICMP types of requests, each with the type of its reply."""

_COUNTERPARTS = {
    protocol: {**dict(pairs), **{answer: request for request, answer in pairs}}
    for protocol, pairs in _REQUESTS.items()
}


def community_id(
    protocol: int, source: int, destination: int, source_port: int, destination_port: int, seed: int
) -> bytes | None:
    """Return the Community ID; of ICMP the ports are type and code.

    ICMP requests and their replies are one flow; other ICMP messages have a direction, which is
    kept. None if a number is out of its range, or the addresses are of two IP versions.
    """
    numbers = (seed, source_port, destination_port)
    if not 0 <= protocol <= 0xFF or not all(0 <= number <= 0xFFFF for number in numbers):
        return None
    if is_ipv4(source) != is_ipv4(destination):
        return None
    has_direction = False
    if protocol in _COUNTERPARTS:
        counterpart = _COUNTERPARTS[protocol].get(source_port)
        has_direction = counterpart is None
        destination_port = destination_port if counterpart is None else counterpart
    ends = ((_packed(source), source_port), (_packed(destination), destination_port))
    if not has_direction:
        # Without ports only the addresses decide.
        ends = (min(ends), max(ends))
    (first, first_port), (second, second_port) = ends
    hashed = seed.to_bytes(2) + first + second + bytes((protocol, 0))
    if protocol in _WITH_PORTS:
        hashed += first_port.to_bytes(2) + second_port.to_bytes(2)
    return b"1:" + base64.b64encode(hashlib.sha1(hashed, usedforsecurity=False).digest())


def _packed(address: int) -> bytes:
    """Return the address as in a header, whose order is that of its bits."""
    return (
        (address & 0xFFFFFFFF).to_bytes(4) if is_ipv4(address) else ipv6_bits(address).to_bytes(16)
    )


_INT, _IP = Parameter(GsqlType.INT), Parameter(GsqlType.IP)
_ENTRY = FunctionEntry(
    "community_id",
    (_INT, _IP, _IP, _INT, _INT, _INT),
    GsqlType.STRING,
    community_id,
    makes_null=always,
    cost=1000,
    is_lfta_safe=False,
)
COMMUNITY = {_ENTRY.name: _ENTRY}
