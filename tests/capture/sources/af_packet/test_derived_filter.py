"""The kernel filter of queries: whatever an LFTA wants passes it, on every packet there is."""

from __future__ import annotations

import socket
import struct
from functools import cache
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.capture.packet.raw_captures import read_capture
from tests.capture.sources.af_packet.bpf_machine import run_filter
from tests.capture.sources.af_packet.live_frames import ADDRESSES, udp_frame
from tests.capture.sources.af_packet.network import receive, send
from tests.support.requirements import captures

from gscope.capture.packet.dissector.dissect import dissect
from gscope.capture.sources.af_packet.derived_filter import (
    compile_condition,
    conjunction,
)
from gscope.capture.sources.af_packet.filter import accept_all
from gscope.capture.sources.af_packet.packet_socket import attach_filter
from gscope.queries.catalog.evaluate import evaluate
from gscope.queries.compile import CompileContext, QueryText, compile_queries
from gscope.queries.plan.split.kernel_filter import TRUE, needed_packets

if TYPE_CHECKING:
    from tests.capture.sources.af_packet.conftest import Opener

    from gscope.capture.sources.af_packet.filter import Instruction
    from gscope.queries.expressions.expressions import Column, Expression, PacketField
    from gscope.queries.plan.split.kernel_filter import Condition

PREDICATES = {
    "UDP": [
        "TRUE",
        "destPort = 53",
        "destPort IN (53, 5353, 123) OR srcPort = 53",
        "srcPort > 1023 AND destPort <= 1023 AND destPort > 0",
        "ipversion = 6",
        "ipversion = 4 AND NOT (srcPort = 53 OR destPort = 53)",
        "udp_length > 100 AND destPort = 53",
    ],
    "TCP": [
        "SYN = 1 AND ACK = 0",
        "flags & 2 <> 0 AND destPort = 80",
        "flags = 18 OR RST = 1",
        "srcIP = '10.0.0.1' OR destIP = '192.168.1.1'",
        "destIP = '::1' OR destIP = '2001:db8::1' OR srcPort = 443",
        "flags >= 16 AND flags < 20 AND 1024 <= srcPort",
    ],
    "IP": [
        "protocol = 1 OR protocol = 58",
        "protocol <> 6 AND protocol <> 17",
        "protocol = 47 OR protocol = 4 OR destPort = 4789 OR destPort = 2152",
        "protocol > 100",
        "destPort < 1024 AND protocol = 6",
        "offset > 0 OR (more_fragments = 1 AND protocol = 17)",
    ],
    "ICMP": ["TRUE", "type = 8"],
    "ARP": ["TRUE", "op = 1"],
    "IPV4": ["TRUE", "protocol = 17"],
    "IPV6": ["protocol = 58", "ttl < 5"],
    "PKT": [
        "ethertype = 0x0800",
        "ethertype <> 0x0806 AND ethertype < 0x9000",
        "vlan = 5 OR len > 1000",
    ],
}
CASES = [(protocol, where) for protocol, each in PREDICATES.items() for where in each]


def compiled(protocol: str, where: str) -> tuple[Expression | None, Condition]:
    text = f"SELECT time FROM {protocol} WHERE {where.replace('TRUE', '1 = 1')}"
    program = compile_queries([QueryText(text, "test")], CompileContext(("main",))).program
    (lfta,) = program.lftas
    return lfta.predicate, needed_packets([lfta], "main")


@cache
def odd_frames() -> tuple[tuple[bytes, dict[str, Any]], ...]:
    """Ethernet frames of the shared captures, a few of each kind, and their fields."""
    seen: dict[bytes, int] = {}
    frames = []
    for path in captures():
        if path.stat().st_size > 1_000_000:
            continue
        for packet in read_capture(path):
            data = packet.data
            if packet.linktype != 1:
                break
            # Type, the first bytes of the header behind it, protocol, fragment, ports.
            kind = data[12:15] + data[20:24] + data[34:38] + bytes([min(len(data), 80)])
            seen[kind] = seen.get(kind, 0) + 1
            if seen[kind] <= 3:
                fields, _ = dissect(data, linktype=1, wirelen=packet.wirelen, time_ns=0)
                frames.append((data, fields))
    return tuple(frames)


def as_shown(frame: bytes) -> bytes:
    """A frame as the kernel shows it to filters: without its outer tag."""
    is_tagged = frame[12:14] in (b"\x81\x00", b"\x88\xa8") and len(frame) >= 18
    return frame[:12] + frame[16:] if is_tagged else frame


