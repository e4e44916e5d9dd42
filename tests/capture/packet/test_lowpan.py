"""Compressed 6LoWPAN: kernel and dissector read in a frame what tshark reads in it."""

from __future__ import annotations

import random
import struct
import subprocess
from ipaddress import IPv6Address
from typing import TYPE_CHECKING

import pytest
from tests.capture.packet.kernel_reader import RawPacket, read_packets
from tests.capture.packet.lowpan_frames import all_forms, compressed, mac_header, udp
from tests.support.requirements import needs

from gscope.capture.packet.decode_errors import Reason
from gscope.capture.packet.dissector.dissect import dissect

if TYPE_CHECKING:
    from pathlib import Path

    from gscope.capture.packet.dissector.dissect import Fields

WITH_CHECKSUM, WITHOUT_CHECKSUM = 195, 230
SHORT, LONG = 2, 3
TSHARK_FIELDS = {
    "srcIP": "ipv6.src",
    "destIP": "ipv6.dst",
    "tos": "ipv6.tclass",
    "flow_label": "ipv6.flow",
    "protocol": "ipv6.nxt",
    "ttl": "ipv6.hlim",
    "total_length": "ipv6.plen",
    "srcPort": "udp.srcport",
    "destPort": "udp.dstport",
    "udp_length": "udp.length",
}


def read(frames: list[bytes], linktype: int = WITHOUT_CHECKSUM) -> list[tuple[Fields, Reason]]:
    """What kernel and dissector say of whole frames, which is the same."""
    return read_cut([(frame, len(frame)) for frame in frames], linktype)


def read_cut(frames: list[tuple[bytes, int]], linktype: int) -> list[tuple[Fields, Reason]]:
    """The same of frames with their lengths on the wire."""
    packets = [RawPacket(linktype, data, wirelen, 10**18) for data, wirelen in frames]
    by_kernel = read_packets(packets, gap=b"\xee" * 48)
    plain = [dissect(p.data, linktype=linktype, wirelen=p.wirelen, time_ns=10**18) for p in packets]
    for packet, one, other in zip(packets, by_kernel, plain, strict=True):
        assert one == other, packet.data.hex()
    return by_kernel


def by_tshark(path: Path, frames: list[bytes]) -> list[dict[str, int | None]]:
    records = b"".join(
        struct.pack("<IIII", 1, 0, len(frame), len(frame)) + frame for frame in frames
    )
    header = struct.pack("<IHHiIII", 0xA1B2C3D4, 2, 4, 0, 0, 65535, WITHOUT_CHECKSUM)
    path.write_bytes(header + records)
    names = [part for name in TSHARK_FIELDS.values() for part in ("-e", name)]
    listing = subprocess.run(
        ["tshark", "-r", str(path), "-T", "fields", "-E", "occurrence=f", *names],
        capture_output=True,
        text=True,
        check=True,
        timeout=120,
    ).stdout
    return [_numbers(line.split("\t")) for line in listing.splitlines()]


def _numbers(values: list[str]) -> dict[str, int | None]:
    found: dict[str, int | None] = {}
    for name, value in zip(TSHARK_FIELDS, values, strict=True):
        if not value:
            found[name] = None
        elif name.endswith("IP"):
            found[name] = int(IPv6Address(value))
        else:
            found[name] = int(value, 0) + (40 if name == "total_length" else 0)
    return found


@needs("tshark")
def test_every_stateless_form_is_read_as_tshark_reads_it(tmp_path: Path) -> None:
    frames = list(all_forms(random.Random(6282)))
    expected = by_tshark(tmp_path / "lowpan.pcap", frames)
    assert len(expected) == len(frames) == 2560
    for frame, (fields, reason), wanted in zip(frames, read(frames), expected, strict=True):
        assert reason is Reason.NONE, frame.hex()
        found = {name: fields[name] for name in TSHARK_FIELDS}
        if fields["protocol"] != 17:
            found |= {"srcPort": None, "destPort": None}
        assert found == wanted, frame.hex()


