"""Classic BPF programs for conditions of ``queries/plan/split/kernel_filter.py``, on Ethernet.

A program accepts every packet for which the decoder might find the condition true. It decides only
about frames of type IPv4, IPv6 without extension headers, or ARP: there, a test that holds for the
decoded field holds for the bytes that the program reads. It accepts all other frames (nested tags,
MPLS, PPPoE, LLC …) and all that are too short to examine.

* The outer VLAN tag of a live packet is not in the frame: the kernel moved it to the metadata.
* Later fragments, and IP packets truncated by their own length, have no ports: the decoder returns
  0, and no condition has a test that 0 passes. So it does not matter what the program reads there.
* The filter sees packets before the snap length truncates them: the decoder sees less, and a field
  that it cannot see passes no test.

The virtual machine: McCanne, Jacobson, "The BSD Packet Filter", USENIX Winter 1993; numbers as in
linux/bpf_common.h.
"""

from __future__ import annotations

from dataclasses import field, replace
from typing import TYPE_CHECKING

from gscope.capture.sources.af_packet.filter import MAX_INSTRUCTIONS, accept_all
from gscope.queries.catalog.scalar.addresses import ipv6_bits, is_ipv4
from gscope.queries.plan.split.kernel_filter import (
    ADDRESSES,
    FALSE,
    TRUE,
    AllOf,
    Test,
    all_of,
    any_of,
)
from gscope.records import dataclass

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from gscope.capture.sources.af_packet.filter import Instruction
    from gscope.queries.plan.split.kernel_filter import Condition

_LD_LEN, LDX_IP_HEADER = 0x80, 0xB1
LD = {1: 0x30, 2: 0x28, 4: 0x20}
"""Load 1, 2 or 4 bytes at an offset; adding ``_INDIRECT`` makes the offset relative to ``X``."""
_INDIRECT = 0x20
ADD, ADD_X, AND, _LSH, _RSH, _TAX = 0x04, 0x0C, 0x54, 0x64, 0x74, 0x07
_JUMP, JEQ, _JGT, _JGE, _JGE_X, JSET = 0x05, 0x15, 0x25, 0x35, 0x3D, 0x45
RETURN, _RETURN_A = 0x06, 0x16

_TYPE_AT, L3 = 12, 14
_IPV4, _IPV6, _ARP = 0x0800, 0x86DD, 0x0806
_IPV4_BYTES, _IPV6_BYTES = 20, 40
EXTENSIONS = (0, 43, 44, 60)
"""Hop-by-hop options, routing, fragment, destination options: headers that the decoder skips."""
_MOST = 0xFFFFFFFF

_COMPARE = {
    "eq": (JEQ, False),
    "ne": (JEQ, True),
    "gt": (_JGT, False),
    "le": (_JGT, True),
    "ge": (_JGE, False),
    "lt": (_JGE, True),
}
"""The jump for a comparison, and whether it tests the opposite."""

_FLAG_BITS = {"FIN": 0, "SYN": 1, "RST": 2, "PSH": 3, "ACK": 4, "URG": 5, "ECE": 6, "CWR": 7}


@dataclass(frozen=True, slots=True)
class FieldOffset:
    """Where a field is in a frame.

    Attributes:
        at: offset in bytes, from the beginning of the frame or of the transport header.
        size: bytes of the field.
        is_transport: whether ``at`` counts from the transport header.
        bit: the one bit that is the field, counted from the least significant; None for whole
            bytes.
    """

    at: int
    size: int
    is_transport: bool = False
    bit: int | None = None


_TRANSPORT = {
    "srcPort": FieldOffset(0, 2, is_transport=True),
    "destPort": FieldOffset(2, 2, is_transport=True),
    "flags": FieldOffset(13, 1, is_transport=True),
    **{name: FieldOffset(13, 1, is_transport=True, bit=bit) for name, bit in _FLAG_BITS.items()},
}
IPV4_FIELDS = {
    "protocol": FieldOffset(L3 + 9, 1),
    "srcIP": FieldOffset(L3 + 12, 4),
    "destIP": FieldOffset(L3 + 16, 4),
    **_TRANSPORT,
}
IPV6_FIELDS = {
    "protocol": FieldOffset(L3 + 6, 1),
    "srcIP": FieldOffset(L3 + 8, 16),
    "destIP": FieldOffset(L3 + 24, 16),
    **_TRANSPORT,
}


