"""A machine for classic BPF: which packets of a block a compiled packet filter accepts.

It does what libpcap does with a filter of a capture file (``pcap_offline_filter``): a load beyond
the captured bytes rejects the packet, ``len`` is the length on the wire, arithmetic has 32 bits.
Instructions are rows of code, jump if true, jump if false, operand.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from gscope.capture.kernels.jit import kernel, kernel_part

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from gscope.capture.sources.block import IndexArrays

_MASK = 0xFFFFFFFF
_MEMORY_WORDS = 16

_CLASS, _SIZE, _MODE, _OPERATION, _SOURCE = 0x07, 0x18, 0xE0, 0xF0, 0x08
_LD, _LDX, _ST, _STX, _ALU, _JMP, _RET = 0, 1, 2, 3, 4, 5, 6
_HALF, _BYTE = 0x08, 0x10
_IMM, _ABS, _IND, _MEM, _LEN = 0x00, 0x20, 0x40, 0x60, 0x80
_ADD, _SUB, _MUL, _DIV, _OR, _AND, _LSH, _RSH, _NEG, _MOD = range(0, 0xA0, 0x10)
_JA, _JEQ, _JGT, _JGE, _JSET = range(0, 0x50, 0x10)
_RETURNS_A, _TXA = 0x10, 0x80


@kernel_part
def _load(data: NDArray[np.uint8], begin: int, caplen: int, k: int, size: int) -> int:
    """Return ``size`` bytes at ``k`` of a packet, most significant first; -1 beyond its end."""
    if k + size > caplen:
        return -1
    value = 0
    for i in range(size):
        value = (value << 8) | int(np.int64(data[begin + k + i]))
    return value


@kernel_part
def _compute(operation: int, a: int, b: int) -> int:
    """Return the result of an ALU operation, modulo 2**32; -1 for a division by zero."""
    if operation == _ADD:
        a += b
    elif operation == _SUB:
        a -= b
    elif operation == _MUL:
        a *= b
    elif operation in (_DIV, _MOD):
        if b == 0:
            return -1
        a = a // b if operation == _DIV else a % b
    elif operation == _OR:
        a |= b
    elif operation == _AND:
        a &= b
    elif operation == _LSH:
        a = a << b if b < 32 else 0
    elif operation == _RSH:
        a = a >> b if b < 32 else 0
    elif operation == _NEG:
        a = -a
    else:
        a ^= b
    return a & _MASK


@kernel_part
def _jumps(operation: int, a: int, b: int) -> bool:
    """Return whether the condition of a jump holds."""
    if operation == _JEQ:
        return a == b
    if operation == _JGT:
        return a > b
    if operation == _JGE:
        return a >= b
    return (a & b) != 0


@kernel_part
def _accepts(
    code: NDArray[np.int64],
    pc: int,
    data: NDArray[np.uint8],
    begin: int,
    caplen: int,
    wirelen: int,
    memory: NDArray[np.int64],
) -> bool:
    """Return whether the program at ``pc`` accepts the packet at ``begin``."""
    a = x = 0
    while pc < code.shape[0]:
        opcode, k = code[pc, 0], code[pc, 3]
        kind, mode = opcode & _CLASS, opcode & _MODE
        operand = x if opcode & _SOURCE else k
        step = 1
        if kind in (_LD, _LDX):
            if mode == _IMM:
                value = k
            elif mode == _MEM:
                value = memory[k & (_MEMORY_WORDS - 1)]
            elif mode == _LEN:
                value = wirelen
            elif kind == _LDX:
                # The length of an IP header, in bytes.
                value = _load(data, begin, caplen, k, 1)
                value = value if value < 0 else (value & 15) * 4
            else:
                size = 1 if opcode & _SIZE == _BYTE else 2 if opcode & _SIZE == _HALF else 4
                at = (k + x) & _MASK if mode == _IND else k
                value = _load(data, begin, caplen, at, size)
            if value < 0:
                return False
            if kind == _LD:
                a = value
            else:
                x = value
        elif kind == _ST:
            memory[k & (_MEMORY_WORDS - 1)] = a
        elif kind == _STX:
            memory[k & (_MEMORY_WORDS - 1)] = x
        elif kind == _ALU:
            a = _compute(opcode & _OPERATION, a, operand)
            if a < 0:
                return False
        elif kind == _JMP:
            if opcode & _OPERATION == _JA:
                step += k
            else:
                step += code[pc, 1] if _jumps(opcode & _OPERATION, a, operand) else code[pc, 2]
        elif kind == _RET:
            return (a if opcode & _SIZE == _RETURNS_A else k) != 0
        elif opcode & _TXA:
            a = x
        else:
            x = a
        pc += step
    return False


@kernel
def select_packets(
    code: NDArray[np.int64],
    starts: NDArray[np.int64],
    data: NDArray[np.uint8],
    arrays: IndexArrays,
    count: int,
    most: int,
) -> tuple[int, int, int]:
    """Move the packets that the filter accepts to the front of the index arrays.

    Args:
        code: the programs for all link types, one after the other.
        starts: pairs of a link type and the row at which its program begins.
        data: the bytes of the packets.
        arrays: the index arrays of the block.
        count: number of packets.
        most: number of packets to accept at most.

    Returns:
        How many packets were accepted, how many were looked at, and how many of these have a link
        type without a program; such a packet is rejected.
    """
    offset, caplen, wirelen, time_ns, linktype = arrays
    memory = np.zeros(_MEMORY_WORDS, np.int64)
    kept = seen = unknown = 0
    link = start = -1
    while seen < count and kept < most:
        i = seen
        seen += 1
        if linktype[i] != link:
            link, start = int(linktype[i]), -1
            for row in range(starts.shape[0]):
                if starts[row, 0] == link:
                    start = int(starts[row, 1])
        if start < 0:
            unknown += 1
            continue
        if _accepts(code, start, data, offset[i], caplen[i], wirelen[i], memory):
            offset[kept], caplen[kept], wirelen[kept] = offset[i], caplen[i], wirelen[i]
            time_ns[kept], linktype[kept] = time_ns[i], linktype[i]
            kept += 1
    return kept, seen, unknown