def test_payloads_are_whole() -> None:
    chance = random.Random(1)
    head = mac_header(chance, SHORT, SHORT)
    for size in (0, 1, 80, 1900):
        payload = chance.randbytes(size)
        frames = [
            head + compressed(chance, (3, 2, 3, 3), udp(chance, form, payload, has_checksum=has))
            for form in range(4)
            for has in (True, False)
        ]
        for fields, reason in (*read(frames), *read([f + b"xy" for f in frames], WITH_CHECKSUM)):
            assert reason is Reason.NONE
            assert fields["UDP_data"] == fields["data"] == payload
            assert fields["data_length"] == size
            assert fields["udp_length"] == size + 8


def test_lengths_of_a_frame_that_was_cut_off_are_those_on_the_wire() -> None:
    chance = random.Random(2)
    frame = mac_header(chance, LONG, LONG) + compressed(
        chance, (3, 3, 3, 3), udp(chance, 3, bytes(60))
    )
    cut = frame[:-40]
    for linktype, behind in ((WITHOUT_CHECKSUM, 0), (WITH_CHECKSUM, 2)):
        ((fields, reason),) = read_cut([(cut, len(frame) + behind)], linktype)
        assert reason is Reason.NONE
        assert fields["caplen"] == len(cut)
        assert (fields["total_length"], fields["udp_length"]) == (40 + 68, 68)
        assert (fields["data"], fields["data_length"]) == (bytes(20), 60)


def test_cut_anywhere_both_say_the_same() -> None:
    chance = random.Random(3)
    for frame in list(all_forms(chance))[::97]:
        cuts = [(frame[:size], wirelen) for size in range(len(frame)) for wirelen in (size, 127)]
        for linktype in (WITHOUT_CHECKSUM, WITH_CHECKSUM):
            read_cut(cuts, linktype)


def frame(after_mac: bytes, source: int = SHORT, destination: int = SHORT) -> bytes:
    return mac_header(random.Random(4), source, destination) + after_mac + bytes(40)


@pytest.mark.parametrize(
    ("data", "reason"),
    [
        pytest.param(frame(b"\x7a\x53"), Reason.LOWPAN_CONTEXT, id="source of a context"),
        pytest.param(frame(b"\x7a\xb5\x00"), Reason.LOWPAN_CONTEXT, id="destination of a context"),
        pytest.param(frame(b"\x7a\x3c"), Reason.LOWPAN_CONTEXT, id="group of a context"),
        pytest.param(frame(b"\x7a\x34"), Reason.LINK_MALFORMED, id="reserved destination"),
        pytest.param(frame(b"\x7a\x3d"), Reason.LINK_MALFORMED, id="reserved group"),
        pytest.param(frame(b"\x7a\x33\x11", 0), Reason.LINK_MALFORMED, id="source not there"),
        pytest.param(frame(b"\x7a\x33\x11", 2, 0), Reason.LINK_MALFORMED, id="destination neither"),
        pytest.param(frame(b"\xc0\x50\x00\x07\x7a\x33\x11"), Reason.LOWPAN_FRAGMENT, id="first"),
        pytest.param(frame(b"\xe0\x50\x00\x07\x0a"), Reason.LOWPAN_FRAGMENT, id="later fragment"),
        pytest.param(frame(b"\x7e\x33\xe1\x00"), Reason.LOWPAN_UNSUPPORTED, id="extension header"),
        pytest.param(frame(b"\x42\x00\x40"), Reason.LOWPAN_UNSUPPORTED, id="HC1"),
        pytest.param(frame(b"\x50\x01\x41"), Reason.LOWPAN_UNSUPPORTED, id="broadcast"),
        pytest.param(frame(b"\x08\x00"), Reason.NONE, id="Zigbee"),
        pytest.param(frame(b"\x7a\x33\x11" + bytes(2030)), Reason.LINK_MALFORMED, id="too long"),
    ],
)
def test_what_cannot_be_expanded_is_counted_by_name(data: bytes, reason: Reason) -> None:
    ((fields, found),) = read([data])
    assert (fields["ipversion"], found) == (None, reason)


def test_more_compressed_packets_than_slots_are_read_apart() -> None:
    chance = random.Random(5)
    payloads = [chance.randbytes(1 + n % 60) for n in range(300)]
    head = mac_header(chance, SHORT, LONG)
    frames = [head + compressed(chance, (3, 2, 3, 3), udp(chance, 3, each)) for each in payloads]
    assert [fields["data"] for fields, _ in read(frames)] == payloads
