"""The values that fields of packets can have: by their width, and by protocol."""

from __future__ import annotations

_FLAGS = ("FIN", "SYN", "RST", "PSH", "ACK", "URG", "ECE", "CWR", "more_fragments", "dont_fragment")
_16_BITS = ("srcPort", "destPort", "ethertype", "id", "window", "udp_length", "icmp_id", "icmp_seq")

GREATEST: dict[str, int] = {
    **dict.fromkeys(_FLAGS, 1),
    **dict.fromkeys(("ttl", "tos", "protocol", "flags", "type", "code"), (1 << 8) - 1),
    **dict.fromkeys((*_16_BITS, "op"), (1 << 16) - 1),
    **dict.fromkeys(("vlan", "inner_vlan"), (1 << 12) - 1),
    **dict.fromkeys(("sequence_number", "ack_number"), (1 << 32) - 1),
    "dscp": 63,
    "ecn": 3,
    "ipversion": 6,
    "header_length": 60,
    "offset": 8191 * 8,
    "flow_label": (1 << 20) - 1,
}
"""The greatest value of INT fields; the least is 0."""

ONLY: dict[str, dict[str, frozenset[int]]] = {
    "IP": {"ipversion": frozenset({4, 6})},
    "IPV4": {"ipversion": frozenset({4})},
    "IPV6": {"ipversion": frozenset({6})},
    "TCP": {"protocol": frozenset({6})},
    "UDP": {"protocol": frozenset({17})},
    "ICMP": {"protocol": frozenset({1, 58})},
    "DNS": {"protocol": frozenset({6, 17})},
    "HTTP": {"protocol": frozenset({6})},
    "TLS": {"protocol": frozenset({6})},
    "Snort": {"protocol": frozenset({6}), "SYN": frozenset({1}), "ACK": frozenset({0})},
}
"""Fields of which packets of a protocol have few values."""

LOWER_CASE = frozenset({"dns_qname", "http_host", "tls_sni"})
"""Functions that return names of hosts, in lower case and without a dot at the end."""

CAPITALS = frozenset({"http_method"})
"""Functions whose results have capital letters only."""
