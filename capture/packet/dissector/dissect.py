"""A slow dissector in plain Python: computes all fields from the bytes of a packet.

It is the front end of the LFTA interpreter and the oracle of the decoding kernels, with which it
shares no code. It follows the same rules, which are those of Wireshark 4.0 where Wireshark has any.
"""

from __future__ import annotations

from gscope.capture.packet.decode_errors import Reason
from gscope.capture.packet.dissector.flow import FLOW_NAMES, flow_values
from gscope.capture.packet.dissector.link_headers import (
    DecodeFailure,
    Frame,
    Network,
    follow,
)
from gscope.capture.packet.dissector.link_types import first_layer
from gscope.capture.packet.dissector.tunnels import tunnel_layer
from gscope.capture.packet.flow.layout import LINKTYPE_FLOW
from gscope.records import dataclass

Value = int | bytes | None
Fields = dict[str, Value]

_MAPPED = 0xFFFF << 32
_TCP_FLAGS = ("FIN", "SYN", "RST", "PSH", "ACK", "URG", "ECE", "CWR")
_PKT_NAMES = (
    *("time", "timestamp", "time_ns", "len", "caplen", "linktype"),
    *("srcMAC", "destMAC", "ethertype", "vlan", "inner_vlan"),
)
_ARP_NAMES = ("op", "senderMAC", "senderIP", "targetMAC", "targetIP")
_IP_NAMES = (
    *("ipversion", "srcIP", "destIP", "protocol", "ttl", "tos", "dscp", "ecn", "total_length"),
    *("header_length", "id", "offset", "more_fragments", "dont_fragment", "flow_label"),
    *("srcPort", "destPort", "data"),
    *("sequence_number", "ack_number", "flags", *_TCP_FLAGS, "window", "data_length", "TCP_data"),
    *("udp_length", "UDP_data", "type", "code", "icmp_id", "icmp_seq"),
)
_NO_FIELDS: Fields = dict.fromkeys(
    (
        *(*_PKT_NAMES, *_ARP_NAMES, *_IP_NAMES),
        *(f"inner.{name}" for name in _IP_NAMES),
        *FLOW_NAMES,
    )
)


@dataclass(slots=True)
class _Packet:
    """An IP packet whose headers were located: offsets into ``data``."""

    data: bytes
    version: int
    l3: int
    payload: int
    end: int
    protocol: int
    fragment_offset: int = 0
    more_fragments: bool = False
    reason: Reason = Reason.NONE

    def number(self, at: int, size: int) -> int:
        return int.from_bytes(self.data[at : at + size], "big")

    @property
    def has_transport(self) -> bool:
        return self.fragment_offset == 0

    def transport(self, at: int, size: int) -> int | None:
        """Return the number at offset ``at`` of the transport header.

        None if it is not captured.
        """
        begin = self.payload + at
        if not self.has_transport or begin + size > self.end:
            return None
        return self.number(begin, size)


def dissect(data: bytes, *, linktype: int, wirelen: int, time_ns: int) -> tuple[Fields, Reason]:
    """Return all fields of a packet by canonical name, None for NULL, and its ``Reason``.

    Values are those of ``GsqlType``: addresses are unsigned 128-bit integers with IPv4 mapped, MAC
    addresses 48-bit integers, payloads bytes.
    """
    fields = dict(_NO_FIELDS)
    fields |= {
        "time": time_ns // 10**9,
        "timestamp": time_ns,
        "time_ns": time_ns,
        "len": wirelen,
        "caplen": len(data),
        "linktype": linktype,
    }
    if linktype == LINKTYPE_FLOW:
        values, reason = flow_values(data)
        return fields | values, reason
    frame = Frame(data, len(data), max(len(data), wirelen))
    packet, reason = None, Reason.NONE
    try:
        network = follow(frame, first_layer(linktype), 0)
        packet = _read_network(frame, network, fields)
    except DecodeFailure as failure:
        reason = failure.reason
    _read_link(frame, fields)
    if packet is not None:
        reason = packet.reason
        fields |= _ip_fields(packet, wirelen)
        inner = _inner_packet(packet)
        if inner is not None:
            names = _ip_fields(inner, wirelen)
            fields |= {f"inner.{name}": value for name, value in names.items()}
    return fields, reason


def _read_link(frame: Frame, fields: Fields) -> None:
    for name, at in (("srcMAC", frame.source), ("destMAC", frame.destination)):
        # Records have 16 bits for the offset.
        if at is not None and at < 0xFFFF:
            fields[name] = int.from_bytes(frame.data[at : at + 6], "big")
    fields["ethertype"] = frame.ethertype or None
    for name, vlan in zip(("vlan", "inner_vlan"), frame.vlans, strict=False):
        fields[name] = vlan


