"""Thresholds that fall and rise at random packets.

Each answer is the full one, filtered by one hash for each epoch. The full answer comes from LFTAs
that keep every packet. The hash of its rows is computed in plain Python from their text, the
threshold of an epoch by a loop over the packets' schedule.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from typing import TYPE_CHECKING

import pytest
from tests.differential.moving import PLAIN, moved
from tests.support.long_form import cases

if TYPE_CHECKING:
    from collections.abc import Mapping

    from tests.golden.driver import Variation
    from tests.support.shared_spark import SharedSpark

QUERIES = """
DEFINE { query_name flows; }
SELECT tb, srcIP, destIP, srcPort, destPort, count(*), sum(len), max(len), min(time_ns)
FROM TCP GROUP BY time/5 as tb, srcIP, destIP, srcPort, destPort;

DEFINE { query_name hosts; }
SELECT tb, srcIP, count(*), or_aggr(tos) FROM IP GROUP BY time/20 as tb, srcIP HAVING count(*) > 2;

DEFINE { query_name pairs; }
SELECT tb, srcIP, destIP, max(len) as m, count(*) as c FROM UDP GROUP BY time/7 as tb, srcIP, destIP;
DEFINE { query_name largest; }
SELECT tb, srcIP, max(m), min(c) FROM pairs GROUP BY tb, srcIP;

DEFINE { query_name answered; }
SELECT S.time/5 as tb, S.srcIP, S.destIP, S.srcPort, S.time_ns, A.time_ns
FROM TCP S LEFT_OUTER_JOIN TCP A
WHERE S.time/5 = A.time/5 and S.srcIP = A.destIP and S.destIP = A.srcIP and S.srcPort = A.destPort;

DEFINE { query_name later; }
SELECT S.time/5 as tb, S.srcIP, S.time_ns, A.time_ns FROM UDP S LEFT_OUTER_JOIN TCP A
WHERE S.time/5 = A.time/5 + 1 and S.srcIP = A.srcIP;
"""  # noqa: E501
KEYS = {"srcIP": 1, "destIP": 2, "srcPort": 3, "destPort": 4}
"""Where packet fields are in the rows of all queries."""

SECONDS: Mapping[str, tuple[tuple[int, int], ...]] = {
    "flows": ((5, 0),),
    "hosts": ((20, 0),),
    "largest": ((7, 0),),
    "answered": ((5, 0), (5, 0)),
    "later": ((5, 0), (5, 1)),
}
"""For each side the length of an epoch and by how many the side is behind."""


def check(seed: int, shared: SharedSpark, variation: Variation, packets: int) -> Counter[str]:
    run = moved(QUERIES, seed, shared, variation, packets)
    seen: Counter[str] = Counter(trimmed=run.trimmed)
    for query, sides in SECONDS.items():
        # What reads a query is cut like that query.
        read = "pairs" if query == "largest" else query
        lftas = [run.lfta(read, side) for side in range(len(sides))]
        kept = []
        for row in run.full[query]:
            epoch = int(row[0])
            limit = min(
                run.threshold(lfta, (epoch - behind) * length, (epoch - behind + 1) * length)
                for lfta, (length, behind) in zip(lftas, sides, strict=True)
            )
            texts = {name: row[place] for name, place in KEYS.items() if place < len(row)}
            if run.hashed(lftas[0], texts) <= limit:
                kept.append(row)
        assert Counter(run.answers[query]) == Counter(kept), query
        seen[f"{query} kept"] = len(kept)
        seen[f"{query} left out"] = len(run.full[query]) - len(kept)
    return seen


@pytest.mark.spark
@pytest.mark.slow
@pytest.mark.parametrize("seed", cases((1,), range(2, 12)))
def test_an_answer_is_the_full_one_filtered_by_the_threshold_of_each_epoch(
    seed: int, shared_spark: SharedSpark
) -> None:
    variation = replace(PLAIN, seed=seed, crashes=seed % 3, table_slots=4 if seed % 2 else None)
    seen = check(seed, shared_spark, variation, 900)
    assert seen["trimmed"]
    for query in SECONDS:
        assert seen[f"{query} left out"], seen


@pytest.mark.spark
@pytest.mark.slow
@pytest.mark.parametrize("seed", cases((), (21, 22)))
def test_compiled_it_is_as_well(seed: int, shared_spark: SharedSpark) -> None:
    variation = replace(PLAIN, seed=seed, is_interpreted=False, crashes=1)
    assert check(seed, shared_spark, variation, 2000)["trimmed"]
