from __future__ import annotations

import struct

import pytest
from tests.capture.sources.files.capture_bytes import (
    Packet,
    block_of,
    enhanced,
    interface,
    obsolete,
    option,
    read_bytes,
    section,
    simple,
)

NANOSECONDS = option(9, b"\x09")


@pytest.mark.parametrize("order", ["<", ">"])
def test_reads_every_kind_of_packet_block_in_both_byte_orders(order: str) -> None:
    data = (
        section(order)
        + interface(113, order=order)
        + enhanced(b"abcde", 5_000_001, order=order, wirelen=77, options=option(2, b"flag", order))
        + obsolete(b"fg", 6_000_001, order=order)
        + simple(b"hij", order=order)
    )
    packets, damage = read_bytes(data)
    assert packets == [
        Packet(5_000_001_000, 77, 113, b"abcde"),
        Packet(6_000_001_000, 2, 113, b"fg"),
        Packet(6_000_001_000, 3, 113, b"hij"),
    ]
    assert damage == ["f: packets without a time, set to that of the previous packet: 1"]


def test_each_interface_has_its_own_link_type_resolution_and_offset() -> None:
    data = (
        section()
        + interface(1)
        + interface(101, options=NANOSECONDS)
        + interface(276, options=option(9, b"\x8a") + option(14, struct.pack("<q", -5)))
        + enhanced(b"a", 7, number=0)
        + enhanced(b"b", 7, number=1)
        + enhanced(b"c", 1536 + 5 * 1024, number=2)
    )
    assert read_bytes(data) == (
        [Packet(7000, 1, 1, b"a"), Packet(7, 1, 101, b"b"), Packet(1_500_000_000, 1, 276, b"c")],
        [],
    )


def test_a_new_section_forgets_the_interfaces_and_may_change_the_byte_order() -> None:
    first = section("<") + interface(1) + interface(9) + enhanced(b"a", 1, number=1)
    second = section(">", options=option(4, b"by hand", ">")) + interface(113, order=">")
    second += enhanced(b"b", 2, order=">") + enhanced(b"c", 3, number=1, order=">")
    packets, damage = read_bytes(first + second)
    assert packets == [Packet(1000, 1, 9, b"a"), Packet(2000, 1, 113, b"b")]
    assert damage == ["f: packets of an interface that no block describes, ignored: 1"]


def test_interfaces_may_be_described_between_packets_and_be_many() -> None:
    data = section() + b"".join(
        interface(number) + enhanced(bytes((number,)), number, number=number)
        for number in range(100)
    )
    packets, _ = read_bytes(data)
    assert packets == [Packet(n * 1000, 1, n, bytes((n,))) for n in range(100)]


def test_unknown_blocks_are_passed_over_whatever_their_size() -> None:
    filler = block_of(0x80000BAD, bytes(200_000)) + block_of(5, bytes(8)) + block_of(4, b"")
    data = section() + filler + interface() + filler + enhanced(b"a") + filler
    assert read_bytes(data, block_bytes=4096) == ([Packet(0, 1, 1, b"a")], [])


def test_a_simple_packet_is_cut_at_the_snap_length_of_its_interface() -> None:
    data = section() + interface(snaplen=2) + simple(b"abcd", wirelen=90)
    assert read_bytes(data)[0] == [Packet(0, 90, 1, b"ab")]


def test_a_simple_packet_without_snap_length_ends_with_its_block() -> None:
    data = section() + interface() + simple(b"abcd", wirelen=90) + simple(b"efghi")
    assert [packet.data for packet in read_bytes(data)[0]] == [b"abcd", b"efghi"]


def test_a_packet_that_claims_more_than_its_block_is_reported_and_not_used() -> None:
    body = struct.pack("<5I", 0, 0, 9, 100, 100) + bytes(8)
    data = section() + interface() + block_of(6, body) + block_of(6, b"") + enhanced(b"a")
    packets, damage = read_bytes(data)
    assert [packet.data for packet in packets] == [b"a"]
    assert damage == ["f: packet blocks too short for the length they claim, ignored: 2"]


@pytest.mark.parametrize("length", [0, 8, 13, 2**31, 2**32 - 1])
def test_impossible_block_lengths_end_the_file(length: int) -> None:
    good = section() + interface() + enhanced(b"a")
    broken = struct.pack("<2I", 6, length) + bytes(100)
    packets, damage = read_bytes(good + broken)
    assert [packet.data for packet in packets] == [b"a"]
    assert damage == [f"f: the block at byte {len(good)} has invalid lengths; the rest is ignored"]


def test_a_block_whose_two_lengths_differ_ends_the_file() -> None:
    good = section() + interface() + enhanced(b"a")
    packets, damage = read_bytes(good + enhanced(b"b")[:-4] + b"\x10\0\0\0" + enhanced(b"c"))
    assert [packet.data for packet in packets] == [b"a"]
    assert len(damage) == 1


@pytest.mark.parametrize(
    ("again", "reason"),
    [
        (section(version=(2, 0)), "is of version 2.0, not 1.x"),
        (section()[:8] + bytes(20), "has no byte order"),
        (section()[:4] + b"\x04\0\0\0" + section()[8:], "claims 4 bytes"),
    ],
)
def test_a_bad_section_header_in_the_middle_ends_the_file(again: bytes, reason: str) -> None:
    good = section() + interface() + enhanced(b"a")
    packets, damage = read_bytes(good + again + interface() + enhanced(b"b"))
    assert [packet.data for packet in packets] == [b"a"]
    assert damage == [f"f: the section header at byte {len(good)} {reason}; the rest is ignored"]


def test_options_that_are_cut_are_reported_and_those_before_are_used() -> None:
    cut = struct.pack("<2H", 14, 8) + bytes(4)
    data = section() + interface(options=NANOSECONDS + cut) + enhanced(b"a", 5)
    packets, damage = read_bytes(data)
    assert packets[0].time_ns == 5
    assert damage == ["f: interface descriptions with truncated options: 1"]


def test_options_behind_the_end_of_options_do_not_count() -> None:
    data = section() + interface(options=option(0, b"") + NANOSECONDS) + enhanced(b"a", 5)
    assert read_bytes(data)[0][0].time_ns == 5000


def test_times_beyond_64_bits_are_held_there_and_reported() -> None:
    late = option(14, struct.pack("<q", 2**62))
    data = section() + interface() + interface(options=late)
    data += enhanced(b"a", 2**64 - 1) + enhanced(b"b", 1, number=1) + enhanced(b"c", 1)
    packets, damage = read_bytes(data)
    assert [packet.time_ns for packet in packets] == [2**63 - 1, 2**63 - 1, 1000]
    assert damage == ["f: packets with a time after the year 2262, set to its end: 2"]


def test_an_interface_description_that_is_too_short_ends_the_file() -> None:
    packets, damage = read_bytes(section() + block_of(1, b"abcd") + enhanced(b"a"))
    assert packets == []
    assert damage == ["f: the interface description at byte 28 is too short; the rest is ignored"]