def compile_condition(condition: Condition, snaplen: int) -> list[Instruction]:
    """Return the program that accepts what may fulfil ``condition``, up to ``snaplen`` bytes."""
    if condition == TRUE:
        return accept_all(snaplen)
    program = FilterProgram()
    program.emit(_LD_LEN)
    program.decide(_JGE, L3 + _IPV4_BYTES, "look", "accept")
    program.label("look")
    program.emit(LD[2], _TYPE_AT)
    kinds = ((_IPV4, "ipv4"), (_IPV6, "ipv6"), (_ARP, "arp"))
    for ethertype, name in kinds:
        program.decide(JEQ, ethertype, name, f"not {name}")
        program.label(f"not {name}")
    program.jump("accept")
    program.label("ipv4")
    _ipv4(program, _specialized(condition, {"ethertype": _IPV4, "ipversion": 4}, IPV4_FIELDS))
    program.label("ipv6")
    _ipv6(program, _specialized(condition, {"ethertype": _IPV6, "ipversion": 6}, IPV6_FIELDS))
    program.label("arp")
    program.test(_specialized(condition, {"ethertype": _ARP}, {}), {}, 0)
    program.label("accept")
    program.emit(RETURN, snaplen)
    program.label("reject")
    program.emit(RETURN, 0)
    return program.assembled()


def conjunction(first: Sequence[Instruction], second: Sequence[Instruction]) -> list[Instruction]:
    """Return the program that accepts what both accept, truncated as by the second.

    Returns the first alone if that is impossible: it returns a computed length, or the two are too
    long.
    """
    codes = {code for code, *_ in first}
    if _RETURN_A in codes or len(first) + len(second) > MAX_INSTRUCTIONS:
        return list(first)
    joined = [
        (_JUMP, 0, 0, len(first) - at - 1)
        if code == RETURN and operand
        else (code, yes, no, operand)
        for at, (code, yes, no, operand) in enumerate(first)
    ]
    return [*joined, *second]


def _ipv4(program: FilterProgram, condition: Condition) -> None:
    program.emit(LD[1], L3)
    program.emit(AND, 0xF0)
    program.decide(JEQ, 0x40, "is ipv4", "accept")
    program.label("is ipv4")
    transport_bytes = _transport_bytes(condition)
    if transport_bytes:
        program.emit(LD[1], L3)
        program.emit(AND, 0x0F)
        program.emit(_LSH, 2)
        program.emit(ADD, L3 + transport_bytes)
        program.emit(_TAX)
        program.emit(_LD_LEN)
        program.decide(_JGE_X, 0, "has transport", "accept")
        program.label("has transport")
        program.emit(LDX_IP_HEADER, L3)
    program.test(condition, IPV4_FIELDS, None)


def _ipv6(program: FilterProgram, condition: Condition) -> None:
    program.emit(_LD_LEN)
    program.decide(_JGE, L3 + _IPV6_BYTES + _transport_bytes(condition), "long enough", "accept")
    program.label("long enough")
    program.emit(LD[1], L3)
    program.emit(AND, 0xF0)
    program.decide(JEQ, 0x60, "is ipv6", "accept")
    program.label("is ipv6")
    program.emit(LD[1], L3 + 6)
    for protocol in EXTENSIONS:
        program.decide(JEQ, protocol, "accept", f"not {protocol}")
        program.label(f"not {protocol}")
    program.test(condition, IPV6_FIELDS, L3 + _IPV6_BYTES)


