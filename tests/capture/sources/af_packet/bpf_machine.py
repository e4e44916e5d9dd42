"""The virtual machine of classic BPF (net/core/filter.c), as far as the programs here use it."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

    from gscope.capture.sources.af_packet.filter import Instruction

_WORD = 0xFFFFFFFF


def run_filter(program: Sequence[Instruction], packet: bytes) -> int:
    """How many bytes of the packet the program accepts; a load from outside the packet rejects it."""
    a = x = 0
    at = 0
    while True:
        code, if_true, if_false, k = program[at]
        at += 1
        kind = code & 7
        if kind == 6:
            return k if code == 0x06 else a
        if kind == 0 and code == 0x80:
            a = len(packet)
        elif kind == 0:
            begin = k + (x if code & 0x40 else 0)
            size = {0x00: 4, 0x08: 2, 0x10: 1}[code & 0x18]
            if begin + size > len(packet):
                return 0
            a = int.from_bytes(packet[begin : begin + size], "big")
        elif code == 0xB1:
            if k >= len(packet):
                return 0
            x = (packet[k] & 15) * 4
        elif code == 0x07:
            x = a
        elif kind == 4:
            operations = {0x00: a + k, 0x50: a & k, 0x60: a << k, 0x70: a >> k}
            a = operations[code & 0xF0] & _WORD
        elif code == 0x05:
            at += k
        else:
            value = x if code & 8 else k
            is_true = {0x10: a == value, 0x20: a > value, 0x30: a >= value, 0x40: bool(a & value)}
            at += if_true if is_true[code & 0xF0] else if_false
