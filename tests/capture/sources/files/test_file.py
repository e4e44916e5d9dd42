from __future__ import annotations

import struct

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.capture.sources.files.capture_bytes import (
    Packet,
    block_of,
    drain,
    enhanced,
    expected_of,
    interface,
    obsolete,
    pcap_header,
    pcap_of,
    pcap_record,
    read_bytes,
    section,
    simple,
)

from gscope.capture.sources.files.file import FileSource
from gscope.capture.sources.files.format import MAX_CAPTURED_BYTES, MAX_RECORD_BYTES
from gscope.errors import CaptureError

PCAP = pcap_of([b"", b"a", b"bcd", bytes(40)])
PCAPNG = (
    section()
    + interface()
    + enhanced(b"abc", 1)
    + block_of(99, b"what")
    + obsolete(b"defgh", 2)
    + section(">")
    + interface(order=">")
    + simple(b"ij", order=">")
    + enhanced(b"k", 3, order=">")
)

USB = 189
"""A link type whose packets may be large."""


@pytest.mark.parametrize(("data", "header_bytes"), [(PCAP, 24), (PCAPNG, 28)])
def test_cut_anywhere_the_whole_records_are_read_and_the_cut_is_reported(
    data: bytes, header_bytes: int
) -> None:
    whole, damage = read_bytes(data)
    assert not [sentence for sentence in damage if "truncated" in sentence]
    counts = []
    for size in range(len(data)):
        if size < header_bytes:
            with pytest.raises(CaptureError):
                read_bytes(data[:size])
            continue
        packets, damage = read_bytes(data[:size])
        assert packets == whole[: len(packets)]
        counts.append(len(packets))
        cut = [sentence for sentence in damage if "truncated" in sentence]
        assert len(cut) == (0 if _is_border(data, size) else 1), (size, damage)
    assert counts == sorted(counts)
    assert set(counts) == set(range(len(whole)))


def _is_border(data: bytes, size: int) -> bool:
    """Whether records end at ``size``.

    Nothing is left over there when the rest is read on its own.
    """
    if data is PCAP:
        borders = [24, 40, 57, 76]
    else:
        borders, position, order = [], 0, "<"
        while position < len(data):
            if data[position : position + 4] == section()[:4]:
                order = "<" if data[position + 8] == 0x4D else ">"
            position += struct.unpack_from(order + "I", data, position + 4)[0]
            borders.append(position)
    return size in borders


def test_a_cut_record_is_reported_with_its_place() -> None:
    _, damage = read_bytes(PCAP[:-3])
    assert damage == ["f: the last record is truncated after 53 of 56 bytes, at byte 76"]
    _, damage = read_bytes(PCAP[:80])
    assert damage == ["f: the last record is truncated after 4 of 16 bytes, at byte 76"]


@settings(deadline=None)
@given(st.lists(st.binary(max_size=300), max_size=40), st.integers(1, 3000))
def test_any_block_size_gives_the_same_packets(payloads: list[bytes], block_bytes: int) -> None:
    assert read_bytes(pcap_of(payloads), block_bytes) == (expected_of(payloads), [])
    ng = section() + b"".join(interface(7) + enhanced(data, 5) for data in payloads)
    expected = [Packet(5000, len(data), 7, data) for data in payloads]
    assert read_bytes(ng, block_bytes) == (expected, [])


@pytest.mark.parametrize("size", [4095, 4096, 100_000, 5_000_000])
def test_a_record_larger_than_the_block_makes_it_grow(size: int) -> None:
    header = pcap_header(snaplen=2**31 - 1, linktype=USB if size > MAX_CAPTURED_BYTES else 1)
    data = header + 3 * (pcap_record(b"abc") + pcap_record(bytes(size)))
    packets, damage = read_bytes(data, block_bytes=4096)
    assert [len(packet.data) for packet in packets] == [3, size] * 3
    assert damage == []


def test_a_claimed_length_does_not_cost_memory_that_the_file_does_not_fill() -> None:
    header = pcap_header(snaplen=2**31 - 1, linktype=USB)
    data = header + struct.pack("<4I", 0, 0, MAX_RECORD_BYTES, 1) + b"abc"
    source_packets, damage = read_bytes(data)
    assert source_packets == []
    assert damage == [
        f"f: the last record is truncated after 19 of {MAX_RECORD_BYTES + 16} bytes, at byte 24"
    ]


