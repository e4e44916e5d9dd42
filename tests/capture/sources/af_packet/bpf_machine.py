"""The virtual machine of classic BPF (net/core/filter.c), as far as the programs here use it."""

from __future__ import annotations

import operator
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from gscope.capture.sources.af_packet.filter import Instruction

_WORD = 0xFFFFFFFF
_LINK = 0xFFE00000
"""From here on, offsets count from the link header."""

_OPERATIONS: dict[int, Callable[[int, int], int]] = {
    0x00: operator.add,
    0x20: operator.mul,
    0x30: operator.floordiv,
    0x50: operator.and_,
    0x60: operator.lshift,
    0x70: operator.rshift,
    0x90: operator.mod,
    0xA0: operator.xor,
}


def _offset(k: int) -> int:
    k &= _WORD
    return k - _LINK if k >= _LINK else k


def run_filter(program: Sequence[Instruction], packet: bytes) -> int:
    """How many bytes of the packet the program accepts.

    A load from outside the packet rejects it.
    """
    a = x = 0
    memory = [0] * 16
    at = 0
    while True:
        code, if_true, if_false, k = program[at]
        at += 1
        kind = code & 7
        if kind == 6:
            return k if code == 0x06 else a
        if kind == 0 and code == 0x80:
            a = len(packet)
        elif code == 0x00:
            a = k
        elif code == 0x61:
            x = memory[k]
        elif code == 0x02:
            memory[k] = a
        elif kind == 0:
            begin = _offset(k + (x if code & 0x40 else 0))
            size = {0x00: 4, 0x08: 2, 0x10: 1}[code & 0x18]
            if begin + size > len(packet):
                return 0
            a = int.from_bytes(packet[begin : begin + size], "big")
        elif code == 0xB1:
            if _offset(k) >= len(packet):
                return 0
            x = (packet[_offset(k)] & 15) * 4
        elif code == 0x07:
            x = a
        elif kind == 4:
            by = x if code & 8 else k
            operation = _OPERATIONS[code & 0xF0]
            a = operation(a, by) & _WORD
        elif code == 0x05:
            at += k
        else:
            value = x if code & 8 else k
            is_true = {0x10: a == value, 0x20: a > value, 0x30: a >= value, 0x40: bool(a & value)}
            at += if_true if is_true[code & 0xF0] else if_false
