"""XXH64 of words as code; ``queries/catalog/scalar/hashes.py`` describes and computes it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from gscope.queries.catalog.scalar.hashes import PRIME_1, PRIME_2, PRIME_3, PRIME_4, PRIME_5

if TYPE_CHECKING:
    from collections.abc import Sequence

    from gscope.capture.lfta.codegen.scope import Lowered, Scope

_WORD = 1 << 64


def xxh64(scope: Scope, words: Sequence[str], seed: int | str) -> str:
    """Return the name of the hash of fewer than four words; a seed is a number or a name."""
    begin = PRIME_5 + 8 * len(words)
    if isinstance(seed, int):
        state = scope.value(str(signed(seed + begin)))
    else:
        state = scope.value(f"wrap_add({seed}, {signed(begin)})")
    for word in words:
        mixed = scope.value(f"wrap_mul({word}, {signed(PRIME_2)})")
        lane = scope.value(f"wrap_mul({_rotated(mixed, 31)}, {signed(PRIME_1)})")
        state = scope.value(f"{state} ^ {lane}")
        product = scope.value(f"wrap_mul({_rotated(state, 27)}, {signed(PRIME_1)})")
        state = scope.value(f"wrap_add({product}, {signed(PRIME_4)})")
    state = scope.value(f"wrap_mul({state} ^ lshr({state}, 33), {signed(PRIME_2)})")
    state = scope.value(f"wrap_mul({state} ^ lshr({state}, 29), {signed(PRIME_3)})")
    return scope.value(f"{state} ^ lshr({state}, 32)")


def address_words(value: Lowered) -> list[str]:
    """Return the bytes of an IP in network order as words, least significant byte first."""
    return [f"bswap64({part})" for part in value.parts]


def signed(word: int) -> int:
    """Return a word as kernels hold it."""
    word %= _WORD
    return word - _WORD if word >= _WORD >> 1 else word


def _rotated(word: str, count: int) -> str:
    return f"(({word} << {count}) | lshr({word}, {64 - count}))"
