"""Thresholds that move below windows: each window is the full one, filtered by its least threshold.

A window concerns all packets from its start to its end, a row of an interval join those of both
sides within the interval. The full answer comes from LFTAs that keep every packet; plain loops over
the packets' schedules find the least threshold of each row.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, replace
from datetime import datetime
from typing import TYPE_CHECKING

import pytest
from tests.differential.moving import PLAIN, moved
from tests.support.long_form import cases

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from tests.golden.driver import Variation
    from tests.support.shared_spark import SharedSpark

WINDOWS = """
DEFINE { query_name sliding; }
SELECT window_end, srcIP, srcPort, count(*), max(len), min(destPort), sample_rate
FROM TCP [RANGE 11 SLIDE 4] GROUP BY srcIP, srcPort;
DEFINE { query_name shared; }
SELECT window_end, srcIP, srcPort, sum(len) FROM TCP [RANGE 6 SLIDE 3] GROUP BY srcIP, srcPort;
DEFINE { query_name hopping; }
SELECT window_end, srcIP, srcPort, count(DISTINCT destIP), sample_rate FROM TCP [RANGE 3 SLIDE 8]
GROUP BY srcIP, srcPort HAVING sample_rate > 0.05;
DEFINE { query_name sliced; }
SELECT window_end, srcIP, srcPort, max(len) FROM TCP [SLICES '5 sec', '2 sec']
GROUP BY srcIP, srcPort;

DEFINE { query_name w; }
SELECT window_end as e, srcIP, srcPort, count(*) as c FROM UDP [RANGE 6 SLIDE 2]
GROUP BY srcIP, srcPort;
DEFINE { query_name of_w; } SELECT e, srcIP, srcPort, c, sample_rate FROM w WHERE c > 1;
DEFINE { query_name coarse; }
SELECT m, srcIP, srcPort, max(c), sample_rate FROM w
GROUP BY time_bucket('8 sec', e) as m, srcIP, srcPort;
DEFINE { query_name twice; }
SELECT window_end, srcIP, srcPort, max(c), count(*) FROM w [RANGE 8 SLIDE 4]
GROUP BY srcIP, srcPort;

DEFINE { query_name f; }
SELECT tb, srcIP, srcPort, count(*) as c FROM TCP GROUP BY time/3 as tb, srcIP, srcPort;
DEFINE { query_name of_f; }
SELECT window_end, srcIP, srcPort, max(c), quantile(c, 0.5), sample_rate FROM f [RANGE '12 sec' SLIDE '6 sec']
GROUP BY srcIP, srcPort;
"""  # noqa: E501

INTERVALS = """
DEFINE { query_name pairs; }
SELECT S.time as t, S.srcIP as srcIP, S.srcPort as srcPort, A.time as u, A.len as l, sample_rate as r
FROM TCP S JOIN UDP A
WHERE A.time >= S.time - 3 and A.time <= S.time + 2
and S.srcIP = A.srcIP and S.srcPort = A.srcPort;
DEFINE { query_name of_pairs; } SELECT t, srcIP, srcPort, u, l, r FROM pairs;
DEFINE { query_name by_first; }
SELECT tb, srcIP, srcPort, max(l), count(*) FROM pairs GROUP BY t/7 as tb, srcIP, srcPort;
DEFINE { query_name by_second; }
SELECT tb, srcIP, srcPort, max(l), count(*), sample_rate
FROM pairs GROUP BY u/7 as tb, srcIP, srcPort;

