"""Whether a capture samples its packets, and at which rate."""

from __future__ import annotations

from enum import StrEnum

from gscope.errors import UsageError
from gscope.records import dataclass

SEED_BYTES = 8


DEFAULT_MIN_RATE = 0.01
"""The least rate of AUTO, unless it is set."""


class SheddingMode(StrEnum):
    """When packets are left out on purpose.

    OFF processes every packet. FIXED samples at one rate from beginning to end. AUTO keeps every
    packet until the capture is overloaded, and then as many as it can process.
    """

    OFF = "off"
    FIXED = "fixed"
    AUTO = "auto"


@dataclass(frozen=True, slots=True)
class SheddingSettings:
    """How a capture samples.

    The program says what each LFTA keeps; these settings say how much, and which. They may change
    while the program stays the same; equal programs and settings give equal answers.

    Attributes:
        mode: when packets are left out.
        rate: share of groups, or of packets, that is kept, above 0 and at most 1; with AUTO 1, with
            which it begins.
        min_rate: the least rate of AUTO.
        seed: seed of the hash that chooses them. It is secret: a sender who knows it can choose
            flows that are never in the sample.

    Raises:
        UsageError: the rate or the seed is invalid.
    """

    mode: SheddingMode = SheddingMode.OFF
    rate: float = 1.0
    seed: int = 0
    min_rate: float = DEFAULT_MIN_RATE

    def __post_init__(self) -> None:
        if not 0 < self.rate <= 1:
            message = f"invalid rate: expected above 0 and at most 1, got {self.rate!r}"
            raise UsageError(message)
        if self.rate < 1 and self.mode is not SheddingMode.FIXED:
            message = f"invalid rate {self.rate!r}: only the mode fixed has a rate below 1"
            raise UsageError(message)
        if not 0 < self.min_rate <= 1:
            message = f"invalid min_rate: expected above 0 and at most 1, got {self.min_rate!r}"
            raise UsageError(message)
        if not 0 <= self.seed < 1 << 8 * SEED_BYTES:
            message = f"invalid seed of the sample: expected a number of {SEED_BYTES} bytes"
            raise UsageError(message)

    @property
    def is_on(self) -> bool:
        """Whether LFTAs sample."""
        return self.mode is not SheddingMode.OFF
