"""The thresholds with which the LFTAs of a capture begin.

A threshold is set for each LFTA, equal for all of one component (``Program.sampling``): rows of
different rates must not meet in a node. It may change while the capture runs
(``LftaEngine.set_threshold``). Samples are nested, so a threshold may *fall* at any moment: the
sample of an epoch is that of the least threshold in force during it, on all interfaces and lanes.
It may *rise* only where an epoch begins.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from gscope.queries.plan.sampling.keyed_hash import FULL_THRESHOLD, HashKey, threshold_of
from gscope.records import dataclass

if TYPE_CHECKING:
    from collections.abc import Mapping

    from gscope.capture.shedding.settings import SheddingSettings
    from gscope.queries.plan.program import Program


@dataclass(frozen=True, slots=True)
class InitialSampling:
    """The rule by which LFTAs keep packets, from the first packet on.

    Attributes:
        key: the constants of the hash.
        thresholds: for LFTAs that sample, by name, the greatest hash that is kept.
    """

    key: HashKey
    thresholds: Mapping[str, int]

    def threshold(self, lfta: str) -> int:
        """Return the threshold of an LFTA, whether or not it samples."""
        return self.thresholds.get(lfta, FULL_THRESHOLD)


def initial_sampling(program: Program, settings: SheddingSettings | None) -> InitialSampling | None:
    """Return what the LFTAs of a program begin with; None if no packet is left out."""
    sampled = [lfta.name for lfta in program.lftas if lfta.sampling is not None]
    if not sampled or settings is None or not settings.is_on:
        return None
    threshold = threshold_of(settings.rate)
    return InitialSampling(HashKey.of_seed(settings.seed), dict.fromkeys(sampled, threshold))