DEFINE { query_name leftmost; }
SELECT S.time as t, S.srcIP, S.srcPort, A.time_ns, sample_rate FROM UDP S LEFT JOIN TCP A
ON A.time >= S.time and A.time < S.time + 5 and S.srcIP = A.srcIP and S.srcPort = A.srcPort;
DEFINE { query_name rightmost; }
SELECT A.time as t, A.srcIP, A.srcPort, S.time_ns FROM TCP S RIGHT JOIN UDP A
ON A.time > S.time and A.time <= S.time + 4 and S.srcIP = A.srcIP and S.srcPort = A.srcPort;
"""  # noqa: E501

Times = tuple[str, int, int]
"""An LFTA, and seconds of its packets: from the first, below the second."""


@dataclass(frozen=True)
class Expected:
    """What concerns the rows of a query.

    Attributes:
        times: returns, for the first column of a row, the times that concern the row.
        rate: the place of ``sample_rate`` in a row; None if it has none.
    """

    times: Callable[[int], Iterator[Times]]
    rate: int | None = None


def _window(lfta: str, length: int) -> Callable[[int], Iterator[Times]]:
    return lambda end: iter([(lfta, end - length, end)])


def _sliced(end: int) -> Iterator[Times]:
    """Windows of 5 s and 2 s in turn, from time 0."""
    yield "sliding", end - (5 if end % 7 == 5 else 2), end


def _pairs(first: int) -> Iterator[Times]:
    yield "pairs.1", first, first + 1
    yield "pairs.2", first - 3, first + 3


def _by_second(tb: int) -> Iterator[Times]:
    """The second of a pair is from 3 s before the first to 2 s behind it."""
    for second in range(7 * tb, 7 * tb + 7):
        for first in range(second - 2, second + 4):
            yield from _pairs(first)


def _leftmost(first: int) -> Iterator[Times]:
    yield "pairs.2", first, first + 1
    yield "pairs.1", first, first + 5


def _rightmost(second: int) -> Iterator[Times]:
    yield "pairs.2", second, second + 1
    yield "pairs.1", second - 4, second


OF_WINDOWS: Mapping[str, Expected] = {
    "sliding": Expected(_window("sliding", 11), 6),
    "shared": Expected(_window("sliding", 6)),
    "hopping": Expected(_window("hopping", 3), 4),
    "sliced": Expected(_sliced),
    "of_w": Expected(_window("w", 6), 4),
    "coarse": Expected(lambda m: iter([("w", m - 6, m + 6)]), 4),
    # The windows of w that count for this one end in the 8 seconds up to its own end.
    "twice": Expected(_window("w", 12)),
    "of_f": Expected(_window("f", 12), 5),
}
OF_INTERVALS: Mapping[str, Expected] = {
    "of_pairs": Expected(_pairs, 5),
    "by_first": Expected(lambda tb: (t for s in range(7 * tb, 7 * tb + 7) for t in _pairs(s))),
    "by_second": Expected(_by_second, 5),
    "leftmost": Expected(_leftmost, 4),
    "rightmost": Expected(_rightmost),
}


QUERIES = {"windows": (WINDOWS, OF_WINDOWS), "intervals": (INTERVALS, OF_INTERVALS)}


def _seconds(text: str) -> int:
    if text.isdigit():
        return int(text)
    return round(datetime.fromisoformat(text[:19] + "+00:00").timestamp())


def check(
    text: str,
    expected_of: Mapping[str, Expected],
    seed: int,
    shared: SharedSpark,
    variation: Variation,
    packets: int,
) -> Counter[str]:
    run = moved(text, seed, shared, variation, packets)
    seen: Counter[str] = Counter(trimmed=run.trimmed)
    for query, expected in expected_of.items():
        kept = []
        for full in run.full[query]:
            times = list(expected.times(_seconds(full[0])))
            limit = min(run.threshold(*each) for each in times)
            if run.hashed(times[0][0], {"srcIP": full[1], "srcPort": full[2]}) > limit:
                continue
            row = list(full)
            if expected.rate is not None:
                assert row[expected.rate] == "1.0"
                row[expected.rate] = repr((limit + 1) / 2**64)
                seen[f"{query} below 1"] += limit + 1 < 2**64
            kept.append(tuple(row))
        if query == "hopping":
            kept = [row for row in kept if float(row[4]) > 0.05]
        assert Counter(run.answers[query]) == Counter(kept), query
        seen[f"{query} left out"] = len(run.full[query]) - len(kept)
    return seen


@pytest.mark.spark
@pytest.mark.slow
@pytest.mark.parametrize("queries", QUERIES)
@pytest.mark.parametrize("seed", cases((5,), (1, 2, 3, 4, *range(6, 12))))
def test_a_row_is_there_if_its_hash_is_below_every_threshold_that_concerns_it(
    queries: str, seed: int, shared_spark: SharedSpark
) -> None:
    text, expected_of = QUERIES[queries]
    variation = replace(
        PLAIN,
        seed=seed,
        crashes=(seed + 1) % 3,
        table_slots=4 if seed % 2 else None,
        heartbeat_every_tick=seed % 2 == 1,
        chunks=(15, 5)[seed % 2],
        batch_rows=(20, 7)[seed % 2],
    )
    seen = check(text, expected_of, seed, shared_spark, variation, 350)
    assert seen["trimmed"]
    if seed != 5:
        return
    for query, expected in expected_of.items():
        assert seen[f"{query} left out"], seen
        assert expected.rate is None or seen[f"{query} below 1"], seen
