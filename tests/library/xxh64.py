"""XXH64 of sixteen bytes with seed 42.

It is from the specification of xxHash (github.com/Cyan4973/xxHash).
"""

from __future__ import annotations

_PRIMES = (
    11400714785074694791,
    14029467366897019727,
    1609587929392839161,
    9650029242287828579,
    2870177450012600261,
)
_WRAP = 2**64


def signed_xxh64(data: bytes) -> int:
    """Return the hash of 16 bytes as a signed number of 64 bits."""
    assert len(data) == 16
    first, second, third, fourth, fifth = _PRIMES
    acc = (42 + fifth + 16) % _WRAP
    for lane in (data[:8], data[8:]):
        mixed = _rotl(int.from_bytes(lane, "little") * second % _WRAP, 31) * first % _WRAP
        acc = (_rotl(acc ^ mixed, 27) * first + fourth) % _WRAP
    acc = (acc ^ (acc >> 33)) * second % _WRAP
    acc = (acc ^ (acc >> 29)) * third % _WRAP
    acc ^= acc >> 32
    return acc - _WRAP if acc >= 2**63 else acc


def _rotl(word: int, count: int) -> int:
    return (word << count | word >> (64 - count)) % _WRAP
