"""Threads of one interface divide its packets by a set: each group appears in one of them only."""

from __future__ import annotations

import random
import socket
import struct
from collections import defaultdict
from typing import TYPE_CHECKING, Any

import pytest
from tests.capture.sources.af_packet.bpf_machine import run_filter
from tests.capture.sources.af_packet.live_frames import ADDRESSES
from tests.capture.sources.af_packet.network import DEVICE, own_network, send

from gscope.capture.packet.dissector.dissect import dissect
from gscope.capture.sources.af_packet.fanout_program import compile_fanout, is_expressible
from gscope.capture.sources.af_packet.fanout_rings import FanoutSource
from gscope.capture.sources.af_packet.packet_socket import Fanout, attach_filter
from gscope.capture.sources.af_packet.source import AfPacketSource
from gscope.queries.analysis.partitioning.chosen import members_of
from gscope.queries.analysis.partitioning.given import given_set
from gscope.queries.catalog.evaluate import evaluate

if TYPE_CHECKING:
    from gscope.queries.expressions.expressions import Column, PacketField
    from gscope.queries.plan.program_partitioning import PartitionMember

SETS = [
    "srcIP",
    "srcIP, destIP, srcPort, destPort, protocol",
    "srcIP & 0xFFFFFF00",
    "prefix(destIP, 20, 48)",
    "{srcIP, destIP}",
    "{srcIP, destIP}, {srcPort, destPort}",
    "{srcIP & 0xFFFF0000, destIP & 0xFFFF0000}, protocol",
    "destPort",
    "srcPort/100, destIP",
    "destPort % 7",
    "srcPort & 0xFF00",
]
UNSUPPORTED = ["srcMAC", "srcPort + destPort", "ttl", "srcPort * 3 % 7", "srcIP & 0xFFFFFFFF00"]


def members(text: str) -> tuple[PartitionMember, ...]:
    return members_of(given_set(text, "set"))


def frames(count: int = 600) -> list[bytes]:
    """Frames of few hosts and ports: both families, options, fragments, several protocols."""
    chance = random.Random(5)
    made = []
    for _ in range(count):
        protocol = chance.choice([6, 17, 17, 132, 1, 47])
        body = struct.pack(">2H", chance.randrange(990, 1010), chance.choice([53, 80, 8080]))
        body += chance.randbytes(36)
        ends = [chance.choice([1, 2, 256, 70000, 70001]) for _ in range(2)]
        if chance.random() < 0.4:
            protocol = 58 if protocol == 1 else protocol
            header = struct.pack(">IHBB", 6 << 28, len(body), protocol, 9)
            pair = b"".join(b"\x20\x01\x0d\xb8" + end.to_bytes(12) for end in ends)
            made.append(ADDRESSES + b"\x86\xdd" + header + pair + body)
            continue
        options = chance.choice([0, 0, 4, 40])
        fragment = chance.choice([0, 0, 0, 0x2000, 5])
        header = struct.pack(
            ">BBHHHBBH",
            0x45 + options // 4,
            0,
            20 + options + len(body),
            7,
            fragment,
            9,
            protocol,
            0,
        )
        pair = b"".join((0x0A000000 + end).to_bytes(4) for end in ends)
        made.append(ADDRESSES + b"\x08\x00" + header + pair + bytes([1]) * options + body)
    return made


def group_of(frame: bytes, of: tuple[PartitionMember, ...]) -> tuple[Any, ...]:
    """The values of a set for a frame, as the slow decoder and the catalog have them."""
    fields, _ = dissect(frame, linktype=1, wirelen=len(frame), time_ns=0)

    def leaf(field: PacketField | Column) -> Any:
        return fields[field.name]

    groups = ([evaluate(value, leaf) for value in member.values] for member in of)
    return tuple(tuple(sorted(values, key=repr)) for values in groups)


