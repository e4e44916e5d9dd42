"""The protocols as which packets are read: their fields, orderings and membership.

Expressions of built-in fields are ``PacketField`` leaves with the names of
``capture/packet/fields.py``. ``PacketField.is_nullable`` applies to packets of the protocol that
the field was taken from.
"""

from __future__ import annotations

from dataclasses import replace

from gscope.queries.catalog.evaluate import call
from gscope.queries.expressions.expressions import Expression, Literal, PacketField
from gscope.queries.expressions.schema import ColumnSchema, Schema
from gscope.queries.expressions.types import CONSTANT, INCREASING, VARYING, GsqlType, Ordering
from gscope.records import dataclass

_INNER = "inner."


@dataclass(frozen=True, slots=True)
class ProtocolField:
    """A field of a protocol.

    Attributes:
        name: the name that queries use.
        expression: what the field is computed from.
        ordering: how its values move on one interface.
        description: what it holds, for ``gscope schema``.
    """

    name: str
    expression: Expression
    ordering: Ordering
    description: str


@dataclass(frozen=True, slots=True)
class Protocol:
    """A schema over packets.

    Attributes:
        name: the name that queries use.
        parent: the protocol whose fields it inherits, None for the root.
        fields: all fields, inherited ones first; ``inner.*`` fields are in ``inner``.
        membership: the condition that makes a packet one of the protocol; None for all packets.
        description: what it describes, for ``gscope schema``.
        inner: the fields of the first encapsulated IP packet, with ``inner.`` in their names.
    """

    name: str
    parent: str | None
    fields: tuple[ProtocolField, ...]
    membership: Expression | None
    description: str
    inner: tuple[ProtocolField, ...] = ()

    def field(self, name: str) -> ProtocolField | None:
        """Return the field called ``name``, also by another spelling; None if it is unknown."""
        canonical = self._canonical(name)
        return next((f for f in (*self.fields, *self.inner) if f.name == canonical), None)

    @property
    def names(self) -> tuple[str, ...]:
        """The names that a query may use: all fields and other spellings of them."""
        names = [f.name for f in (*self.fields, *self.inner)]
        own = set(names)
        return (
            *names,
            *(a for a, target in FIELD_ALIASES.items() if target in own and a not in own),
        )

    @property
    def schema(self) -> Schema:
        """The fields as columns, without those of encapsulated packets."""
        return Schema(
            tuple(
                ColumnSchema(f.name, f.expression.type, f.expression.is_nullable, f.ordering)
                for f in self.fields
            )
        )

    def _canonical(self, name: str) -> str:
        if any(f.name == name for f in self.fields):
            return name
        if name.startswith(_INNER):
            bare = name[len(_INNER) :]
            return _INNER + FIELD_ALIASES.get(bare, bare)
        return FIELD_ALIASES.get(name, name)


FIELD_ALIASES: dict[str, str] = {
    "dstIP": "destIP",
    "dst_ip": "destIP",
    "dest_ip": "destIP",
    "src_ip": "srcIP",
    "dest_port": "destPort",
    "dst_port": "destPort",
    "dstPort": "destPort",
    "src_port": "srcPort",
    "dstMAC": "destMAC",
    "seq": "sequence_number",
    "seq_nbr": "sequence_number",
    "seq_number": "sequence_number",
    "ack_nbr": "ack_number",
    "FYN": "FIN",
    "TCP_Data": "TCP_data",
    "UDP_Data": "UDP_data",
    "uts": "time_ns",
}
"""Other spellings of fields, most of them from published queries."""

PROTOCOL_ALIASES: dict[str, str] = {"DataProtocol": "IP", "PKT1": "IP", "PKT2": "IP", "PKTS": "IP"}
"""Other names of protocols, from published queries."""

PROTOCOL_SYNONYMS: dict[str, str] = {
    **dict.fromkeys(("packets", "packet", "frames", "frame", "ethernet", "eth"), "PKT"),
    "ip4": "IPV4",
    "ip6": "IPV6",
}
"""Names that other tools give to protocols; a query or protocol of that name comes first."""

_INT, _IP, _MAC, _STRING = GsqlType.INT, GsqlType.IP, GsqlType.MAC, GsqlType.STRING
_MAYBE = True
_Row = tuple[str, GsqlType, bool, str]

