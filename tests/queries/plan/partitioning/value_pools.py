"""Values that hurt, of every type that rows are divided by."""

from __future__ import annotations

from gscope.queries.expressions.types import GsqlType

LEAST, GREATEST = -(1 << 63), (1 << 63) - 1
V4, MAPPED = 0xFFFF << 32, 0xFFFE << 32

POOLS: dict[GsqlType, tuple[int | None, ...]] = {
    GsqlType.BOOL: (True, False, None),
    GsqlType.INT: (0, 1, -1, 80, 255, -255, 1 << 31, -(1 << 31), 1 << 32, LEAST, GREATEST, None),
    GsqlType.IP: (
        *(V4, V4 | 0x0A000001, V4 | 0xFFFFFFFF, 0, 1, 0x20010DB8 << 96 | 5, (1 << 128) - 1),
        *(MAPPED | 0x0A000001, 1 << 127, None),
    ),
    GsqlType.MAC: (0, 0xFFFFFFFFFFFF, 0x020000000001, None),
    GsqlType.TIMESTAMP: (0, 1_700_000_000_123_456_789, -1, LEAST, GREATEST, None),
    GsqlType.INTERVAL: (1, -3, 0, GREATEST, None),
}
"""``V4 | x`` is an IPv4 address, ``MAPPED | x`` the IPv6 address ::ffff:x; see decision 24."""
