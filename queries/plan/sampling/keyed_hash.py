"""The keyed hash by which packets are sampled, and the thresholds that it is compared with.

A packet is kept if the hash of its terms is at most the threshold T of its component::

    H = start; for each term: H = (H ^ word) * first; H = finish(H)
    finish(H): H ^= H >> 32; H *= second; H ^= H >> 29          all of it modulo 2**64
    kept: H <= T          rate = (T + 1) / 2**64

So the samples of falling thresholds are nested: whatever a lower threshold keeps, a higher one has
kept, too. A term is hashed by value, not as it is packed anywhere: an IP as its low half ^
finish((high half ^ address) * first), NULL as a constant word, any other value as its 64 bits.

All constants of the hash derive from the seed of the run, which is secret: a sender who knew it
could choose flows that are never in a sample. No function of GSQL and no sketch uses this hash, so
that their results do not depend on what is in the sample.

Kernels compute the same hash (``capture/lfta/sampling_kernels.py``).
"""

from __future__ import annotations

import hashlib
import math
from fractions import Fraction
from typing import TYPE_CHECKING

import numpy as np

from gscope.queries.expressions.types import GsqlType
from gscope.records import dataclass

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from numpy.typing import NDArray

    from gscope.queries.expressions.expressions import Value

WORD = 1 << 64
FULL_THRESHOLD = WORD - 1
"""The threshold that keeps every packet."""

LANE_PACKETS = 1 << 48
"""Number of the first packet of the second lane of an interface, that of the third is twice that,
and so on: no two packets of an interface have one number."""

NULL_WORD = 0x5DEECE66D1CE4E5B
"""The word of NULL."""

_LOW_WORD = WORD - 1
_FEWEST_BITS, _MOST_BITS = 24, 40
"""Bits that are set in a multiplier; one with very few would mix badly."""


@dataclass(frozen=True, slots=True)
class HashKey:
    """The constants of the hash, words of 64 bits.

    Attributes:
        start: the hash before the first term.
        address: what is mixed with the high half of an IP.
        packet: the hash before the number of a packet that is sampled without its contents.
        first: the first multiplier, odd.
        second: the second multiplier, odd.
    """

    start: int
    address: int
    packet: int
    first: int
    second: int

    @classmethod
    def of_seed(cls, seed: int) -> HashKey:
        """Derive the constants from the seed of a run."""
        words = _stream(seed)
        start, address, packet = (next(words) for _ in range(3))
        odd = (word | 1 for word in words)
        multipliers = (word for word in odd if _FEWEST_BITS <= word.bit_count() <= _MOST_BITS)
        return cls(start, address, packet, next(multipliers), next(multipliers))

    def of_interface(self, name: str) -> int:
        """Return the hash before the number of a packet of an interface.

        Interfaces number their packets independently, so each has its own.
        """
        digest = hashlib.blake2b(name.encode(), digest_size=8).digest()
        return mix(self.packet ^ int.from_bytes(digest, "little"), self)


def _stream(seed: int) -> Iterator[int]:
    """Yield words that a seed determines, without end."""
    number = 0
    while True:
        text = f"gscope sampling {seed} {number}"
        yield int.from_bytes(hashlib.blake2b(text.encode(), digest_size=8).digest(), "little")
        number += 1


def _step(word: int, key: HashKey) -> int:
    return word * key.first & _LOW_WORD


def _finish(word: int, key: HashKey) -> int:
    word ^= word >> 32
    word = word * key.second & _LOW_WORD
    return word ^ word >> 29


def mix(word: int, key: HashKey) -> int:
    """Return a word whose high bits every bit of ``word`` changes; a bijection."""
    return _finish(_step(word, key), key)


def hash_terms(values: Iterable[Value], types: Sequence[GsqlType], key: HashKey) -> int:
    """Return the hash of the values of terms."""
    result = key.start
    for value, type_ in zip(values, types, strict=True):
        result = _step(result ^ _word(value, type_, key), key)
    return _finish(result, key)


def hash_packet(number: int, start: int, key: HashKey) -> int:
    """Return the hash of a packet by its number alone; ``start`` is that of its interface."""
    return mix(start ^ number & _LOW_WORD, key)


def _word(value: Value, type_: GsqlType, key: HashKey) -> int:
    if value is None:
        return NULL_WORD
    assert isinstance(value, int)
    if type_ is GsqlType.IP:
        return value & _LOW_WORD ^ mix(value >> 64 ^ key.address, key)
    return value & _LOW_WORD


def _finish_words(words: NDArray[np.uint64], key: HashKey) -> NDArray[np.uint64]:
    words = words ^ words >> np.uint64(32)
    words = words * np.uint64(key.second)
    return words ^ words >> np.uint64(29)


def hash_words(terms: Sequence[NDArray[np.uint64]], key: HashKey) -> NDArray[np.uint64]:
    """Return the hash of each row of terms that are words, such as ``address_words`` returns."""
    result = np.full(len(terms[0]), key.start, np.uint64)
    for words in terms:
        result = (result ^ words) * np.uint64(key.first)
    return _finish_words(result, key)


def address_words(
    high: NDArray[np.uint64], low: NDArray[np.uint64], key: HashKey
) -> NDArray[np.uint64]:
    """Return the words of IPs, which are given as halves."""
    return low ^ _finish_words((high ^ np.uint64(key.address)) * np.uint64(key.first), key)


def threshold_of(rate: float) -> int:
    """Return the threshold of a rate above 0 and of at most 1."""
    assert 0 < rate <= 1, rate
    return max(math.floor(Fraction(rate) * WORD), 1) - 1


def rate_of(threshold: int) -> float:
    """Return the share of hashes that a threshold keeps."""
    return (threshold + 1) / WORD