_PKT_TIMES: tuple[tuple[str, GsqlType, Ordering, str], ...] = (
    ("interface", _STRING, CONSTANT, "name of the interface that the packet came from"),
    ("time", _INT, INCREASING, "capture time in whole seconds since 1970, UTC"),
    ("timestamp", GsqlType.TIMESTAMP, INCREASING, "capture time, to the nanosecond"),
    ("time_ns", _INT, INCREASING, "capture time in nanoseconds since 1970, UTC"),
)
_PKT: tuple[_Row, ...] = (
    ("len", _INT, False, "length of the packet on the wire, in bytes"),
    ("caplen", _INT, False, "captured length, in bytes"),
    ("linktype", _INT, False, "pcap link type (LINKTYPE_ number), 1 for Ethernet"),
    ("srcMAC", _MAC, _MAYBE, "source MAC address, outermost frame"),
    ("destMAC", _MAC, _MAYBE, "destination MAC address, outermost frame"),
    ("ethertype", _INT, _MAYBE, "EtherType after all VLAN tags"),
    ("vlan", _INT, _MAYBE, "VLAN identifier (VID) of the outer tag"),
    ("inner_vlan", _INT, _MAYBE, "VLAN identifier (VID) of the second tag"),
)
_IP_FIELDS: tuple[_Row, ...] = (
    ("ipversion", _INT, False, "IP version, 4 or 6"),
    ("srcIP", _IP, False, "source IP address"),
    ("destIP", _IP, False, "destination IP address"),
    (
        "protocol",
        _INT,
        False,
        "IP protocol number; of IPv6, the next header after extension headers",
    ),
    ("ttl", _INT, False, "Time to Live (IPv4) or Hop Limit (IPv6)"),
    ("tos", _INT, False, "Type of Service (IPv4) or Traffic Class (IPv6), the whole octet"),
    ("dscp", _INT, False, "differentiated services code point, upper six bits of tos (RFC 2474)"),
    ("ecn", _INT, False, "explicit congestion notification, lower two bits of tos (RFC 3168)"),
    (
        "total_length",
        _INT,
        False,
        "Total Length (IPv4), or Payload Length plus 40 (IPv6), in bytes",
    ),
    ("header_length", _INT, False, "length of the IPv4 header in bytes; 40 for IPv6"),
    ("id", _INT, _MAYBE, "Identification (IPv4)"),
    ("offset", _INT, False, "Fragment Offset in bytes; 0 if not fragmented"),
    ("more_fragments", _INT, False, "1 if More Fragments is set, else 0"),
    ("dont_fragment", _INT, _MAYBE, "1 if Don't Fragment is set (IPv4), else 0"),
    ("flow_label", _INT, _MAYBE, "Flow Label (IPv6)"),
    ("srcPort", _INT, False, "source port of TCP, UDP or SCTP; otherwise 0"),
    ("destPort", _INT, False, "destination port of TCP, UDP or SCTP; otherwise 0"),
    ("data", _STRING, _MAYBE, "captured payload of TCP, UDP or ICMP; otherwise of IP"),
)
_DATA_LENGTH: _Row = ("data_length", _INT, _MAYBE, "length of the payload on the wire, in bytes")
_TCP: tuple[_Row, ...] = (
    ("sequence_number", _INT, _MAYBE, "sequence number of the first octet of the segment"),
    (
        "ack_number",
        _INT,
        _MAYBE,
        "acknowledgment number, the next octet expected; valid if ACK is set",
    ),
    ("flags", _INT, _MAYBE, "control bits as one octet, from CWR (128) to FIN (1)"),
    *(
        (name, _INT, _MAYBE, f"1 if {name} is set, else 0")
        for name in ("FIN", "SYN", "RST", "PSH", "ACK", "URG", "ECE", "CWR")
    ),
    ("window", _INT, _MAYBE, "Window as sent, without window scaling (RFC 7323)"),
    _DATA_LENGTH,
    ("TCP_data", _STRING, _MAYBE, "captured payload of the segment"),
)
_UDP: tuple[_Row, ...] = (
    ("udp_length", _INT, _MAYBE, "Length of the UDP header: header and payload, in bytes"),
    _DATA_LENGTH,
    ("UDP_data", _STRING, _MAYBE, "captured payload of the datagram"),
)
_ICMP: tuple[_Row, ...] = (
    ("type", _INT, _MAYBE, "Type of the ICMP or ICMPv6 message"),
    ("code", _INT, _MAYBE, "Code of the ICMP or ICMPv6 message"),
    (
        "icmp_id",
        _INT,
        _MAYBE,
        "identifier of an echo, timestamp, information or address mask message",
    ),
    ("icmp_seq", _INT, _MAYBE, "sequence number of such a message"),
)
_ARP: tuple[_Row, ...] = (
    ("op", _INT, False, "operation: 1 request, 2 reply"),
    ("senderMAC", _MAC, _MAYBE, "sender hardware address (MAC)"),
    ("senderIP", _IP, _MAYBE, "sender protocol address (IPv4)"),
    ("targetMAC", _MAC, _MAYBE, "target hardware address (MAC)"),
    ("targetIP", _IP, _MAYBE, "target protocol address (IPv4)"),
)
_TIMESTAMP = GsqlType.TIMESTAMP
_FLOW: tuple[_Row, ...] = (
    ("exporter", _IP, _MAYBE, "address from which the record was exported"),
    ("domain", _INT, _MAYBE, "domain (IPFIX), source ID (v9), engine (v5), sub-agent (sFlow)"),
    ("exported", _TIMESTAMP, _MAYBE, "when the record was exported, by the exporter's clock"),
    ("first", _TIMESTAMP, _MAYBE, "first packet of the flow, by the exporter's clock"),
    ("last", _TIMESTAMP, _MAYBE, "last packet of the flow, by the exporter's clock"),
    ("ipversion", _INT, _MAYBE, "IP version, 4 or 6"),
    ("srcIP", _IP, _MAYBE, "source IP address"),
    ("destIP", _IP, _MAYBE, "destination IP address"),
    ("srcPort", _INT, False, "source port of TCP, UDP or SCTP; otherwise 0"),
    ("destPort", _INT, False, "destination port of TCP, UDP or SCTP; otherwise 0"),
    ("protocol", _INT, _MAYBE, "IP protocol number"),
    ("flags", _INT, _MAYBE, "control bits of all TCP packets of the flow, from CWR to FIN (1)"),
    ("tos", _INT, _MAYBE, "Type of Service (IPv4) or Traffic Class (IPv6), the whole octet"),
    ("type", _INT, _MAYBE, "Type of ICMP or ICMPv6 messages"),
    ("code", _INT, _MAYBE, "Code of ICMP or ICMPv6 messages"),
    ("packets", _INT, _MAYBE, "packets of the flow, as exported"),
    ("bytes", _INT, _MAYBE, "bytes of the flow from the IP header on, as exported"),
    ("sampling_interval", _INT, False, "one packet in this number was sampled; 1 if all were"),
    ("input_interface", _INT, _MAYBE, "index of the interface on which the packets arrived"),
    ("output_interface", _INT, _MAYBE, "index of the interface on which they were sent"),
    ("direction", _INT, _MAYBE, "0 for flows observed on arrival, 1 on departure"),
    ("vlan", _INT, _MAYBE, "VLAN identifier (VID) on arrival"),
    ("next_hop", _IP, _MAYBE, "IP address of the next router"),
    ("srcAS", _INT, _MAYBE, "number of the autonomous system of the source"),
    ("destAS", _INT, _MAYBE, "number of the autonomous system of the destination"),
    ("src_mask", _INT, _MAYBE, "prefix length of the route to the source, in bits"),
    ("dest_mask", _INT, _MAYBE, "prefix length of the route to the destination, in bits"),
)
_SCALED = (
    ("scaled_packets", "packets", "packets, times sampling_interval"),
    ("scaled_bytes", "bytes", "bytes, times sampling_interval"),
)
_FLOW_TIMES = {
    "interface": "name of the interface that the record came from",
    "time": "when the record arrived, in whole seconds since 1970, UTC",
    "timestamp": "when the record arrived, to the nanosecond",
    "time_ns": "when the record arrived, in nanoseconds since 1970, UTC",
}
FLOW_FIELD = "flow."
"""Prefix of the ``PacketField`` leaves of flow records: their names are also those of packets."""


