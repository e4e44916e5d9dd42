"""The packets of a filter and the first packets of captures.

They are those that tcpdump and mergecap select.
"""

from __future__ import annotations

import struct
import subprocess
from contextlib import ExitStack
from typing import TYPE_CHECKING

import pytest
from tests.capture.sources.files.capture_bytes import enhanced, interface, pcap_of, section
from tests.support.requirements import CAPTURES, needs, needs_captures

from gscope.capture.packet.link_names import READ_LINK_TYPES
from gscope.capture.sources.af_packet.filter import compile_for_captures
from gscope.capture.sources.files.open import open_source
from gscope.capture.sources.files.selected import SelectedSource, first_packets
from gscope.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

FILTERS = (
    "tcp port 80",
    "udp port 53 or icmp",
    "ip6",
    "arp",
    "not arp and len > 100",
    "tcp[tcpflags] & (tcp-syn|tcp-fin) != 0",
    "ip[2:2] - ((ip[0] & 0xf) << 2) > 64",
    "src net 192.168.0.0/16 and less 200",
    "len % 3 = 1 or len / 7 = 20",
    "ip host 10.0.0.1 or portrange 1024-2000",
)
TAG_FILTERS = (
    *("vlan", "not vlan", "vlan 10", "vlan and vlan", "vlan 10 and vlan 20", "vlan and not tcp"),
    *("port 80", "vlan and port 80", "vlan 10 and tcp port 80"),
    # What stands behind vlan is within the tag, also behind an "or".
    *("port 80 or vlan and port 80", "vlan and port 80 or port 80", "vlan and (port 53 or arp)"),
    *("vlan and ip6", "vlan and ip6 and port 80", "vlan and vlan and udp port 53", "udp or vlan"),
    *("ether[12:2] = 0x8100 and ether[14:2] & 0xfff = 10", "vlan and ether proto 0x0806"),
    *(
        "vlan and pppoes and tcp",
        "vlan and mpls and ip",
        "vlan and greater 100",
        "vlan and ip[9] = 6",
    ),
)
TAGGED = ("ndpi-bot.pcap", "ndpi-dns.pcap", "zeek-gre-aruba.pcap", "zeek-vntag.pcap")
"""All shared captures with VLAN tags (`tshark -Y vlan`)."""

NAMES = (
    *(
        "ndpi-dns.pcap",
        "ndpi-netflix.pcap",
        "ndpi-sctp.cap",
        "ndpi-mumble.pcapng",
        "ndpi-synscan.pcap",
    ),
    *("ndpi-ip_fragmented_garbage.pcap", "zeek-6in6in6.pcap", "zeek-arp-who-has-radiotap.pcap"),
)


def selected(
    path: Path, expression: str = "", most: int | None = None
) -> tuple[SelectedSource, list[tuple[int, bytes]]]:
    """The source at its end, and its packets: length on the wire and captured bytes."""
    filters = compile_for_captures(expression, READ_LINK_TYPES) if expression else {}
    source = SelectedSource(open_source(str(path), block_bytes=1 << 16), filters, most)
    packets = []
    while (block := source.next_block()) is not None:
        for i in range(block.count):
            begin = block.offset[i]
            data = block.data[begin : begin + block.caplen[i]].tobytes()
            packets.append((int(block.wirelen[i]), data))
    source.close()
    return source, packets


def shares(paths: Sequence[str], most: int) -> list[int]:
    """How many of the first packets of all captures each has."""
    with ExitStack() as opened:
        sources = [open_source(path, block_bytes=1 << 14) for path in paths]
        for source in sources:
            opened.callback(source.close)
        return first_packets(sources, most)


def by_tcpdump(path: Path, folder: Path, *arguments: str) -> list[tuple[int, bytes]] | None:
    """The packets that tcpdump writes; None if it does not take the filter for this file."""
    out = folder / "out.pcap"
    done = subprocess.run(
        ["tcpdump", "-r", path, "-w", out, *arguments], capture_output=True, check=False
    )
    return None if done.returncode else selected(out)[1]


