"""What more hosts than were measured would cost the aggregating one: counted rows, fitted costs.

The rows that reach the aggregating host are counted in the traffic, divided among that many hosts.
The load is a/n for the packets that it captures itself, b for each row of an LFTA, and c for each
row of an answer; a, b and c are fitted to the measured loads, so this extrapolates them, and cannot
show what only many hosts would.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from benchmarks.partitioning.plans import ANSWERS, MERGED
from benchmarks.partitioning.traffic import INTERFACES_PER_HOST, parts, rows_of

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from benchmarks.partitioning.plans import Curve, Work
    from benchmarks.sampling.connections import Packets

KEYS = {"suspicious": "flow", "subnet_stats": "subnet", "flow_pairs": "pair"}
"""The keys of the LFTA of each result; that of ``jitter`` selects packets."""


def lfta_rows(packets: Packets, work: Work, hosts: int) -> tuple[int, int]:
    """Return the rows of LFTAs that hosts send, and of them those of other hosts than the first.

    Evictions are not included.
    """
    if work.sends == ANSWERS:
        return 0, 0
    part = parts(packets, work.by, hosts * INTERFACES_PER_HOST)
    host = part // INTERFACES_PER_HOST
    others = np.flatnonzero(host > 0)
    total, remote = 0, 0
    for result in work.results:
        if result not in KEYS:
            total, remote = total + len(packets.at), remote + len(others)
            continue
        of = host if work.sends == MERGED else part
        received = rows_of(packets.taken(others), KEYS[result], of[others]) if len(others) else 0
        # Relays run on other hosts; the rows of the first one are read as its LFTAs make them.
        own = np.flatnonzero(host == 0)
        total += received + rows_of(packets.taken(own), KEYS[result], part[own])
        remote += received
    return total, remote


def answer_rows(curve: Curve, rows: Mapping[str, int], hosts: int) -> float:
    """Return the rows of answers that other hosts send, if each has its share of them."""
    sent = (rows[result] for work in curve.work if work.sends == ANSWERS for result in work.results)
    return sum(sent) * (1 - 1 / hosts)


def fitted(features: Sequence[Sequence[float]], values: Sequence[float]) -> list[float]:
    """Return least-squares weights of the features that are not negative."""
    matrix, target = np.array(features, float), np.array(values, float)
    scale = np.maximum(np.abs(matrix).max(axis=0), 1e-12)
    kept = list(range(matrix.shape[1]))
    while kept:
        found = np.linalg.lstsq(matrix[:, kept] / scale[kept], target, rcond=None)[0]
        if (found >= 0).all():
            weights = np.zeros(matrix.shape[1])
            weights[kept] = found / scale[kept]
            return [float(weight) for weight in weights]
        kept.pop(int(found.argmin()))
    return [0.0] * matrix.shape[1]
