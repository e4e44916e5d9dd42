"""The packets of a filter and the first packets of captures, as tcpdump and mergecap select them."""

from __future__ import annotations

import shutil
import subprocess
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from tests.capture.sources.files.capture_bytes import (
    enhanced,
    interface,
    pcap_of,
    section,
)

from gscope.capture.packet.link_names import READ_LINK_TYPES
from gscope.capture.sources.af_packet.filter import compile_for_captures
from gscope.capture.sources.files.open import open_source
from gscope.capture.sources.files.selected import SelectedSource, first_packets
from gscope.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Sequence

CAPTURES = Path(__file__).parents[4] / ".." / "shared" / "captures"
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

needs_captures = pytest.mark.skipif(
    not (CAPTURES / NAMES[0]).exists() or shutil.which("tcpdump") is None,
    reason="the shared captures or tcpdump are not here",
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
@pytest.mark.slow
@pytest.mark.skipif(shutil.which("mergecap") is None, reason="mergecap is not here")
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


@pytest.mark.skipif(shutil.which("tcpdump") is None, reason="tcpdump is not here")
@pytest.mark.parametrize("expression", FILTERS)
def test_a_load_beyond_the_captured_bytes_rejects_a_packet(expression: str, tmp_path: Path) -> None:
    """Ethernet packets cut at every length."""
    frame = bytes.fromhex("020000000001020000000002080045000054000040004006") + bytes(range(160))
    path = tmp_path / "cut.pcap"
    path.write_bytes(pcap_of([frame[:n] for n in range(1, len(frame))]))
    assert selected(path, expression)[1] == by_tcpdump(path, tmp_path, expression)


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


def test_an_invalid_filter_is_refused() -> None:
    with pytest.raises(UsageError, match="the filter 'tcp prt 80' is invalid"):
        compile_for_captures("tcp prt 80", READ_LINK_TYPES)