@needs_captures
@needs("tcpdump")
@pytest.mark.slow
@pytest.mark.parametrize("name", NAMES)
def test_a_filter_selects_the_packets_that_tcpdump_selects(name: str, tmp_path: Path) -> None:
    whole = len(selected(CAPTURES / name)[1])
    sizes = []
    for expression in FILTERS:
        expected = by_tcpdump(CAPTURES / name, tmp_path, expression)
        assert expected is not None
        source, packets = selected(CAPTURES / name, expression)
        assert packets == expected, expression
        assert source.stats.received_packets == whole
        assert source.stats.filtered_packets == whole - len(packets)
        assert source.stats.received_bytes == sum(length for length, _ in packets)
        sizes.append(len(packets))
    assert any(sizes)


@needs_captures
@needs("tcpdump")
@pytest.mark.slow
@pytest.mark.parametrize("most", [1, 7, 700, 10**9])
@pytest.mark.parametrize("expression", ["", "udp"])
def test_a_limit_keeps_the_packets_that_tcpdump_keeps(
    most: int, expression: str, tmp_path: Path
) -> None:
    path = CAPTURES / "ndpi-netflix.pcap"
    expected = by_tcpdump(path, tmp_path, "-c", str(most), *([expression] if expression else []))
    source, packets = selected(path, expression, most)
    assert packets == expected
    assert source.stats.received_packets - source.stats.filtered_packets == len(packets)


@needs_captures
@needs("tcpdump", "mergecap")
@pytest.mark.slow
@pytest.mark.parametrize("most", [1, 50, 3000, 10**9])
def test_the_first_packets_of_several_captures_are_those_of_the_merged_one(
    most: int, tmp_path: Path
) -> None:
    whole = CAPTURES / "ndpi-netflix.pcap"
    parts = []
    for number, expression in enumerate(("tcp", "udp", "not tcp and not udp")):
        part = tmp_path / f"{number}.pcap"
        subprocess.run(["tcpdump", "-r", whole, "-w", part, expression], check=True)
        parts.append(part)
    merged = tmp_path / "merged.pcap"
    subprocess.run(["mergecap", "-F", "pcap", "-w", merged, *parts], check=True)
    counts = shares([str(part) for part in parts], most)
    chosen = [each for part, n in zip(parts, counts, strict=True) for each in selected(part)[1][:n]]
    assert sorted(chosen) == sorted(selected(merged)[1][:most])


def test_a_packet_that_steps_back_follows_the_one_before_it(tmp_path: Path) -> None:
    """In pcapng files with times in microseconds."""
    times = {"a": [10, 3, 11], "b": [4, 10, 12]}
    sources = []
    for name, given in times.items():
        path = tmp_path / name
        path.write_bytes(section() + interface() + b"".join(enhanced(b"x" * 60, t) for t in given))
        sources.append(str(path))

    assert [shares(sources, n) for n in range(1, 8)] == [
        *([0, 1], [1, 1], [2, 1], [2, 2], [3, 2], [3, 3], [3, 3]),
    ]


@needs("tcpdump")
@pytest.mark.parametrize("expression", FILTERS)
def test_a_load_beyond_the_captured_bytes_rejects_a_packet(expression: str, tmp_path: Path) -> None:
    """Ethernet packets cut at every length."""
    frame = bytes.fromhex("020000000001020000000002080045000054000040004006") + bytes(range(160))
    path = tmp_path / "cut.pcap"
    path.write_bytes(pcap_of([frame[:n] for n in range(1, len(frame))]))
    assert selected(path, expression)[1] == by_tcpdump(path, tmp_path, expression)


@needs_captures
@needs("tcpdump")
@pytest.mark.slow
@pytest.mark.parametrize("name", TAGGED)
def test_tagged_packets_of_captures_are_selected_as_by_tcpdump(name: str, tmp_path: Path) -> None:
    sizes = {}
    for expression in TAG_FILTERS:
        found = selected(CAPTURES / name, expression)[1]
        assert found == by_tcpdump(CAPTURES / name, tmp_path, expression), expression
        sizes[expression] = len(found)
    assert any(sizes.values())


