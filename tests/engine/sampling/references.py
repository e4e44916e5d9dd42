"""The samplers of the library, written from the rules of their publications as plain loops.

Nothing here is shared with the operator: tuples are Python values, groups are dictionaries.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, field
from typing import Any

Key = tuple[Any, ...]
MASK = (1 << 64) - 1


@dataclass
class ThresholdSampler:
    """Subset-sum sampling of one supergroup.

    It is by Duffield, Lund and Thorup; dynamic by Johnson et al.
    """

    size: int
    z: float = 200.0
    gamma: float = 2.0
    kept: int = 0

    def next_window(self) -> None:
        if self.kept < self.size:
            self.z = self.z * self.kept / self.size
        self.z = max(self.z, 1.0)

    def window(self, tuples: list[tuple[Key, float]]) -> dict[Key, float]:
        """The estimates of the groups that are kept of a window."""
        groups: dict[Key, float] = {}
        small = 0.0
        for key, weight in tuples:
            if weight <= self.z:
                small += weight
                if small < self.z:
                    continue
                small -= self.z
            groups[key] = groups.get(key, 0) + weight
            if len(groups) > self.gamma * self.size:
                raised = self.gamma * self.z
                groups = thinned(groups, self.z, raised)
                self.z, small = raised, 0.0
        self.kept = len(groups)
        if self.kept >= self.size:
            raised = self.z * self.kept / self.size
            if self.kept > self.size:
                groups = thinned(groups, self.z, raised)
            self.z = raised
        return {key: max(weight, self.z) for key, weight in groups.items()}


def thinned(groups: dict[Key, float], z: float, raised: float) -> dict[Key, float]:
    """The groups that survive a threshold that rises from ``z``."""
    kept, small = {}, 0.0
    for key, weight in groups.items():
        stands_for = max(weight, z)
        if stands_for <= raised:
            small += stands_for
            if small < raised:
                continue
            small -= raised
        kept[key] = weight
    return kept


def lossy_counts(keys: list[Key], width: int) -> dict[Key, tuple[int, int]]:
    """Manku and Motwani, with the condition of the publication: counts and first buckets."""
    held: dict[Key, tuple[int, int]] = {}
    for number, key in enumerate(keys):
        bucket = number // width + 1
        count, first = held.get(key, (0, bucket))
        held[key] = (count + 1, first)
        if (number + 1) % width == 0:
            after = bucket + 1
            held = {k: (c, b) for k, (c, b) in held.items() if c >= after - b}
    return held


def least_values(values: list[int], count: int) -> list[int]:
    """The ``count`` least different values."""
    return sorted(set(values))[:count]


def splitmix(key: int, place: int) -> int:
    """The output of SplitMix64 number ``place`` for a seed."""
    word = (key + (place + 1) * 0x9E3779B97F4A7C15) & MASK
    word = ((word ^ (word >> 30)) * 0xBF58476D1CE4E5B9) & MASK
    word = ((word ^ (word >> 27)) * 0x94D049BB133111EB) & MASK
    return word ^ (word >> 31)


def seed_of(prefix: str, values: list[Any]) -> int:
    """The seed of a supergroup's random numbers."""
    digest = hashlib.blake2b(f"{prefix}{values!r}".encode(), digest_size=8)
    return int.from_bytes(digest.digest(), "little")


@dataclass
class FlowSampler:
    """Threshold sampling of whole flows: only a flow that has ended may be dropped in between."""

    size: int
    delay: int
    z: float = 200.0
    marks: dict[Key, float] = field(default_factory=dict)
    ended_with: int = 0

    def window(self, tuples: list[tuple[Key, int, float, bool]]) -> dict[Key, float]:
        """The estimates of the flows kept, given key, second, weight and whether it ends."""
        groups: dict[Key, list[Any]] = {}
        clock = 0
        for key, second, weight, ends in tuples:
            one = groups.setdefault(key, [0.0, False, 0])
            one[0] += weight
            one[1] = one[1] or ends
            one[2] = max(one[2], second)
            if second != clock:
                clock = second
                if len(groups) > 2 * self.size:
                    self.z *= 2
                    self._thin(
                        groups, [k for k, g in groups.items() if g[1] or clock - g[2] >= self.delay]
                    )
        self.ended_with = len(groups)
        if len(groups) >= self.size:
            self.z = self.z * len(groups) / self.size
        self._thin(groups, list(groups))
        return {key: max(one[0], self.z) for key, one in groups.items()}

    def _thin(self, groups: dict[Key, list[Any]], ended: list[Key]) -> None:
        small = 0.0
        for key in ended:
            stands_for = max(groups[key][0], self.marks.get(key, 0.0))
            if stands_for > self.z:
                continue
            small += stands_for
            if small >= self.z:
                small -= self.z
                self.marks[key] = self.z
            else:
                del groups[key]
                self.marks.pop(key, None)
