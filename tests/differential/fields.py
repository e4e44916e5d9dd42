"""The protocols that random queries read.

They come with those of their fields that the reference can decode.
"""

from __future__ import annotations

from tests.differential.syntax import Field, Type

_INT = Type.INT
_SECOND_NS = 10**9


def _ints(*names: str) -> tuple[Field, ...]:
    return tuple(Field(name, _INT) for name in names)


_PKT = (
    Field("time", _INT, unit_ns=_SECOND_NS, is_small=False),
    Field("timestamp", Type.TIMESTAMP, unit_ns=1, is_small=False),
    Field("time_ns", _INT, unit_ns=1, is_small=False),
    Field("interface", Type.STRING),
    Field("srcMAC", Type.MAC),
    Field("destMAC", Type.MAC),
    *_ints("len", "caplen", "ethertype", "vlan"),
)
_IP = (
    *_PKT,
    Field("srcIP", Type.IP),
    Field("destIP", Type.IP),
    *_ints("ipversion", "protocol", "ttl", "tos", "dscp", "ecn", "total_length", "header_length"),
    *_ints("id", "offset", "more_fragments", "dont_fragment", "flow_label", "srcPort", "destPort"),
)
PROTOCOLS: dict[str, tuple[Field, ...]] = {
    "PKT": _PKT,
    "IP": _IP,
    "IPV4": _IP,
    "IPV6": _IP,
    "TCP": (
        *_IP,
        Field("TCP_data", Type.STRING),
        *_ints("sequence_number", "ack_number", "flags", "window", "data_length"),
        *_ints("FIN", "SYN", "RST", "PSH", "ACK", "URG"),
    ),
    "UDP": (*_IP, *_ints("udp_length", "data_length")),
    "ARP": (*_PKT, *_ints("op")),
}