@pytest.mark.parametrize("text", SETS)
def test_frames_that_agree_in_a_set_have_one_number(text: str) -> None:
    of = members(text)
    program = compile_fanout(of)
    assert program is not None
    numbers = defaultdict(set)
    for frame in frames():
        numbers[group_of(frame, of)].add(run_filter(program, frame))
    assert all(len(each) == 1 for each in numbers.values())
    # Different groups differ: 2³² numbers are many for so few of them.
    assert len({number for (number,) in numbers.values()}) == len(numbers)
    lanes = [number % 4 for (number,) in numbers.values()]
    if len(numbers) >= 40:
        assert all(lanes.count(lane) > len(numbers) / 10 for lane in range(4))


@pytest.mark.parametrize("text", UNSUPPORTED)
def test_a_set_that_no_program_can_read_is_not_expressible(text: str) -> None:
    assert not is_expressible(members(text))


def test_an_empty_set_is_not_expressible() -> None:
    assert not is_expressible(())


def test_what_cannot_be_read_goes_to_the_first_thread() -> None:
    program = compile_fanout(members("{srcIP, destIP}, {srcPort, destPort}"))
    assert program is not None
    whole = next(frame for frame in frames() if frame[12:14] == b"\x86\xdd")
    others = [
        ADDRESSES + b"\x08\x06" + bytes(40),
        ADDRESSES + b"\x81\x00\x00\x05" + whole[12:],
        whole[:20] + bytes([44]) + whole[21:],
        *(whole[:size] for size in range(55)),
    ]
    assert {run_filter(program, frame) for frame in others} == {0}
    assert run_filter(program, whole) != 0


@pytest.mark.parametrize("text", SETS)
def test_the_kernel_accepts_the_programs(text: str) -> None:
    program = compile_fanout(members(text))
    assert program is not None
    one, other = socket.socketpair(socket.AF_UNIX, socket.SOCK_DGRAM)
    with one, other:
        attach_filter(other, program)


def seen(source: FanoutSource, of: tuple[PartitionMember, ...]) -> list[set[tuple[Any, ...]]]:
    """The groups that each ring receives, until all have been silent for a while."""
    found: list[set[tuple[Any, ...]]] = []
    for ring in source.rings:
        groups = set()
        while (block := ring.next_block(0.3)) is not None:
            for n in range(block.count):
                at = int(block.offset[n])
                frame = block.data[at : at + int(block.caplen[n])].tobytes()
                groups.add(group_of(frame, of))
        found.append(groups)
    return found


def rings(count: int) -> FanoutSource:
    return FanoutSource(
        DEVICE,
        [AfPacketSource(DEVICE, DEVICE, ring_bytes=4 << 20, fanout=Fanout()) for _ in range(count)],
    )


@pytest.mark.live
@pytest.mark.parametrize("text", ["srcIP", "{srcIP, destIP}, {srcPort, destPort}", "srcPort"])
def test_each_group_is_in_one_thread_of_a_real_interface(text: str) -> None:
    of = members(text)
    with own_network():
        source = rings(3)
        source.open()
        try:
            source.divide(of)
            source.start()
            send(frames())
            found = seen(source, of)
            assert source.stats.received_packets == 600
        finally:
            source.close()
    assert found[0] | found[1] | found[2] == {group_of(frame, of) for frame in frames()}
    assert not found[0] & found[1] | found[0] & found[2] | found[1] & found[2]
    assert sum(map(bool, found)) > 1


def is_plain_flow(frame: bytes) -> bool:
    """Whether it is TCP or UDP in a whole IPv4 packet."""
    return not any(frame[20:22]) and frame[23] in (6, 17)


@pytest.mark.live
def test_a_set_that_the_kernel_cannot_read_divides_flow_by_flow() -> None:
    of = members("srcIP, destIP, srcPort, destPort, protocol")
    with own_network():
        source = rings(3)
        source.open()
        try:
            source.divide(members("srcMAC"))
            source.start()
            send(
                frame for frame in frames() if frame[12:14] == b"\x08\x00" and is_plain_flow(frame)
            )
            found = seen(source, of)
        finally:
            source.close()
    assert sum(map(bool, found)) > 1
    assert not found[0] & found[1] | found[0] & found[2] | found[1] & found[2]