@needs("tcpdump")
def test_tagged_packets_are_selected_as_by_tcpdump(tmp_path: Path) -> None:
    """Every kind of tag around every kind of packet, whole and cut at every eighth byte."""
    path = tmp_path / "tags.pcap"
    whole = [bytes(12) + tags + packet for tags in TAGS for packet in TAGGED_PACKETS]
    cut = [frame[:n] for frame in whole for n in range(12, len(frame), 8)]
    path.write_bytes(pcap_of(whole + cut))
    for expression in TAG_FILTERS:
        found = selected(path, expression)[1]
        assert found == by_tcpdump(path, tmp_path, expression), expression
        assert 0 < len(found) < len(whole) + len(cut), expression


def tag(vlan: int, kind: int = 0x8100, priority: int = 0) -> bytes:
    """The type and the information of a VLAN tag."""
    return struct.pack(">HH", kind, priority << 13 | vlan)


def ipv4(protocol: int, ports: tuple[int, int]) -> bytes:
    transport = struct.pack(">HH", *ports) + bytes(60)
    head = struct.pack(">BBHHHBBH", 0x45, 0, 20 + len(transport), 1, 0, 64, protocol, 0)
    return head + bytes([10, 0, 0, 1, 10, 0, 0, 2]) + transport


def ipv6(protocol: int, ports: tuple[int, int]) -> bytes:
    transport = struct.pack(">HH", *ports) + bytes(16)
    head = struct.pack(">IHBB", 6 << 28, len(transport), protocol, 64)
    return head + bytes(15) + b"\1" + bytes(15) + b"\2" + transport


HTTP, DNS, OTHER = (50_000, 80), (53, 50_001), (8080, 443)
TAGGED_PACKETS = (
    *(b"\x08\x00" + ipv4(6, HTTP), b"\x08\x00" + ipv4(17, DNS), b"\x08\x00" + ipv4(6, OTHER)),
    *(b"\x86\xdd" + ipv6(6, HTTP), b"\x86\xdd" + ipv6(17, DNS), b"\x08\x06" + bytes(28)),
    b"\x88\x64" + b"\x11\x00\x00\x01" + struct.pack(">HH", 90, 0x0021) + ipv4(6, HTTP),
    b"\x88\x47" + struct.pack(">I", 7 << 12 | 1 << 8 | 64) + ipv4(6, HTTP),
    struct.pack(">H", 40) + bytes(60),  # a length instead of a type
)
TAGS = (
    *(b"", tag(10), tag(20, priority=5), tag(0, priority=7), tag(10, 0x88A8), tag(10, 0x9100)),
    *(tag(10) + tag(20), tag(20) + tag(10), tag(10, 0x88A8) + tag(20), tag(1) + tag(2) + tag(3)),
)


def test_packets_of_a_link_type_without_such_a_filter_are_reported(tmp_path: Path) -> None:
    path = tmp_path / "two.pcapng"
    packets = [
        enhanced(b"\x45" + bytes(40), 5, 1),
        enhanced(bytes(12) + b"\x08\x06" + bytes(40), 6, 0),
    ]
    path.write_bytes(section() + interface() + interface(101) + b"".join(packets))
    source, found = selected(path, "ether src 00:00:00:00:00:00")
    assert len(found) == 1
    assert source.stats.filtered_packets == 1
    assert source.damage == [
        "the filter does not apply to 1 packets of link type 101, which are left out"
    ]


def test_a_filter_that_rejects_all_ethernet_packets_is_refused_as_by_tcpdump() -> None:
    with pytest.raises(UsageError, match="rejects all packets; write vlan first, what follows"):
        compile_for_captures("port 80 and vlan", READ_LINK_TYPES)
    with pytest.raises(UsageError, match=r"rejects all packets$"):
        compile_for_captures("tcp and udp", READ_LINK_TYPES)


def test_an_invalid_filter_is_refused() -> None:
    with pytest.raises(UsageError, match="the filter 'tcp prt 80' is invalid"):
        compile_for_captures("tcp prt 80", READ_LINK_TYPES)
