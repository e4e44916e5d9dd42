"""Malformed packets are those that tshark calls so; unsupported ones are whole for tshark."""

from __future__ import annotations

import random
import struct
import subprocess
from typing import TYPE_CHECKING

from tests.capture.packet.lowpan_frames import compressed, mac_header, udp
from tests.capture.packet.raw_captures import read_capture
from tests.support.requirements import CAPTURES, needs, needs_captures

from gscope.capture.packet.decode_errors import UNSUPPORTED, Reason
from gscope.capture.packet.dissector.dissect import dissect

if TYPE_CHECKING:
    from pathlib import Path

ETHERNET, LOWPAN, USER0 = 1, 230, 147
ERROR = 8 << 20
"""The severity of tshark's expert reports on packets that violate their protocol."""


def reasons(path: Path) -> list[Reason]:
    return [
        dissect(p.data, linktype=p.linktype, wirelen=p.wirelen, time_ns=p.time_ns)[1]
        for p in read_capture(path)
    ]


def damaged(path: Path) -> list[bool]:
    """Whether tshark calls each packet malformed, cut short, or in violation of its protocol."""
    fields = [p for name in ("frame.number", "_ws.malformed", "_ws.short") for p in ("-e", name)]
    listing = subprocess.run(
        ["tshark", "-r", path, "-T", "fields", *fields, "-e", "_ws.expert.severity"],
        capture_output=True,
        text=True,
        check=True,
        timeout=120,
    ).stdout
    rows = [line.split("\t") for line in listing.splitlines()]
    return [
        bool(malformed or short) or str(ERROR) in severities.split(",")
        for _, malformed, short, severities in rows
    ]


def capture(path: Path, linktype: int, frames: list[bytes]) -> Path:
    records = b"".join(struct.pack("<IIII", 1, 0, len(f), len(f)) + f for f in frames)
    header = struct.pack("<IHHiIII", 0xA1B2C3D4, 2, 4, 0, 0, 65535, linktype)
    path.write_bytes(header + records)
    return path


@needs("tshark")
def test_packets_that_end_inside_a_header_are_malformed_for_both(tmp_path: Path) -> None:
    ip = struct.pack(">BBHHHBBH", 0x45, 0, 40, 0, 0, 64, 6, 0) + bytes([10, 0, 0, 1, 10, 0, 0, 2])
    whole = bytes(12) + b"\x81\x00\x00\x0a\x08\x00" + ip + struct.pack(">HH", 1, 2) + bytes(16)
    path = capture(tmp_path / "cut.pcap", ETHERNET, [whole[:n] for n in range(14, 42)])
    found = reasons(path)
    assert {Reason.LINK_TRUNCATED, Reason.IP_TRUNCATED, Reason.TRANSPORT_TRUNCATED} <= set(found)
    assert not UNSUPPORTED & set(found)
    assert [reason is not Reason.NONE for reason in found] == damaged(path)


@needs("tshark")
def test_unsupported_packets_are_whole_for_tshark(tmp_path: Path) -> None:
    chance = random.Random(4)
    head = mac_header(chance, 2, 2)
    packet = compressed(chance, (3, 2, 1, 3), udp(chance, 0, bytes(8), has_checksum=False))
    of_context = packet[:1] + bytes([packet[1] | 0x40]) + packet[2:]
    first = b"\xc0\x90\x00\x07" + packet + bytes(24)
    later = b"\xe0\x90\x00\x07\x0a" + bytes(40)
    extended = b"\x7e\x33\xe1\x00" + bytes(40)
    lowpan = [head + each for each in (of_context, first, later, extended)]
    deep = bytes(12) + b"\x81\x00\x00\x01" * 300 + b"\x08\x06" + bytes(28)
    found = set()
    for linktype, frames in ((LOWPAN, lowpan), (ETHERNET, [deep]), (USER0, [bytes(60)])):
        path = capture(tmp_path / f"{linktype}.pcap", linktype, frames)
        assert not any(damaged(path))
        found |= set(reasons(path))
    assert found == UNSUPPORTED - {Reason.FLOW_WITHOUT_TEMPLATE}  # of exports, not of packets


@needs("tshark")
@needs_captures
def test_what_is_malformed_in_a_capture_is_so_for_tshark() -> None:
    path = CAPTURES / "ndpi-fuzz-2006-06-26-2594.pcap"
    odd = [
        (reason, is_damaged)
        for reason, is_damaged in zip(reasons(path), damaged(path), strict=True)
        if reason is not Reason.NONE
    ]
    assert {reason for reason, _ in odd} == {Reason.IP_BAD_VERSION, Reason.IP_BAD_LENGTH}
    assert all(is_damaged for _, is_damaged in odd)