def ensure_sound(predicate: Expression | None, program: list[Instruction]) -> tuple[int, int]:
    """That the filter accepts all that the predicate does; how many frames each accepts."""
    wanted = accepted = 0
    for frame, fields in odd_frames():

        def leaf(field: PacketField | Column, fields: dict[str, Any] = fields) -> Any:
            return fields[field.name]

        is_wanted = predicate is None or evaluate(predicate, leaf) is True
        is_accepted = run_filter(program, as_shown(frame)) > 0
        assert is_accepted or not is_wanted, frame.hex()
        wanted += is_wanted
        accepted += is_accepted
    return wanted, accepted


@pytest.mark.parametrize(("protocol", "where"), CASES)
def test_no_packet_that_a_query_wants_is_rejected(protocol: str, where: str) -> None:
    predicate, condition = compiled(protocol, where)
    program = compile_condition(condition, 65535)
    wanted, accepted = ensure_sound(predicate, program)
    assert len(odd_frames()) > 1000
    assert accepted >= wanted


@pytest.mark.parametrize(
    ("protocol", "where", "share"),
    [("UDP", "destPort = 53", 0.6), ("ARP", "TRUE", 0.4), ("TCP", "SYN = 1 AND ACK = 0", 0.5)],
)
def test_most_packets_that_no_query_wants_are_rejected(
    protocol: str, where: str, share: float
) -> None:
    predicate, condition = compiled(protocol, where)
    _, accepted = ensure_sound(predicate, compile_condition(condition, 65535))
    assert accepted < share * len(odd_frames())


def test_the_kernel_runs_programs_as_the_machine_here() -> None:
    one, other = socket.socketpair(socket.AF_UNIX, socket.SOCK_DGRAM)
    with one, other:
        other.setblocking(False)
        for protocol, where in CASES[::4]:
            program = compile_condition(compiled(protocol, where)[1], 40)
            attach_filter(other, program)
            for frame, _ in odd_frames()[:: len(odd_frames()) // 150]:
                if len(frame) < 4000:
                    assert _through(one, other, frame) == frame[: run_filter(program, frame)]


def _through(one: socket.socket, other: socket.socket, frame: bytes) -> bytes:
    try:
        one.send(frame)
    except PermissionError:
        # The sender of a local socket learns what a filter rejects.
        return b""
    try:
        return other.recv(1 << 16)
    except BlockingIOError:
        return b""


@settings(max_examples=200, deadline=None)
@given(st.binary(max_size=100), st.sampled_from(CASES))
def test_no_bytes_are_wanted_and_rejected(data: bytes, case: tuple[str, str]) -> None:
    predicate, condition = _cached(*case)
    for head in (b"\x08\x00E", b"\x08\x00", b"\x86\xdd`", b"\x08\x06", b""):
        frame = bytes(12) + head + data
        fields, _ = dissect(frame, linktype=1, wirelen=len(frame), time_ns=0)

        def leaf(field: PacketField | Column, fields: dict[str, Any] = fields) -> Any:
            return fields[field.name]

        if predicate is None or evaluate(predicate, leaf) is True:
            assert run_filter(condition, frame)


@cache
def _cached(protocol: str, where: str) -> tuple[Expression | None, list[Instruction]]:
    predicate, condition = compiled(protocol, where)
    return predicate, compile_condition(condition, 65535)


def test_a_snap_length_cuts_what_is_accepted() -> None:
    _, condition = compiled("UDP", "destPort = 53")
    assert run_filter(compile_condition(condition, 20), udp_frame(1, 7)) == 20
    assert compile_condition(TRUE, 20) == accept_all(20)


def test_both_of_two_filters_must_accept() -> None:
    _, dns = compiled("UDP", "destPort = 53")
    _, from_seven = compiled("UDP", "srcPort = 7")
    joined = conjunction(compile_condition(from_seven, 99), compile_condition(dns, 30))
    assert run_filter(joined, udp_frame(1, 7)) == 30
    assert run_filter(joined, udp_frame(1, 8)) == 0
    other = udp_frame(1, 7)
    assert run_filter(joined, other[:36] + struct.pack(">H", 54) + other[38:]) == 0


@pytest.mark.live
def test_the_kernel_leaves_out_what_no_query_wants(live: Opener) -> None:
    source = live(is_paused=True, filter="udp")
    _, condition = compiled("UDP", "srcPort = 1001")
    source.narrow(condition)
    source.start()
    frames = [udp_frame(number, 1000 + number % 3) for number in range(30)]
    tagged = ADDRESSES + b"\x81\x00\x00\x05" + udp_frame(99, 1001)[12:]
    send([*frames, b"\xff" * 60, tagged])
    wanted = [*frames[1::3], tagged]
    assert receive(source, len(wanted)) == wanted
    assert source.stats.received_packets == len(wanted)