def _specialized(
    condition: Condition, values: Mapping[str, int], places: Mapping[str, FieldOffset]
) -> Condition:
    """Return ``condition`` simplified for one kind of frame.

    Fields in ``values`` are constants there, those in ``places`` can be read, and all others are
    NULL.
    """
    if not isinstance(condition, Test):
        join: Callable[..., Condition] = all_of if isinstance(condition, AllOf) else any_of
        return join(_specialized(part, values, places) for part in condition.parts)
    if condition.field in values:
        return TRUE if condition.holds(values[condition.field]) else FALSE
    place = places.get(condition.field)
    if place is None:
        return FALSE
    if condition.field in ADDRESSES:
        if is_ipv4(condition.value) == (place.size == 16):
            return FALSE
        # Two addresses of IPv6 headers may have the same value; the kernel compares bits on the
        # wire.
        wire = replace(condition, value=ipv6_bits(condition.value))
        return any_of((condition, wire))
    if not 0 <= condition.value <= _MOST:
        return TRUE if condition.holds(0) else FALSE
    return condition


def _transport_bytes(condition: Condition) -> int:
    """Return the number of bytes after the IP header that the condition reads."""
    if isinstance(condition, Test):
        place = _TRANSPORT.get(condition.field)
        return 0 if place is None else place.at + place.size
    return max(map(_transport_bytes, condition.parts), default=0)


@dataclass(slots=True)
class FilterProgram:
    """Instructions whose jumps name labels; all jumps are forward."""

    instructions: list[tuple[int, str | int]] = field(default_factory=list)
    labels: dict[str, int] = field(default_factory=dict)
    made: int = 0

    def emit(self, code: int, operand: int = 0) -> None:
        """Append an instruction; a conditional jump skips the next instruction if false."""
        self.instructions.append((code, operand))

    def jump(self, label: str) -> None:
        """Append a jump to ``label``."""
        self.instructions.append((_JUMP, label))

    def label(self, name: str) -> None:
        """Make the next instruction the target of jumps to ``name``."""
        self.labels[name] = len(self.instructions)

    def decide(self, code: int, operand: int, if_true: str, if_false: str) -> None:
        """Compare ``A`` and jump to one of two labels, at any distance."""
        self.emit(code, operand)
        self.jump(if_true)
        self.jump(if_false)

    def test(
        self,
        condition: Condition,
        places: Mapping[str, FieldOffset],
        transport_at: int | None,
        if_true: str = "accept",
        if_false: str = "reject",
    ) -> None:
        """Jump to one of two labels, depending on ``condition``.

        ``transport_at`` is the offset of the transport header; None for one that follows an IPv4
        header of X bytes.
        """
        if isinstance(condition, Test):
            self._compare(condition, places[condition.field], transport_at, if_true, if_false)
            return
        is_all = isinstance(condition, AllOf)
        for part in condition.parts:
            self.made += 1
            following = f"part {self.made}"
            outcomes = (following, if_false) if is_all else (if_true, following)
            self.test(part, places, transport_at, *outcomes)
            self.label(following)
        self.jump(if_true if is_all else if_false)

    def _compare(
        self, test: Test, place: FieldOffset, transport_at: int | None, if_true: str, if_false: str
    ) -> None:
        at, indirect = place.at, 0
        if place.is_transport:
            at += L3 if transport_at is None else transport_at
            indirect = _INDIRECT if transport_at is None else 0
        if place.size == 16:
            for word in range(4):
                self.made += 1
                following = if_true if word == 3 else f"word {self.made}"
                self.emit(LD[4], at + 4 * word)
                self.decide(JEQ, test.value >> (96 - 32 * word) & _MOST, following, if_false)
                if word < 3:
                    self.label(following)
            return
        self.emit(LD[place.size] + indirect, at)
        if place.bit is not None:
            self.emit(_RSH, place.bit)
            self.emit(AND, 1)
        code, is_opposite = _COMPARE[test.sign]
        outcomes = (if_false, if_true) if is_opposite else (if_true, if_false)
        self.decide(code, test.value & _MOST, *outcomes)

    def assembled(self) -> list[Instruction]:
        """Return the instructions with all labels resolved."""
        program: list[Instruction] = []
        for at, (code, operand) in enumerate(self.instructions):
            if isinstance(operand, str):
                program.append((code, 0, 0, self.labels[operand] - at - 1))
            else:
                is_decision = code in (JEQ, _JGT, _JGE, _JGE_X, JSET)
                program.append((code, 0, int(is_decision), operand))
        return program