def _read_network(
    frame: Frame, network: tuple[Network, int] | None, fields: Fields
) -> _Packet | None:
    if network is None:
        return None
    layer, at = network
    if layer is Network.ARP:
        _read_arp(frame, at, fields)
        return None
    if at >= frame.end:
        raise DecodeFailure(Reason.IP_TRUNCATED)
    version = frame.data[at] >> 4
    if version == 4 and layer is not Network.IPV6:
        return _ipv4(frame, at)
    if version == 6 and layer is not Network.IPV4:
        return _ipv6(frame, at)
    raise DecodeFailure(Reason.IP_BAD_VERSION)


def _read_arp(frame: Frame, at: int, fields: Fields) -> None:
    data = frame.data[at : frame.end]
    if len(data) < 8:
        raise DecodeFailure(Reason.IP_TRUNCATED)
    fields["op"] = int.from_bytes(data[6:8], "big")
    if len(data) < 28 or data[4:6] != b"\x06\x04":
        return
    fields["senderMAC"] = int.from_bytes(data[8:14], "big")
    fields["senderIP"] = _MAPPED | int.from_bytes(data[14:18], "big")
    fields["targetMAC"] = int.from_bytes(data[18:24], "big")
    fields["targetIP"] = _MAPPED | int.from_bytes(data[24:28], "big")


def _ipv4(frame: Frame, at: int) -> _Packet:
    header = frame.data[at : min(frame.end, at + 20)]
    if len(header) < 20:
        raise DecodeFailure(Reason.IP_TRUNCATED)
    length = header[0] % 16 * 4
    total = int.from_bytes(header[2:4], "big")
    if length < 20 or 0 < total < length:
        raise DecodeFailure(Reason.IP_BAD_LENGTH)
    end = min(frame.end, at + total) if total else frame.end
    fragment = int.from_bytes(header[6:8], "big")
    packet = _Packet(frame.data, 4, at, at + length, end, header[9])
    packet.fragment_offset = fragment % 0x2000
    packet.more_fragments = bool(fragment & 0x2000)
    _settle(packet)
    return packet


def _ipv6(frame: Frame, at: int) -> _Packet:
    if at + 40 > frame.end:
        raise DecodeFailure(Reason.IP_TRUNCATED)
    length = int.from_bytes(frame.data[at + 4 : at + 6], "big")
    end = min(frame.end, at + 40 + length) if length else frame.end
    packet = _Packet(frame.data, 6, at, at + 40, end, frame.data[at + 6])
    while packet.protocol in (0, 43, 44, 60) and packet.has_transport:
        header = frame.data[packet.payload : packet.end]
        if len(header) < 8:
            if len(header) >= 2 and packet.protocol != 44:
                packet.protocol = header[0]
            packet.payload = packet.end + 1
            break
        size = 8
        if packet.protocol == 44:
            packet.fragment_offset = int.from_bytes(header[2:4], "big") >> 3
            packet.more_fragments |= bool(header[3] & 1)
        else:
            size += header[1] * 8
        packet.protocol = header[0]
        packet.payload += size
        if packet.payload > packet.end:
            break
    _settle(packet)
    return packet


def _settle(packet: _Packet) -> None:
    if packet.payload > packet.end:
        packet.payload = packet.end
        packet.reason = Reason.EXTENSION_TRUNCATED
    elif packet.has_transport and packet.protocol in (6, 17, 132) and not _has_ports(packet):
        packet.reason = Reason.TRANSPORT_TRUNCATED


def _has_ports(packet: _Packet) -> bool:
    return packet.protocol in (6, 17, 132) and packet.transport(0, 4) is not None


def _inner_packet(packet: _Packet) -> _Packet | None:
    if not packet.has_transport:
        return None
    frame = Frame(packet.data, packet.end, packet.end)
    try:
        begin = tunnel_layer(frame, packet.protocol, packet.payload)
        network = None if begin is None else follow(frame, *begin)
        return _read_network(frame, network, {})
    except DecodeFailure:
        return None


