"""Groups in a sample whose thresholds fall and rise.

Those answered are the ones that a loop knows.
"""

from __future__ import annotations

import math
from itertools import pairwise
from random import Random
from typing import TYPE_CHECKING

import pytest
from tests.engine.running.fold_reference import Reference, compiled, epoch_rows
from tests.engine.running.known_lives import known_rows
from tests.engine.running.test_fold import answers_of, shown

from gscope.engine.running.fold import Epochs, fold
from gscope.engine.watermarks.trim import GroupTrim, ThresholdRange
from gscope.queries.expressions.expressions import Column
from gscope.queries.expressions.types import GsqlType
from gscope.queries.plan.idle_groups import closing_without_history
from gscope.queries.plan.sampling.keyed_hash import (
    FULL_THRESHOLD,
    HashKey,
    hash_terms,
    threshold_of,
)

if TYPE_CHECKING:
    from collections.abc import Callable

    import pyarrow as pa
    from tests.engine.running.fold_reference import Row, Tuple

KEY = HashKey.of_seed(3)
IP = Column("ip", GsqlType.IP, is_nullable=False)
HEAD = (
    "SELECT tb, ip, count(*), or_aggr(x), running_count(*), sum_of_dups(n) FROM src GROUP BY tb, ip"
)


def _no_tuples(row: Row) -> bool:
    return bool(row[2] == 0)


def _flagged(row: Row) -> bool:
    return _no_tuples(row) or bool(row[3] == 3)


CASES: dict[str, Callable[[Row], bool]] = {
    "CLOSING_WHEN count(*) = 0": _no_tuples,
    "CLOSING_WHEN or_aggr(x) = 3 OR count(*) = 0": _flagged,
    "CLOSING_WHEN running_count(*) > 3 OR count(*) = 0": _no_tuples,
}
"""For each clause, when it is clear without a group's history that the group closes."""

EPOCHS = 25


def thresholds(random: Random) -> list[int]:
    """The threshold of each epoch, which stays for some."""
    made: list[int] = []
    while len(made) < EPOCHS:
        made += [threshold_of(random.choice((0.2, 0.5, 0.8, 1.0)))] * random.randint(1, 5)
    return [*made[: EPOCHS - 5], *[FULL_THRESHOLD] * 5]


@pytest.mark.parametrize("clause", CASES)
@pytest.mark.parametrize("seed", range(25))
def test_a_group_is_answered_if_everything_is_known_of_its_life(clause: str, seed: int) -> None:
    random = Random(f"{seed} {clause}")
    query = compiled(f"{HEAD} {clause}")
    limits = thresholds(random)
    by_epoch: list[list[Tuple]] = [
        [
            {"tb": epoch, "ip": ip, "n": random.randrange(4), "x": random.randrange(4)}
            | {"f": None, "s": None, "i": b"a"}
            for ip in range(10)
            for _ in range(random.choice((0, 0, 1, 2)))
        ]
        for epoch in range(EPOCHS)
    ]
    reference = Reference(query)
    full: list[Row] = []
    for epoch, tuples in enumerate(by_epoch):
        full += reference.end_epoch(epoch, tuples, is_last=epoch == EPOCHS - 1)
    hashed = {ip: hash_terms([ip], [GsqlType.IP], KEY) for ip in range(10)}
    want: list[Row] = []
    for ip in range(10):

        def is_hidden(epoch: int, hash_: int = hashed[ip]) -> bool:
            return epoch >= 0 and hash_ > limits[epoch]

        rows = {row[0]: row for row in full if row[1] == ip}
        want += known_rows(rows, range(-1, EPOCHS), is_hidden, CASES[clause])
    tables: list[pa.Table] = []
    state: pa.Table | None = None
    cuts = sorted(random.sample(range(1, EPOCHS), random.randrange(6)))
    left_out = 0
    for low, high in pairwise([-math.inf, *cuts, math.inf]):
        released = [
            each
            for epoch, tuples in enumerate(by_epoch)
            for each in tuples
            if low <= epoch < high and hashed[each["ip"]] <= limits[epoch]
        ]
        ranges = [ThresholdRange(-math.inf, 0, FULL_THRESHOLD, FULL_THRESHOLD)]
        ranges += [ThresholdRange(n, n + 1, limit, limit) for n, limit in enumerate(limits)]
        ranges += [ThresholdRange(EPOCHS, math.inf, FULL_THRESHOLD, FULL_THRESHOLD)]
        trim = GroupTrim(tuple(ranges), (IP,), KEY, closing_without_history(query.node))
        rows = epoch_rows(query.node, released)
        epochs = Epochs(low, high, EPOCHS - 1)
        state, count = fold(query.node, rows, state, epochs, tables.append, None, trim)
        left_out += count
    assert shown(answers_of(query, tables)) == shown(want)
    assert len(want) < len(full)
    assert left_out


def test_running_aggregates_alone_leave_doubt_forever() -> None:
    node = compiled(f"{HEAD} CLOSING_WHEN running_count(*) > 3").node
    assert closing_without_history(node) is None
    node = compiled(f"{HEAD} CLOSING_WHEN running_count(*) > 3 AND count(*) = 0").node
    assert closing_without_history(node) is None
    node = compiled(f"{HEAD} CLOSING_WHEN or_aggr(x) = 3").node
    assert closing_without_history(node) is None
