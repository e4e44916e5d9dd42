"""The dissector against dpkt on real traffic, and against tshark's view of tunnels."""

from __future__ import annotations

import functools
import warnings
from collections import Counter
from ipaddress import ip_address
from typing import TYPE_CHECKING, Any

import dpkt
import pytest
from tests.capture.packet.raw_captures import read_capture
from tests.support.requirements import CAPTURES, captures, needs_captures

from gscope.capture.packet.dissector.dissect import dissect

if TYPE_CHECKING:
    from pathlib import Path

    from tests.capture.packet.kernel_reader import RawPacket

    from gscope.capture.packet.dissector.dissect import Fields

MAPPED = 0xFFFF << 32


def fields_of(packet: RawPacket) -> Fields:
    return dissect(
        packet.data, linktype=packet.linktype, wirelen=packet.wirelen, time_ns=packet.time_ns
    )[0]


def is_whole_ipv4(packet: RawPacket) -> bool:
    whole = len(packet.data) == packet.wirelen and packet.data[14:15] == b"\x45"
    return packet.linktype == 1 and whole and packet.data[12:14] == b"\x08\0"


def ip_fields(ip: Any) -> Fields:
    return {
        "srcIP": MAPPED | int.from_bytes(ip.src, "big"),
        "destIP": MAPPED | int.from_bytes(ip.dst, "big"),
        "protocol": ip.p,
        "ttl": ip.ttl,
        "tos": ip.tos,
        "id": ip.id,
        "total_length": ip.len,
        "dont_fragment": int(ip.df),
        "more_fragments": int(ip.mf),
    }


def tcp_fields(tcp: Any) -> Fields:
    flags = {"FIN": 1, "SYN": 2, "RST": 4, "PSH": 8, "ACK": 16, "URG": 32, "ECE": 64, "CWR": 128}
    return {
        "srcPort": tcp.sport,
        "destPort": tcp.dport,
        "sequence_number": tcp.seq,
        "ack_number": tcp.ack,
        "window": tcp.win,
        "flags": tcp.flags & 255,
        "TCP_data": tcp.data,
        "data": tcp.data,
        "data_length": len(tcp.data),
        **{name: int(bool(tcp.flags & bit)) for name, bit in flags.items()},
    }


def udp_fields(udp: Any) -> Fields:
    data = bytes(udp.data)
    return {"srcPort": udp.sport, "destPort": udp.dport, "udp_length": udp.ulen, "UDP_data": data}


@functools.cache
def compare(path: Path) -> Counter[str]:
    """Compare the packets of a capture; the number of them, in all and by transport protocol."""
    compared: Counter[str] = Counter()
    for packet in filter(is_whole_ipv4, read_capture(path)):
        fields = fields_of(packet)
        with warnings.catch_warnings(action="ignore"):
            ip = dpkt.ip.IP(packet.data[14:])
        expected = ip_fields(ip)
        if isinstance(ip.data, dpkt.tcp.TCP) and ip.len <= len(packet.data) - 14:
            expected |= tcp_fields(ip.data)
            compared["tcp"] += 1
        elif isinstance(ip.data, dpkt.udp.UDP) and 8 <= ip.data.ulen == ip.len - 20:
            expected |= udp_fields(ip.data)
            compared["udp"] += 1
        assert {name: fields[name] for name in expected} == expected
        compared["ip"] += 1
    return compared


@pytest.mark.parametrize("path", captures(), ids=lambda path: path.name)
def test_fields_of_whole_ipv4_packets_are_those_of_dpkt(path: Path) -> None:
    compare(path)


@needs_captures
def test_thousands_of_packets_are_compared() -> None:
    compared = sum(map(compare, captures()), Counter[str]())
    assert compared["ip"] > 16_000
    assert compared["tcp"] > 5_000
    assert compared["udp"] > 1_000


@pytest.mark.parametrize(
    ("capture", "number", "protocol", "source", "destination"),
    [
        ("zeek-6in6in6.pcap", 1, 41, "babe::beef", "dead::babe"),
        ("zeek-erspan.pcap", 93, 1, "192.168.69.2", "192.168.69.10"),
    ],
)
def test_tunnels_show_the_inner_addresses_of_tshark(
    capture: str, number: int, protocol: int, source: str, destination: str
) -> None:
    fields = fields_of(read_capture(CAPTURES / capture)[number - 1])

    def value(text: str) -> int:
        address = ip_address(text)
        return int(address) | (MAPPED if address.version == 4 else 0)

    assert (fields["inner.protocol"], fields["inner.srcIP"], fields["inner.destIP"]) == (
        protocol,
        value(source),
        value(destination),
    )