def _fields(rows: tuple[_Row, ...], prefix: str = "") -> tuple[ProtocolField, ...]:
    return tuple(
        ProtocolField(
            prefix + name,
            PacketField(prefix + name, type_, is_nullable or bool(prefix)),
            VARYING,
            f"{description}; of the first encapsulated IP packet" if prefix else description,
        )
        for name, type_, is_nullable, description in rows
    )


def _int(name: str) -> PacketField:
    """Return an INT field of any packet, which may be NULL."""
    return PacketField(name, _INT, True)


def _equals(name: str, value: int) -> Expression:
    return call("eq", _int(name), Literal(value, _INT))


def _present(name: str) -> Expression:
    return call("not", call("is_null", _int(name)))


def _extend(
    parent: Protocol,
    name: str,
    membership: Expression,
    description: str,
    rows: tuple[_Row, ...] = (),
    certain: frozenset[str] = frozenset(),
) -> Protocol:
    """Return a protocol with more fields than its parent, ``certain`` ones of them never NULL."""
    inherited = tuple(
        replace(f, expression=PacketField(f.name, f.expression.type, is_nullable=False))
        if f.name in certain
        else f
        for f in parent.fields
    )
    return Protocol(
        name, parent.name, inherited + _fields(rows), membership, description, parent.inner
    )