def _ip_fields(packet: _Packet, wirelen: int) -> Fields:
    fields = _ipv4_fields(packet) if packet.version == 4 else _ipv6_fields(packet)
    ports = (packet.transport(0, 2), packet.transport(2, 2)) if _has_ports(packet) else (0, 0)
    tos = fields["tos"]
    assert isinstance(tos, int)
    fields |= {
        "ipversion": packet.version,
        "protocol": packet.protocol,
        "dscp": tos // 4,
        "ecn": tos % 4,
        "offset": packet.fragment_offset * 8,
        "more_fragments": int(packet.more_fragments),
        "srcPort": ports[0],
        "destPort": ports[1],
    }
    return fields | _transport_fields(packet, wirelen)


def _ipv4_fields(packet: _Packet) -> Fields:
    header = packet.data[packet.l3 : packet.l3 + 20]
    return {
        "srcIP": _MAPPED | int.from_bytes(header[12:16], "big"),
        "destIP": _MAPPED | int.from_bytes(header[16:20], "big"),
        "ttl": header[8],
        "tos": header[1],
        "total_length": int.from_bytes(header[2:4], "big"),
        "header_length": header[0] % 16 * 4,
        "id": int.from_bytes(header[4:6], "big"),
        "dont_fragment": header[6] >> 6 & 1,
    }


def _ipv6_fields(packet: _Packet) -> Fields:
    header = packet.data[packet.l3 : packet.l3 + 40]
    first = int.from_bytes(header[:4], "big")
    return {
        "srcIP": _ipv6_address(header[8:24]),
        "destIP": _ipv6_address(header[24:40]),
        "ttl": header[7],
        "tos": first >> 20 & 255,
        "total_length": 40 + int.from_bytes(header[4:6], "big"),
        "header_length": 40,
        "flow_label": first % 2**20,
    }


def _ipv6_address(octets: bytes) -> int:
    """Return the value of an IPv6 address.

    That of ``::ffff:a.b.c.d``, which is not IPv4, is ``::fffe:a.b.c.d``.
    """
    if octets[:12] == bytes(10) + b"\xff\xff":
        octets = bytes(10) + b"\xff\xfe" + octets[12:]
    return int.from_bytes(octets, "big")


def _transport_fields(packet: _Packet, wirelen: int) -> Fields:
    name = {6: "TCP", 17: "UDP"}.get(packet.protocol)
    if (packet.version, packet.protocol) in ((4, 1), (6, 58)):
        name = "ICMP"
    if name is None:
        return {"data": packet.data[packet.payload : packet.end]}
    fields: Fields = {}
    size: int | None = 8 if packet.transport(7, 1) is not None else None
    if name == "TCP":
        size = _tcp_size(packet)
        fields |= _tcp_fields(packet)
    elif name == "UDP":
        fields["udp_length"] = packet.transport(4, 2)
    else:
        fields |= _icmp_fields(packet)
    if size is None:
        if not packet.has_transport:
            fields["data"] = packet.data[packet.payload : packet.end]
        return fields
    data = packet.data[packet.payload + size : packet.end]
    fields["data"] = data
    if name == "TCP":
        fields["TCP_data"] = data
    if name == "UDP":
        length = packet.number(packet.payload + 4, 2)
        fields["UDP_data"] = data[: length - 8] if length >= 8 else data
    if name in ("TCP", "UDP"):
        fields["data_length"] = max(0, _wire_end(packet, wirelen) - packet.payload - size)
    return fields


def _tcp_size(packet: _Packet) -> int | None:
    offset = packet.transport(12, 1)
    return offset // 16 * 4 if offset is not None and offset >= 0x50 else None


def _tcp_fields(packet: _Packet) -> Fields:
    flags = packet.transport(13, 1)
    bits = {
        name: None if flags is None else flags >> bit & 1 for bit, name in enumerate(_TCP_FLAGS)
    }
    return {
        "sequence_number": packet.transport(4, 4),
        "ack_number": packet.transport(8, 4),
        "flags": flags,
        "window": packet.transport(14, 2),
        **bits,
    }


def _icmp_fields(packet: _Packet) -> Fields:
    kind = packet.transport(0, 1)
    fields: Fields = {"type": kind, "code": packet.transport(1, 1)}
    with_id = (128, 129) if packet.version == 6 else (0, 8, *range(13, 19))
    if kind in with_id and packet.transport(7, 1) is not None:
        fields |= {"icmp_id": packet.transport(4, 2), "icmp_seq": packet.transport(6, 2)}
    return fields


def _wire_end(packet: _Packet, wirelen: int) -> int:
    """Return where the IP packet ended on the wire, by its own length unless that is 0."""
    at, fixed = (2, 0) if packet.version == 4 else (4, 40)
    length = packet.number(packet.l3 + at, 2)
    return packet.l3 + fixed + length if length else wirelen
