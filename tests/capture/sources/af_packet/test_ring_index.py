from __future__ import annotations

import struct

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.capture.sources.af_packet.ring_blocks import (
    LINKTYPE,
    LOOPBACK,
    TPID_VALID,
    TS_RAW_HARDWARE,
    USER,
    VLAN_VALID,
    Indexed,
    Result,
    RingPacket,
    block_bytes,
    index_bytes,
)

FRAME = bytes(range(12)) + b"\x08\x00" + b"payload"


def _index(*packets: RingPacket, snaplen: int = 1 << 20, cooked: bool = False) -> Result:
    return index_bytes(block_bytes(packets), snaplen=snaplen, cooked=cooked)[0]


@given(
    st.lists(
        st.tuples(
            st.binary(max_size=99),
            st.integers(1, 2**31 - 1),
            st.integers(0, 2**32 - 1),
            st.integers(0, 999_999_999),
        ).map(lambda fields: RingPacket(*fields)),
        max_size=20,
    )
)
def test_packets_come_out_as_they_went_in(packets: list[RingPacket]) -> None:
    expected = [
        Indexed(p.seconds * 10**9 + p.nanoseconds, p.wirelen, LINKTYPE, p.data) for p in packets
    ]
    assert _index(*packets) == Result(expected, 0, 0, 0)


@pytest.mark.parametrize(
    ("status", "tpid", "written"),
    [(VLAN_VALID, 0x88A8, 0x8100), (VLAN_VALID | TPID_VALID, 0x88A8, 0x88A8)],
)
@pytest.mark.parametrize("tci", [0, 5, 0xFFFF])
def test_a_tag_is_put_back_where_it_was(status: int, tpid: int, written: int, tci: int) -> None:
    result = _index(RingPacket(FRAME, 90, status=USER | status, tci=tci, tpid=tpid))
    tagged = FRAME[:12] + struct.pack(">2H", written, tci) + FRAME[12:]
    assert [(p.wirelen, p.data) for p in result.packets] == [(94, tagged)]


def test_without_the_flag_the_tag_s_field_means_nothing() -> None:
    assert _index(RingPacket(FRAME, tci=5)).packets[0].data == FRAME


def test_a_packet_cut_before_the_place_of_the_tag_stays_as_it_is() -> None:
    packet = RingPacket(FRAME[:11], 60, status=USER | VLAN_VALID, tci=5)
    assert [(p.wirelen, p.data) for p in _index(packet).packets] == [(60, FRAME[:11])]


def test_a_tag_counts_for_the_snap_length() -> None:
    packet = RingPacket(FRAME, status=USER | VLAN_VALID, tci=5)
    assert [len(p.data) for p in _index(packet, snaplen=len(FRAME)).packets] == [len(FRAME)]


@pytest.mark.parametrize("tag", [b"", b"\x81\x00\x00\x07"])
def test_a_cooked_packet_gets_the_header_that_libpcap_would_write(tag: bytes) -> None:
    packet = RingPacket(
        b"network",
        status=USER | (VLAN_VALID if tag else 0),
        tci=7,
        protocol=0x86DD,
        hardware_type=512,
        kind=3,
        address=b"\1\2\3\4\5\6",
    )
    header = struct.pack(">3H8s", 3, 512, 6, b"\1\2\3\4\5\6") + tag + b"\x86\xdd"
    (found,) = _index(packet, cooked=True).packets
    assert found.data == header + b"network"
    assert found.wirelen == len(found.data)


def test_what_leaves_by_loopback_is_left_out_and_counted() -> None:
    leaving = RingPacket(FRAME, interface=LOOPBACK, kind=4)
    arriving = RingPacket(FRAME, interface=LOOPBACK, kind=0)
    elsewhere = RingPacket(FRAME, interface=LOOPBACK + 1, kind=4)
    result = _index(leaving, arriving, elsewhere)
    assert (len(result.packets), result.skipped, result.lost) == (2, 1, 0)


def test_times_of_the_network_card_are_counted() -> None:
    packets = [RingPacket(FRAME, status=USER | TS_RAW_HARDWARE), RingPacket(FRAME)]
    assert _index(*packets).hardware == 1


def test_packets_that_a_block_lacks_are_reported() -> None:
    result, _, _ = index_bytes(block_bytes([RingPacket(FRAME)] * 3, count=10))
    assert (len(result.packets), result.lost) == (3, 7)


def test_packets_beyond_the_index_arrays_are_reported() -> None:
    result, _, _ = index_bytes(block_bytes([RingPacket(FRAME)] * 9), room=4)
    assert (len(result.packets), result.lost) == (4, 5)


@given(
    st.lists(st.lists(st.binary(max_size=99), max_size=6), min_size=1, max_size=5), st.booleans()
)
def test_packets_of_several_blocks_follow_each_other(
    blocks: list[list[bytes]], cooked: bool
) -> None:
    """The last block claims a packet that it lacks."""
    packets = [[RingPacket(data) for data in each] for each in blocks]
    bodies = [*map(block_bytes, packets[:-1]), block_bytes(packets[-1], len(packets[-1]) + 1)]
    size = max(map(len, bodies))
    data = b"".join(body.ljust(size, b"\0") for body in bodies)
    alone = [_index(*each, cooked=cooked).packets for each in packets]
    result, _, _ = index_bytes(data, cooked=cooked, blocks=len(blocks))
    assert result.packets == [packet for each in alone for packet in each]
    assert result.lost == 1


@st.composite
def _damaged_blocks(draw: st.DrawFn) -> bytes:
    statuses = st.sampled_from([USER, USER | VLAN_VALID])
    drawn = draw(st.lists(st.tuples(st.binary(max_size=60), statuses), max_size=6))
    packets = [RingPacket(data, status=status) for data, status in drawn]
    data = bytearray(block_bytes(packets, draw(st.sampled_from([None, 50, 2**32 - 1]))))
    for _ in range(draw(st.integers(0, 4))):
        at = draw(st.integers(8, len(data) - 1))
        word = draw(
            st.sampled_from([b"\xff" * 4, b"\0" * 4, b"\xff\xff", b"\x01"])
            | st.binary(min_size=1, max_size=4)
        )
        data[at : at + len(word)] = word[: len(data) - at]
    return bytes(data[: draw(st.integers(0, len(data)))])


@settings(max_examples=500)
@given(_damaged_blocks() | st.binary(max_size=300), st.booleans(), st.integers(1, 200))
def test_nothing_outside_a_damaged_block_is_read_or_written(
    data: bytes, cooked: bool, snaplen: int
) -> None:
    found = []
    for around in (0x00, 0xFF):
        result, before, behind = index_bytes(data, cooked=cooked, snaplen=snaplen, around=around)
        assert set(before) | set(behind) == {around}
        found.append(result)
    assert found[0] == found[1]


@settings(max_examples=300)
@given(st.lists(_damaged_blocks() | st.binary(max_size=300), min_size=2, max_size=4), st.booleans())
def test_a_damaged_block_changes_nothing_in_its_neighbours(
    blocks: list[bytes], cooked: bool
) -> None:
    size = max(map(len, blocks))
    padded = [each.ljust(size, b"\0") for each in blocks]
    alone = [index_bytes(each, cooked=cooked)[0] for each in padded]
    result, _, _ = index_bytes(b"".join(padded), cooked=cooked, blocks=len(blocks))
    assert result.packets == [packet for each in alone for packet in each.packets]
    for counter in ("skipped", "lost", "hardware"):
        assert getattr(result, counter) == sum(getattr(each, counter) for each in alone)
