"""The kernels of sampling: the keyed hash, and the fate of each packet of a batch.

``queries/plan/sampling/keyed_hash.py`` describes the hash, and computes the same one. The fate of a
packet is a byte: a rule that rejects a packet which its LFTA wants adds ``WANTED``, an LFTA that
takes one adds ``TAKEN``. Both do so again, without effect, where a batch is processed again because
room ran out. A packet that is wanted and not taken by any LFTA is shed.
"""

from __future__ import annotations

from gscope.capture.kernels.jit import kernel_part
from gscope.capture.kernels.language.intrinsics import ld64, lshr, st64, wrap_mul
from gscope.capture.lfta.state import PACKETS_PER_BATCH

WANTED = 1
TAKEN = 2

FATES_BYTES = PACKETS_PER_BATCH
"""Bytes of the fates of a batch."""

_LOW_BITS = 0x0101010101010101

assert FATES_BYTES % 8 == 0, "fates are read as words"
assert FATES_BYTES // 8 < 256, "count_shed adds up words in bytes"


@kernel_part
def finished(word: int, second: int) -> int:
    """Return the hash after its last term, or that of a half of an IP."""
    word ^= lshr(word, 32)
    word = wrap_mul(word, second)
    return word ^ lshr(word, 29)


@kernel_part
def begin_fates(fates: int) -> None:
    """Clear the fates before a batch."""
    for n in range(FATES_BYTES // 8):
        st64(fates + 8 * n, 0)


@kernel_part
def count_shed(fates: int) -> int:
    """Return how many packets of the batch were wanted and not taken."""
    shed = 0
    for n in range(FATES_BYTES // 8):
        word = ld64(fates + 8 * n)
        # The lowest bit of a byte says that the packet was wanted, the next that it was taken.
        shed += word & (lshr(word, 1) ^ _LOW_BITS) & _LOW_BITS
    total = 0
    for n in range(8):
        total += lshr(shed, 8 * n) & 255
    return total
