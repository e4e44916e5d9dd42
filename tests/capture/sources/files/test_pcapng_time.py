from __future__ import annotations

from fractions import Fraction
from math import floor

from hypothesis import example, given, settings
from hypothesis import strategies as st

from gscope.capture.sources.files.pcapng_time import scaled_time, time_scale
from gscope.queries.int64 import MAX_TIME_NS


@settings(deadline=None)
@given(
    st.integers(0, 2**64 - 1),
    st.one_of(st.integers(0, 27), st.integers(0x80, 0xFF)),
    st.one_of(st.just(0), st.integers(-(2**33), 2**33), st.integers(-(2**63), 2**63 - 1)),
)
@example(2**64 - 1, 0x80, 0)
@example(2**63, 0x80, 0)
@example(2**64 - 1, 0xFF, 0)
@example(2**64 - 1, 27, 0)
@example(2**64 - 1, 9, 0)
@example(MAX_TIME_NS, 9, 1)
def test_equals_exact_arithmetic_held_at_the_limits(
    count: int, resolution: int, offset_s: int
) -> None:
    base = 2 if resolution & 0x80 else 10
    whole = floor(Fraction(count * 10**9, base ** (resolution & 0x7F)))
    offset_ns = max(-MAX_TIME_NS, min(offset_s * 10**9, MAX_TIME_NS))
    fits = whole <= MAX_TIME_NS and whole + offset_ns <= MAX_TIME_NS
    expected = whole + offset_ns if fits else MAX_TIME_NS
    scale = time_scale(resolution, offset_s)
    assert scaled_time(count >> 32, count & 0xFFFFFFFF, *scale) == (expected, fits)


def test_units_below_a_billionth_of_a_nanosecond_give_the_offset() -> None:
    assert scaled_time(2**32 - 1, 2**32 - 1, *time_scale(99, 3)) == (3_000_000_000, True)