@pytest.mark.parametrize("size", [MAX_CAPTURED_BYTES, MAX_CAPTURED_BYTES + 1])
def test_no_packet_is_larger_than_capture_tools_take(size: int) -> None:
    """Whatever the snap length claims; ``tshark`` and ``tcpdump`` stop at the same record."""
    small = pcap_record(b"abc")
    packets, damage = read_bytes(
        pcap_header(snaplen=2**31 - 1) + small + pcap_record(bytes(size)) + small
    )
    is_usable = size == MAX_CAPTURED_BYTES
    assert [len(packet.data) for packet in packets] == ([3, size, 3] if is_usable else [3])
    assert len(damage) == (not is_usable)
    ng = section() + interface(1)
    packets, damage = read_bytes(ng + enhanced(b"abc") + enhanced(bytes(size)) + enhanced(b"abc"))
    assert [len(packet.data) for packet in packets] == ([3, size, 3] if is_usable else [3, 3])
    assert len(damage) == (not is_usable)


def test_a_file_of_nothing_but_sections_ends() -> None:
    packets, damage = read_bytes((section() + interface(1)) * 70_000 + enhanced(b"abc"))
    assert packets == []
    assert len(damage) == 1
    assert "sections" in damage[0]


def test_a_header_alone_is_a_capture_without_packets() -> None:
    assert read_bytes(pcap_header()) == ([], [])
    assert read_bytes(section()) == ([], [])


@settings(deadline=None, max_examples=300)
@given(
    st.sampled_from([pcap_header(), pcap_header(">"), section(), section() + interface()]),
    st.binary(max_size=400),
)
def test_random_bytes_behind_a_header_never_crash(header: bytes, data: bytes) -> None:
    packets, _ = read_bytes(header + data, block_bytes=64)
    assert sum(len(packet.data) for packet in packets) <= len(data)


@settings(deadline=None, max_examples=300)
@given(st.sampled_from([PCAP, PCAPNG]), st.data())
def test_mutations_never_crash_and_do_not_depend_on_the_block_size(
    capture: bytes, data: st.DataObject
) -> None:
    mutated = bytearray(capture)
    for _ in range(data.draw(st.integers(1, 6))):
        at = data.draw(st.integers(28, len(mutated) - 1))
        mutated[at] = data.draw(st.one_of(st.integers(0, 255), st.sampled_from((0, 1, 6, 255))))
    assert read_bytes(bytes(mutated), 32) == read_bytes(bytes(mutated))


def test_small_files_get_small_blocks(tmp_path: object) -> None:
    source = FileSource(_written(tmp_path, PCAP))
    source.open()
    assert source.block_bytes == 4096
    assert source.new_block().data.nbytes < 5000
    assert len(drain(source)) == 4


def test_a_source_may_be_opened_again_and_closed_twice(tmp_path: object) -> None:
    source = FileSource(_written(tmp_path, PCAP))
    source.open()
    source.close()
    source.close()
    assert source.next_block() is None
    source.open()
    assert len(drain(source)) == 4


def test_blocks_filled_in_turn_keep_their_packets(tmp_path: object) -> None:
    payloads = [bytes((number,)) * 100 for number in range(200)]
    source = FileSource(_written(tmp_path, pcap_of(payloads)), block_bytes=1000)
    source.open()
    blocks = []
    while source.fill(block := source.new_block()):
        blocks.append(block)
    seen = [
        bytes(block.data[block.offset[i] : block.offset[i] + block.caplen[i]])
        for block in blocks
        for i in range(block.count)
    ]
    assert seen == payloads


def test_full_index_arrays_lose_no_packet(tmp_path: object) -> None:
    payloads = [b"x"] * 100
    source = FileSource(_written(tmp_path, pcap_of(payloads)))
    source.open()
    block = source.new_block()
    for name in ("offset", "caplen", "wirelen", "time_ns", "linktype"):
        setattr(block, name, getattr(block, name)[:7])
    count = 0
    while source.fill(block):
        count += block.count
    assert count == 100
    assert source.damage == []


def _written(folder: object, data: bytes) -> str:
    path = f"{folder}/capture"
    with open(path, "wb") as file:  # noqa: PTH123
        file.write(data)
    return path
