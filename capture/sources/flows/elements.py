"""Information elements of NetFlow v9 and IPFIX, and what becomes of each in a flow record.

The numbers are those of https://www.iana.org/assignments/ipfix, which up to 127 are also the field
types of NetFlow v9 (RFC 3954). Elements that are not listed are skipped.
"""

from __future__ import annotations

import numpy as np

from gscope.capture.packet.flow import layout
from gscope.capture.packet.flow.layout import BITS

# How the value of an element is stored.
SKIP = 0
NUMBER = 1
"""A number, in 1, 2, 4 or 8 bytes; larger ones become the largest that fits."""
LOW_BYTE = 5
"""The low byte of a number."""
IPV4, IPV6 = 6, 7
UPTIME, SECONDS, MILLISECONDS, NTP_TIME, MICROSECONDS_BACK = 8, 9, 10, 11, 12
"""Times: milliseconds of the exporter's uptime, seconds and milliseconds since 1970, 64 bits of
NTP, and microseconds before the export."""
ICMP = 13
"""Type and code in 16 bits."""
SAMPLER, START_OF_UPTIME, INTERVAL, SPACE, SIZE, POPULATION = 14, 15, 16, 17, 18, 19
"""What determines values of other elements."""

_WIDTHS = {1: 1, 2: 2, 4: 3, 8: 4}
ELEMENTS = 512
"""Numbers from here on are skipped."""


def _action(kind: int, offset: int = 0) -> int:
    return kind | offset << 8 | BITS.get(offset, 63) << 16


def _number(offset: int, width: int) -> int:
    return _action(_WIDTHS[width], offset)


_ACTIONS: dict[int, int] = {
    1: _number(layout.BYTES, 8),
    2: _number(layout.PACKETS, 8),
    4: _number(layout.PROTOCOL, 1),
    5: _number(layout.TOS, 1),
    6: _action(LOW_BYTE, layout.FLAGS),
    7: _number(layout.SRC_PORT, 2),
    8: _action(IPV4, layout.SRC_IP),
    9: _number(layout.SRC_MASK, 1),
    10: _number(layout.INPUT, 4),
    11: _number(layout.DEST_PORT, 2),
    12: _action(IPV4, layout.DEST_IP),
    13: _number(layout.DEST_MASK, 1),
    14: _number(layout.OUTPUT, 4),
    15: _action(IPV4, layout.NEXT_HOP),
    16: _number(layout.SRC_AS, 4),
    17: _number(layout.DEST_AS, 4),
    21: _action(UPTIME, layout.LAST),
    22: _action(UPTIME, layout.FIRST),
    27: _action(IPV6, layout.SRC_IP),
    28: _action(IPV6, layout.DEST_IP),
    29: _number(layout.SRC_MASK, 1),
    30: _number(layout.DEST_MASK, 1),
    32: _action(ICMP),
    34: _action(INTERVAL),
    48: _action(SAMPLER),
    50: _action(INTERVAL),
    58: _number(layout.VLAN, 2),
    60: _number(layout.VERSION, 1),
    61: _number(layout.DIRECTION, 1),
    62: _action(IPV6, layout.NEXT_HOP),
    85: _number(layout.BYTES, 8),
    86: _number(layout.PACKETS, 8),
    139: _action(ICMP),
    150: _action(SECONDS, layout.FIRST),
    151: _action(SECONDS, layout.LAST),
    152: _action(MILLISECONDS, layout.FIRST),
    153: _action(MILLISECONDS, layout.LAST),
    154: _action(NTP_TIME, layout.FIRST),
    155: _action(NTP_TIME, layout.LAST),
    156: _action(NTP_TIME, layout.FIRST),
    157: _action(NTP_TIME, layout.LAST),
    158: _action(MICROSECONDS_BACK, layout.FIRST),
    159: _action(MICROSECONDS_BACK, layout.LAST),
    160: _action(START_OF_UPTIME),
    176: _number(layout.TYPE, 1),
    177: _number(layout.CODE, 1),
    178: _number(layout.TYPE, 1),
    179: _number(layout.CODE, 1),
    243: _number(layout.VLAN, 2),
    302: _action(SAMPLER),
    305: _action(INTERVAL),
    306: _action(SPACE),
    309: _action(SIZE),
    310: _action(POPULATION),
}


def _table() -> np.ndarray[tuple[int], np.dtype[np.int64]]:
    table = np.zeros(ELEMENTS, np.int64)
    for number, action in _ACTIONS.items():
        table[number] = action
    return table


ACTIONS = _table()
"""The action of each element: the kind in bits 0 to 7, the offset in the record in bits 8 to 15,
the number of its bit in the first word from bit 16 on."""
