"""Ranges of integer expressions: the bits that a key needs, and whether 32 suffice for a column."""

from __future__ import annotations

from gscope.capture.packet.fields import FLOW
from gscope.capture.packet.flow.layout import FLOW_FIELDS
from gscope.queries.expressions.expressions import Call, Expression, Literal, PacketField
from gscope.queries.expressions.types import GsqlType
from gscope.queries.int64 import MAX_INT, MIN_INT
from gscope.records import dataclass


@dataclass(frozen=True, slots=True)
class Range:
    """All integers from ``low`` to ``high``."""

    low: int
    high: int

    def union(self, other: Range) -> Range:
        """Return the least range that includes both."""
        return Range(min(self.low, other.low), max(self.high, other.high))

    @property
    def is_signed(self) -> bool:
        """Whether it holds negative numbers."""
        return self.low < 0

    @property
    def bits(self) -> int:
        """Bits that represent its numbers, in two's complement if it is signed."""
        if self.is_signed:
            return max((~self.low).bit_length(), max(self.high, 0).bit_length()) + 1
        return self.high.bit_length()


ANY_INT = Range(MIN_INT, MAX_INT)
INT32 = Range(-(1 << 31), (1 << 31) - 1)
_BOOL = Range(0, 1)

FIELD_BITS = {
    "ipversion": 4,
    "protocol": 8,
    "ttl": 8,
    "tos": 8,
    "dscp": 6,
    "ecn": 2,
    "total_length": 17,
    "header_length": 6,
    "id": 16,
    "offset": 16,
    "more_fragments": 1,
    "dont_fragment": 1,
    "flow_label": 20,
    "srcPort": 16,
    "destPort": 16,
    "sequence_number": 32,
    "ack_number": 32,
    "flags": 8,
    **dict.fromkeys(("FIN", "SYN", "RST", "PSH", "ACK", "URG", "ECE", "CWR"), 1),
    "window": 16,
    "udp_length": 16,
    "type": 8,
    "code": 8,
    "icmp_id": 16,
    "icmp_seq": 16,
    "ethertype": 16,
    "vlan": 16,
    "inner_vlan": 16,
    "op": 16,
    **{f"{FLOW}{each.name}": 8 * each.width for each in FLOW_FIELDS if each.width < 8},
}
"""Bits of unsigned header fields, as wide as the decoder's loads make them."""

_SIGNED_32 = ("len", "caplen", "linktype")


def range_of(expression: Expression) -> Range:
    """Return a range with every value of a BOOL, INT, MAC, TIMESTAMP or INTERVAL expression."""
    match expression:
        case Literal(value) if isinstance(value, int):
            return Range(int(value), int(value))
        case PacketField(name):
            return _field_range(name.removeprefix("inner."), expression.type)
        case Call():
            return _call_range(expression)
    return _type_range(expression.type)


def _type_range(type_: GsqlType) -> Range:
    ranges = {GsqlType.BOOL: _BOOL, GsqlType.MAC: Range(0, (1 << 48) - 1)}
    return ranges.get(type_, ANY_INT)


def _field_range(name: str, type_: GsqlType) -> Range:
    if name in _SIGNED_32:
        return INT32
    if name in FIELD_BITS:
        return Range(0, (1 << FIELD_BITS[name]) - 1)
    return _type_range(type_)


def _call_range(call: Call) -> Range:
    arguments = call.arguments
    match call.function:
        case "bit_and":
            bounds = [r.high for r in map(range_of, arguments) if not r.is_signed]
            return Range(0, min(bounds)) if bounds else ANY_INT
        case "mod_int" if _positive_literal(arguments[1]):
            largest = range_of(arguments[1]).high - 1
            return Range(-largest if range_of(arguments[0]).is_signed else 0, largest)
        case "idiv_int" if _positive_literal(arguments[1]):
            value, divisor = range_of(arguments[0]), range_of(arguments[1]).high
            return Range(
                -(-value.low // divisor) if value.is_signed else 0, max(value.high // divisor, 0)
            )
        case "floor_div" if _positive_literal(arguments[1]):
            value, divisor = range_of(arguments[0]), range_of(arguments[1]).high
            return Range(value.low // divisor, value.high // divisor)
        case "shr" if isinstance(arguments[1], Literal):
            value, count = range_of(arguments[0]), range_of(arguments[1]).low
            if count < 0:
                return ANY_INT
            return Range(value.low >> count, value.high >> count)
        case "bool_to_int":
            return _BOOL
        case "length":
            return Range(0, (1 << 31) - 1)
        case "ip_to_int":
            return Range(0, (1 << 32) - 1)
        case "non_temporal" | "increasing" | "decreasing" | "banded":
            return range_of(arguments[0])
    return _type_range(call.type)


def _positive_literal(expression: Expression) -> bool:
    return (
        isinstance(expression, Literal)
        and isinstance(expression.value, int)
        and expression.value > 0
    )
