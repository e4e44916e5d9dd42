"""What an overloaded capture lost, from its answers and those of a replay of all its packets."""

from __future__ import annotations

import csv
from collections import Counter, defaultdict
from dataclasses import dataclass
from ipaddress import ip_address
from typing import TYPE_CHECKING

from gscope.queries.expressions.types import GsqlType
from gscope.queries.plan.sampling.keyed_hash import HashKey, hash_terms

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

    from benchmarks.sampling.overload import Observed

SLOTS_PER_S = 100
Key = tuple[str, ...]
Answer = dict[int, dict[Key, Key]]
_KEYS = 4
_KINDS = (GsqlType.IP, GsqlType.IP, GsqlType.INT, GsqlType.INT)


@dataclass(frozen=True, slots=True)
class Second:
    """One epoch of a run.

    Attributes:
        mode: that of ``--shedding``.
        second: when it began, after the onset of the load.
        packets: packets that arrived.
        dropped: packets that the kernel dropped.
        rate: the least rate that the daemon reported.
        groups: groups of the full answer.
        exact: groups of the run's answer that the full answer has with the same values.
        wrong: groups of the run's answer that it has not.
        below: share of the hashes that the least threshold keeps at which all answered groups are.
        is_threshold: whether the answered groups are those of one threshold.
    """

    mode: str
    second: int
    packets: int
    dropped: int
    rate: float
    groups: int
    exact: int
    wrong: int
    below: float
    is_threshold: bool


@dataclass(frozen=True, slots=True)
class Verdict:
    """What a run lost.

    Attributes:
        seconds: its epochs.
        dropped: packets that the kernel dropped.
        dropped_later: those of them that came later than a second after the onset.
        first_drop_s: when the first one was dropped, after the onset; None for none.
        last_drop_s: when the last one was dropped.
        text: the groups before, in and after the seconds with drops.
    """

    seconds: list[Second]
    dropped: int
    dropped_later: int
    first_drop_s: float | None
    last_drop_s: float | None
    text: str


def compared(mode: str, load: int, observed: Observed) -> Verdict:
    """Compare the answers of a run with the full ones.

    Args:
        mode: that of ``--shedding``.
        load: packets a second of the overload.
        observed: what the run left.
    """
    live, full, began_s = observed.live, observed.full, observed.began_s
    arrived, counted = _slots(full), _slots(live)
    first, last = (int(began_s[n] * SLOTS_PER_S) for n in (0, 3))
    lost = {slot: arrived[slot] - counted[slot] for slot in range(first, last)}
    loaded = range(int(began_s[1] * SLOTS_PER_S), last)
    onset = next(slot for slot in loaded if arrived[slot] > load / SLOTS_PER_S / 2)
    with_drops = [slot for slot, packets in lost.items() if packets]
    answers, expected = _answer(live), _answer(full)
    key = HashKey.of_seed(observed.seed)
    seconds = []
    for second in range(first // SLOTS_PER_S + 1, last // SLOTS_PER_S):
        slots = range(second * SLOTS_PER_S, (second + 1) * SLOTS_PER_S)
        rates = [look.rate for look in observed.looks if second <= look.at_s < second + 2]
        seconds.append(
            Second(
                mode,
                second - onset // SLOTS_PER_S,
                sum(arrived[slot] for slot in slots),
                sum(lost.get(slot, 0) for slot in slots),
                min(rates, default=1.0),
                *_groups(answers[second], expected[second], key),
            )
        )
    return Verdict(
        seconds,
        sum(lost.values()),
        sum(packets for slot, packets in lost.items() if slot >= onset + SLOTS_PER_S),
        (with_drops[0] - onset) / SLOTS_PER_S if with_drops else None,
        (with_drops[-1] - onset) / SLOTS_PER_S if with_drops else None,
        _described(seconds),
    )


def _groups(
    found: dict[Key, Key], full: dict[Key, Key], key: HashKey
) -> tuple[int, int, int, float, bool]:
    """Return groups of the full answer, exact and wrong ones, and the threshold that they show."""
    exact = sum(full.get(group) == values for group, values in found.items())
    kept = [_hash(group, key) for group in found]
    left = [_hash(group, key) for group in full.keys() - found.keys()]
    highest, lowest = max(kept, default=0), min(left, default=1 << 64)
    share = (highest + 1) / (1 << 64) if left else 1.0
    return len(full), exact, len(found) - exact, share, highest < lowest


def _hash(group: Key, key: HashKey) -> int:
    source, target, *ports = group
    # Queries hold IPv4 addresses as the IPv6 addresses that stand for them.
    addresses = (int(ip_address(f"::ffff:{each}")) for each in (source, target))
    values = (*addresses, *map(int, ports))
    return hash_terms(values, _KINDS, key)


def _described(seconds: Sequence[Second]) -> str:
    """Return the groups of the epochs with and without drops."""
    parts = []
    lossy = [row for row in seconds if row.dropped]
    last = max((row.second for row in lossy), default=-1)
    for name, rows in (
        ("with drops", lossy),
        ("without, until the last drop", [r for r in seconds if not r.dropped and r.second < last]),
        ("after the last drop", [r for r in seconds if not r.dropped and r.second > last]),
    ):
        groups, exact, wrong = (
            sum(getattr(r, n) for r in rows) for n in ("groups", "exact", "wrong")
        )
        samples = sum(row.is_threshold for row in rows)
        parts.append(
            f"{len(rows)} epochs {name}: {exact:,} of {groups:,} groups exact, {wrong:,} wrong,"
            f" {samples} epochs are the sample of one threshold"
        )
    return "; ".join(parts)


def _slots(folder: Path) -> Counter[int]:
    counts: Counter[int] = Counter()
    for slot, packets in _lines(folder / "arrivals.csv"):
        counts[int(slot)] += int(packets)
    return counts


def _answer(folder: Path) -> Answer:
    """Return the values of each group of each epoch."""
    answer: Answer = defaultdict(dict)
    for epoch, *row in _lines(folder / "scan.csv"):
        answer[int(epoch)][tuple(row[:_KEYS])] = tuple(row[_KEYS:])
    return answer


def _lines(path: Path) -> Iterator[list[str]]:
    with path.open(newline="") as file:
        lines = csv.reader(file)
        next(lines)
        yield from lines
