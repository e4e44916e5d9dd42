"""Thresholds that move below groups that live across epochs.

A plain loop follows each group of the full answer from epoch to epoch: whether its state is known,
and so whether its rows have to be in the answer. It knows of a group what packets below the
thresholds show: nothing in an epoch whose threshold is below its hash; whether a life begins only
if the epoch before showed that none went on.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from dataclasses import replace
from typing import TYPE_CHECKING

import pytest
from tests.differential.moving import PLAIN, moved
from tests.engine.running.known_lives import known_rows
from tests.support.long_form import cases

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.differential.moving import Moved
    from tests.golden.driver import Row, Variation
    from tests.support.shared_spark import SharedSpark

QUERIES = """
DEFINE { query_name i; }
SELECT tb, srcIP, srcPort, count(*) as c, max(len) as m, running_sum(len) as s,
running_count(*) as n
FROM TCP GROUP BY time/3 as tb, srcIP, srcPort CLOSING_WHEN count(*) = 0 OR max(len) > 58;

DEFINE { query_name mixed; }
SELECT tb, srcIP, srcPort, count(*), running_count(*), running_sum(len)
FROM UDP GROUP BY time/3 as tb, srcIP, srcPort CLOSING_WHEN count(*) = 0 OR running_count(*) > 2;

DEFINE { query_name y; }
SELECT tb, srcIP, srcPort, count(*) as c FROM UDP GROUP BY time/3 as tb, srcIP, srcPort;
DEFINE { query_name never; }
SELECT tb, srcIP, srcPort, sum(c), running_sum(c), running_count(*)
FROM y GROUP BY tb, srcIP, srcPort CLOSING_WHEN running_sum(c) > 4;
DEFINE { query_name chosen; } SELECT tb, srcIP, n FROM i WHERE n > 1;
DEFINE { query_name idle; } SELECT tb, srcIP, srcPort, c, m, s, n FROM i;
"""
EPOCH_S = 3


def _no_tuples(row: Row) -> bool:
    return row[3] == "0"


def _idle_closes(row: Row) -> bool:
    return _no_tuples(row) or (row[4] != "" and int(row[4]) > 58)


CLOSES: dict[str, Callable[[Row], bool]] = {"idle": _idle_closes, "mixed": _no_tuples}
"""When it is known that a group closes, whatever its history is."""


def _kept(run: Moved, query: str, lfta: str) -> list[Row]:
    """The rows that have to be in the answer, of a query whose groups close when they are idle."""
    closes_anyway = CLOSES[query]
    by_group: defaultdict[Row, dict[int, Row]] = defaultdict(dict)
    for each in run.full[query]:
        by_group[each[1:3]][int(each[0])] = each
    epochs = [int(each[0]) for each in run.full[query]]
    kept: list[Row] = []
    for (source, port), rows in by_group.items():
        hashed = run.hashed(lfta, {"srcIP": source, "srcPort": port})

        def is_hidden(epoch: int, hashed: int = hashed) -> bool:
            return hashed > run.threshold(lfta, epoch * EPOCH_S, (epoch + 1) * EPOCH_S)

        span = range(min(epochs) - 1, max(epochs) + 1)
        kept += known_rows(rows, span, is_hidden, closes_anyway)
    return kept


def check(seed: int, shared: SharedSpark, variation: Variation, packets: int) -> Counter[str]:
    run = moved(QUERIES, seed, shared, variation, packets)
    seen: Counter[str] = Counter(trimmed=run.trimmed)
    lftas = {"idle": "i", "mixed": "mixed"}
    for query, lfta in lftas.items():
        kept = _kept(run, query, lfta)
        assert Counter(run.answers[query]) == Counter(kept), query
        seen[f"{query} left out"] = len(run.full[query]) - len(kept)
    chosen = Counter((row[0], row[1], row[6]) for row in run.answers["idle"] if int(row[6]) > 1)
    assert Counter(run.answers["chosen"]) == chosen
    kept = []
    for row in run.full["never"]:
        limit = run.threshold("y", 0, (int(row[0]) + 1) * EPOCH_S)
        if run.hashed("y", {"srcIP": row[1], "srcPort": row[2]}) <= limit:
            kept.append(row)
    assert Counter(run.answers["never"]) == Counter(kept)
    seen["never left out"] = len(run.full["never"]) - len(kept)
    return seen


@pytest.mark.spark
@pytest.mark.slow
@pytest.mark.parametrize("seed", cases((5,), (1, 2, 3, 4, *range(6, 12))))
def test_a_group_has_rows_if_all_of_its_life_is_known(seed: int, shared_spark: SharedSpark) -> None:
    variation = replace(
        PLAIN,
        seed=seed,
        crashes=(seed + 1) % 3,
        table_slots=4 if seed % 2 else None,
        heartbeat_every_tick=seed % 2 == 1,
        chunks=(15, 5)[seed % 2],
        batch_rows=(20, 7)[seed % 2],
    )
    seen = check(seed, shared_spark, variation, 600)
    assert seen["trimmed"]
    for query in ("idle", "mixed", "never"):
        assert seen[f"{query} left out"] or seed != 5, seen
