"""Classic BPF programs that divide frames among threads by a partitioning set, on Ethernet.

The kernel takes what the program returns, modulo the number of threads, as the number of the thread
that gets a frame. Frames whose packets agree in the set get one number:

    H = 0; for each word of each member: H = (H ^ word) * MULTIPLIER + 1; number = finish(H)
    the word of a pair in any order: finish(H of the one alone) + finish(H of the other alone)

modulo 2³². This is not the partition of rows: that is a hash of other values, and a lane only has
to get all packets of a group. What a lane counts is exact whichever frames it gets, because partial
rows of several lanes are merged; so the program need not read all frames. It gives the first thread
those that are neither IPv4 nor IPv6 without extension headers, directly after the Ethernet header,
or too short. The outer VLAN tag of a live packet is not in the frame.

Packets without ports, and later fragments, have ports of 0, as in the decoder.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from gscope.capture.sources.af_packet.derived_filter import (
    ADD,
    ADD_X,
    AND,
    EXTENSIONS,
    IPV4_FIELDS,
    IPV6_FIELDS,
    JEQ,
    JSET,
    L3,
    LD,
    LDX_IP_HEADER,
    RETURN,
    FieldOffset,
    FilterProgram,
)
from gscope.capture.sources.af_packet.filter import MAX_INSTRUCTIONS
from gscope.queries.expressions.expressions import Call, Literal, PacketField
from gscope.queries.plan.partitioning.address_bits import WHOLE_ADDRESS, address_bits
from gscope.records import dataclass

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from gscope.capture.sources.af_packet.filter import Instruction
    from gscope.queries.expressions.expressions import Expression
    from gscope.queries.plan.partitioning.address_bits import AddressBits
    from gscope.queries.plan.program_partitioning import PartitionMember

FIELDS = frozenset({"srcIP", "destIP", "srcPort", "destPort", "protocol"})
"""The fields that programs read."""

_ADDRESSES = frozenset({"srcIP", "destIP"})
_PORTS = frozenset({"srcPort", "destPort"})
_WITH_PORTS = (6, 17, 132)
"""TCP, UDP and SCTP."""

_LD_IMM, _LDX_MEM, _ST = 0x00, 0x61, 0x02
_MUL, _DIV, _MOD, _RSH, _XOR_X, _TAX = 0x24, 0x34, 0x94, 0x74, 0xAC, 0x07
_RETURN_A = 0x16
_INDIRECT = 0x20

_MULTIPLIER, _FINISH = 0x9E3779B1, 0x85EBCA77
_HASH, _FIRST, _ALONE = 0, 1, 2
"""Words of scratch memory: the hash so far, that of the first value of a pair alone, and that of a
value alone."""

_FRAGMENT_OFFSET = 0x1FFF
_LARGEST = (1 << 32) - 1

_LINK = 0xFFE00000
"""Added to an offset, it makes it count from the link header (SKF_LL_OFF of linux/filter.h): of a
packet that the kernel divides, the frame otherwise begins at the network header or before,
depending on its direction."""

_TYPE_AT, _IP_AT = _LINK + 12, _LINK + L3


@dataclass(frozen=True, slots=True)
class _FieldValue:
    """A function of a field.

    Attributes:
        field: its name.
        bits: of an address, the bits that count; else None.
        code: of a number, the instruction that is applied to it; None for the number itself.
        operand: the operand of that instruction.
    """

    field: str
    bits: AddressBits | None
    code: int | None = None
    operand: int = 0


def compile_fanout(members: Sequence[PartitionMember]) -> list[Instruction] | None:
    """Return the program that divides frames by a set; None if it reads what no program can."""
    read: list[tuple[_FieldValue, ...]] = []
    for member in members:
        values = tuple(map(_value, member.values))
        if any(value is None for value in values):
            return None
        read.append(tuple(value for value in values if value is not None))
    if not read:
        return None
    program = FilterProgram()
    program.emit(LD[2], _TYPE_AT)
    program.decide(JEQ, 0x0800, "ipv4", "not ipv4")
    program.label("not ipv4")
    program.decide(JEQ, 0x86DD, "ipv6", "first")
    has_ports = any(value.field in _PORTS for member in read for value in member)
    program.label("ipv4")
    _ipv4(program, read, has_ports=has_ports)
    program.label("ipv6")
    _ipv6(program, read, has_ports=has_ports)
    program.label("first")
    program.emit(RETURN, 0)
    made = program.assembled()
    return made if len(made) <= MAX_INSTRUCTIONS else None


def is_expressible(members: Sequence[PartitionMember]) -> bool:
    """Return whether the kernel can divide frames by a set."""
    return compile_fanout(members) is not None


def _value(expression: Expression) -> _FieldValue | None:
    match expression:
        case PacketField(name) if name in FIELDS:
            return _FieldValue(name, WHOLE_ADDRESS if name in _ADDRESSES else None)
        case Call(function, (PacketField(name), *rest)) if name in FIELDS:
            numbers = tuple(
                int(each.value)
                for each in rest
                if isinstance(each, Literal) and isinstance(each.value, int)
            )
            if len(numbers) < len(rest):
                return None
            if name in _ADDRESSES:
                bits = address_bits(function, numbers)
                return None if bits is None else _FieldValue(name, bits)
            return _number(name, function, numbers)
    return None


def _number(field: str, function: str, numbers: tuple[int, ...]) -> _FieldValue | None:
    """Return a function of a number of at most 16 bits."""
    if len(numbers) != 1:
        return None
    (number,) = numbers
    match function:
        case "bit_and":
            return _FieldValue(field, None, AND, number & _LARGEST)
        case "idiv_int" | "floor_div" if 0 < number <= _LARGEST:
            return _FieldValue(field, None, _DIV, number)
        case "mod_int" if 0 < number <= _LARGEST:
            return _FieldValue(field, None, _MOD, number)
        case "shr" if 0 <= number < 32:
            return _FieldValue(field, None, _RSH, number)
    return None


def _ipv4(
    program: FilterProgram, members: Sequence[Sequence[_FieldValue]], *, has_ports: bool
) -> None:
    if has_ports:
        program.emit(LD[2], _IP_AT + 6)
        program.decide(JSET, _FRAGMENT_OFFSET, "ipv4 without ports", "ipv4 first fragment")
        program.label("ipv4 first fragment")
        program.emit(LD[1], _IP_AT + 9)
        _decide_ports(program, "ipv4")
        program.label("ipv4 with ports")
        _Frame(program, IPV4_FIELDS, None).divide(members)
        program.label("ipv4 without ports")
    _Frame(program, _without_ports(IPV4_FIELDS), None).divide(members)


def _ipv6(
    program: FilterProgram, members: Sequence[Sequence[_FieldValue]], *, has_ports: bool
) -> None:
    program.emit(LD[1], _IP_AT + 6)
    for protocol in EXTENSIONS:
        program.decide(JEQ, protocol, "first", f"not {protocol}")
        program.label(f"not {protocol}")
    transport_at = L3 + 40
    if has_ports:
        _decide_ports(program, "ipv6")
        program.label("ipv6 with ports")
        _Frame(program, IPV6_FIELDS, transport_at).divide(members)
        program.label("ipv6 without ports")
    _Frame(program, _without_ports(IPV6_FIELDS), transport_at).divide(members)


def _decide_ports(program: FilterProgram, family: str) -> None:
    """Add the choice between code with and without ports, by the protocol in ``A``."""
    for protocol in _WITH_PORTS[:-1]:
        program.decide(JEQ, protocol, f"{family} with ports", f"{family} not {protocol}")
        program.label(f"{family} not {protocol}")
    last = _WITH_PORTS[-1]
    program.decide(JEQ, last, f"{family} with ports", f"{family} without ports")


def _without_ports(fields: Mapping[str, FieldOffset]) -> dict[str, FieldOffset]:
    return {name: place for name, place in fields.items() if name not in _PORTS}


@dataclass(frozen=True, slots=True)
class _Frame:
    """Code for one kind of frame.

    Attributes:
        program: the program.
        fields: where the fields are; one that is missing is 0.
        transport_at: the offset of the transport header; None for one that follows an IPv4 header.
    """

    program: FilterProgram
    fields: Mapping[str, FieldOffset]
    transport_at: int | None

    def divide(self, members: Sequence[Sequence[_FieldValue]]) -> None:
        """Add code that returns the number of a frame."""
        program = self.program
        self._begin(_HASH)
        for member in members:
            if len(member) == 1:
                self._add_value(member[0], _HASH)
                continue
            for value, place in zip(member, (_FIRST, _ALONE), strict=True):
                self._begin(place)
                self._add_value(value, place)
                self._finish()
                program.emit(_ST, place)
            # The sum does not depend on the order.
            program.emit(_LDX_MEM, _FIRST)
            program.emit(ADD_X)
            self._add_word(_HASH)
        self._finish()
        program.emit(_RETURN_A)

    def _begin(self, place: int) -> None:
        self.program.emit(_LD_IMM, 0)
        self.program.emit(_ST, place)

    def _add_value(self, value: _FieldValue, place: int) -> None:
        """Add code that mixes a value into a word of scratch memory, which is then in ``A`` too."""
        program = self.program
        at = self.fields.get(value.field)
        if value.bits is not None:
            assert at is not None
            words = at.size // 4
            bits = value.bits.of_ipv4 if words == 1 else value.bits.of_ipv6
            for word in range(words):
                mask = bits >> 32 * (words - 1 - word) & _LARGEST
                program.emit(LD[4], _LINK + at.at + 4 * word)
                program.emit(AND, mask)
                self._add_word(place)
            return
        if at is None:
            program.emit(_LD_IMM, 0)
        elif not at.is_transport:
            program.emit(LD[at.size], _LINK + at.at)
        elif self.transport_at is not None:
            program.emit(LD[at.size], _LINK + self.transport_at + at.at)
        else:
            program.emit(LDX_IP_HEADER, _IP_AT)
            program.emit(LD[at.size] + _INDIRECT, _IP_AT + at.at)
        if value.code is not None:
            program.emit(value.code, value.operand)
        self._add_word(place)

    def _add_word(self, place: int) -> None:
        """Add code that mixes ``A`` into a word of scratch memory."""
        program = self.program
        program.emit(_LDX_MEM, place)
        program.emit(_XOR_X)
        program.emit(_MUL, _MULTIPLIER)
        program.emit(ADD, 1)
        program.emit(_ST, place)

    def _finish(self) -> None:
        """Add code that mixes all bits of ``A``."""
        program = self.program
        for shift, factor in ((16, _FINISH), (13, _MULTIPLIER), (16, 1)):
            program.emit(_TAX)
            program.emit(_RSH, shift)
            program.emit(_XOR_X)
            program.emit(_MUL, factor)