def _flow() -> Protocol:
    times = (
        ProtocolField(name, PacketField(name, type_, False), ordering, _FLOW_TIMES[name])
        for name, type_, ordering, _ in _PKT_TIMES
    )
    own = {
        name: ProtocolField(
            name, PacketField(f"{FLOW_FIELD}{name}", type_, is_nullable), VARYING, description
        )
        for name, type_, is_nullable, description in _FLOW
    }
    interval = own["sampling_interval"].expression
    scaled = (
        ProtocolField(name, call("mul_int", own[of].expression, interval), VARYING, description)
        for name, of, description in _SCALED
    )
    return Protocol(
        "FLOW",
        None,
        (*times, *own.values(), *scaled),
        _present(f"{FLOW_FIELD}sampling_interval"),
        "flow records of routers: NetFlow v5 and v9, IPFIX, sFlow, files of nfcapd",
    )


def _builtin() -> dict[str, Protocol]:
    times = tuple(
        ProtocolField(name, PacketField(name, type_, False), ordering, description)
        for name, type_, ordering, description in _PKT_TIMES
    )
    pkt = Protocol("PKT", None, times + _fields(_PKT), None, "every packet")
    ip = replace(
        _extend(
            pkt, "IP", _present("ipversion"), "packets with an IPv4 or IPv6 header", _IP_FIELDS
        ),
        inner=_fields(tuple(dict.fromkeys((*_IP_FIELDS, *_TCP, *_UDP, *_ICMP))), _INNER),
    )
    certain4 = frozenset({"id", "dont_fragment"})
    ipv4 = _extend(ip, "IPV4", _equals("ipversion", 4), "IPv4 packets", certain=certain4)
    certain6 = frozenset({"flow_label"})
    ipv6 = _extend(ip, "IPV6", _equals("ipversion", 6), "IPv6 packets", certain=certain6)
    tcp = _extend(ip, "TCP", _equals("protocol", 6), "TCP over IPv4 or IPv6", _TCP)
    udp = _extend(ip, "UDP", _equals("protocol", 17), "UDP over IPv4 or IPv6", _UDP)
    icmp_members = call(
        "or",
        call("and", _equals("ipversion", 4), _equals("protocol", 1)),
        call("and", _equals("ipversion", 6), _equals("protocol", 58)),
    )
    icmp = _extend(ip, "ICMP", icmp_members, "ICMP over IPv4, ICMPv6 over IPv6", _ICMP)
    arp = _extend(pkt, "ARP", _present("op"), "ARP packets", _ARP)
    opening = call("and", _equals("SYN", 1), _equals("ACK", 0))
    snort = _extend(
        tcp,
        "Snort",
        call("and", _equals("protocol", 6), opening),
        "TCP packets with SYN set and ACK clear",
        certain=frozenset({"flags", "FIN", "SYN", "RST", "PSH", "ACK", "URG", "ECE", "CWR"}),
    )
    return {p.name: p for p in (pkt, ip, ipv4, ipv6, tcp, udp, icmp, arp, snort, _flow())}


PROTOCOLS: dict[str, Protocol] = _builtin()
"""The built-in protocols by name; see also ``PROTOCOL_ALIASES``."""
