"""XXH64 of the bytes of a value, with seed 42 as Spark's ``xxhash64`` begins.

The algorithm is Yann Collet's (github.com/Cyan4973/xxHash). Numbers are eight bytes, least
significant first; an IP is its sixteen bytes in network order. Queries cannot call it; it serves
aggregates that sketch.
"""

from __future__ import annotations

import math
import struct

from gscope.queries.catalog.scalar.entry import FunctionEntry, Parameter
from gscope.queries.catalog.scalar.integers import wrap
from gscope.queries.expressions.types import GsqlType

PRIME_1 = 0x9E3779B185EBCA87
PRIME_2 = 0xC2B2AE3D27D4EB4F
PRIME_3 = 0x165667B19E3779F9
PRIME_4 = 0x85EBCA77C2B2AE63
PRIME_5 = 0x27D4EB2F165667C5
SEED = 42

_MASK = (1 << 64) - 1
_STRIPE = 32


def xxh64(data: bytes, seed: int = SEED) -> int:
    """Return the hash of ``data`` as an unsigned number; so is the seed."""
    at = 0
    if len(data) >= _STRIPE:
        lanes = [seed + PRIME_1 + PRIME_2, seed + PRIME_2, seed, seed - PRIME_1]
        while at + _STRIPE <= len(data):
            words = struct.unpack_from("<4Q", data, at)
            lanes = [_round(lane, word) for lane, word in zip(lanes, words, strict=True)]
            at += _STRIPE
        rotations = zip(lanes, (1, 7, 12, 18), strict=True)
        state = sum(_rotated(lane & _MASK, count) for lane, count in rotations) & _MASK
        for lane in lanes:
            state = ((state ^ _round(0, lane)) * PRIME_1 + PRIME_4) & _MASK
    else:
        state = seed + PRIME_5
    state = (state + len(data)) & _MASK
    while at + 8 <= len(data):
        (word,) = struct.unpack_from("<Q", data, at)
        state = (_rotated(state ^ _round(0, word), 27) * PRIME_1 + PRIME_4) & _MASK
        at += 8
    if at + 4 <= len(data):
        (word,) = struct.unpack_from("<I", data, at)
        state = (_rotated(state ^ (word * PRIME_1 & _MASK), 23) * PRIME_2 + PRIME_3) & _MASK
        at += 4
    for byte in data[at:]:
        state = _rotated(state ^ (byte * PRIME_5 & _MASK), 11) * PRIME_1 & _MASK
    state = (state ^ state >> 33) * PRIME_2 & _MASK
    state = (state ^ state >> 29) * PRIME_3 & _MASK
    return state ^ state >> 32


def _round(lane: int, word: int) -> int:
    return _rotated((lane + word * PRIME_2) & _MASK, 31) * PRIME_1 & _MASK


def _rotated(word: int, count: int) -> int:
    return (word << count | word >> (64 - count)) & _MASK


def _hash_int(value: int) -> int:
    return wrap(xxh64((value & _MASK).to_bytes(8, "little")))


def _hash_float(value: float) -> int:
    """Return one hash for both zeros, and one for all NaNs."""
    one = math.nan if math.isnan(value) else value + 0.0
    return wrap(xxh64(struct.pack("<d", one)))


HASH_OF: dict[GsqlType, str] = {
    GsqlType.INT: "hash_int",
    GsqlType.MAC: "hash_mac",
    GsqlType.TIMESTAMP: "hash_timestamp",
    GsqlType.INTERVAL: "hash_interval",
    GsqlType.IP: "hash_ip",
    GsqlType.FLOAT: "hash_float",
    GsqlType.STRING: "hash_string",
}
"""The function for each type."""

_FUNCTIONS = (
    *(
        FunctionEntry(HASH_OF[kind], (Parameter(kind),), GsqlType.INT, _hash_int, cost=10)
        for kind in (GsqlType.INT, GsqlType.MAC, GsqlType.TIMESTAMP, GsqlType.INTERVAL)
    ),
    FunctionEntry(
        "hash_ip",
        (Parameter(GsqlType.IP),),
        GsqlType.INT,
        lambda address: wrap(xxh64(address.to_bytes(16))),
        cost=20,
    ),
    FunctionEntry(
        "hash_float", (Parameter(GsqlType.FLOAT),), GsqlType.INT, _hash_float, is_lfta_safe=False
    ),
    FunctionEntry(
        "hash_string",
        (Parameter(GsqlType.STRING),),
        GsqlType.INT,
        lambda text: wrap(xxh64(text)),
        cost=50,
        is_lfta_safe=False,
    ),
)
HASHES = {entry.name: entry for entry in _FUNCTIONS}
