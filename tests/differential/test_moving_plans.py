"""Thresholds that move below queries that read queries.

Coarser epochs, joins, merges, the rate of a row. For each row of the full answer, a plain loop
lists the times of all packets that concern its epoch. The least threshold over these times decides
whether the row has to be in the answer.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import pytest
from tests.differential.moving import PLAIN, moved
from tests.support.long_form import cases

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from tests.differential.moving import Moved
    from tests.golden.driver import Row, Variation
    from tests.support.shared_spark import SharedSpark

QUERIES = """
DEFINE { query_name x; }
SELECT tb, srcIP, srcPort, max(len) as m, count(*) as c, min(destPort) as p, sample_rate as r
FROM TCP GROUP BY time/4 as tb, srcIP, srcPort;
DEFINE { query_name y; }
SELECT tb, srcIP, srcPort, max(len) as m, count(*) as c
FROM UDP GROUP BY time/4 as tb, srcIP, srcPort;

DEFINE { query_name coarse; }
SELECT tm, srcIP, srcPort, max(m), sum(c), sample_rate FROM x GROUP BY tb/3 as tm, srcIP, srcPort;
DEFINE { query_name chosen; } SELECT tb, srcIP, srcPort, m, sample_rate FROM x WHERE c > 1;
DEFINE { query_name of_x; } SELECT tb, srcIP, srcPort, m, c, p, r FROM x;
DEFINE { query_name of_y; } SELECT tb, srcIP, srcPort, m, c FROM y;
DEFINE { query_name both; }
SELECT x.tb as tb, x.srcIP as srcIP, x.srcPort as srcPort, x.m, y.m, sample_rate
FROM x LEFT_OUTER_JOIN y WHERE x.tb = y.tb and x.srcIP = y.srcIP and x.srcPort = y.srcPort;
DEFINE { query_name shifted; }
SELECT x.tb as tb, x.srcIP as srcIP, x.srcPort as srcPort, x.m as m, y.c as c
FROM x LEFT_OUTER_JOIN y WHERE x.tb = y.tb + 1 and x.srcIP = y.srcIP and x.srcPort = y.srcPort;
DEFINE { query_name above; }
SELECT tm, srcIP, srcPort, max(m) as m, sum(c) as c, sample_rate as r
FROM shifted GROUP BY tb/2 as tm, srcIP, srcPort;
DEFINE { query_name of_above; } SELECT tm, srcIP, srcPort, m, c, r FROM above;
DEFINE { query_name third; }
SELECT tt, srcIP, srcPort, max(m), sum(c) FROM above GROUP BY tm/2 as tt, srcIP, srcPort;
DEFINE { query_name of_shifted; } SELECT tb, srcIP, srcPort, m, c FROM shifted;
DEFINE { query_name xs; } SELECT tb, srcIP, srcPort, m, c FROM x;
DEFINE { query_name merged; } MERGE xs.tb : y.tb FROM xs, y;
DEFINE { query_name of_merged; } SELECT tb, srcIP, srcPort, m, c FROM merged;
DEFINE { query_name united; }
SELECT tb, srcIP, srcPort, max(m), sum(c), sample_rate FROM merged GROUP BY tb, srcIP, srcPort;

DEFINE { query_name tcp; } SELECT time, srcIP, srcPort, len, sequence_number FROM TCP;
DEFINE { query_name udp; } SELECT time, srcIP, srcPort, len, 0 as sequence_number FROM UDP;
DEFINE { query_name packets; } MERGE tcp.time : udp.time FROM tcp, udp;
DEFINE { query_name of_packets; } SELECT time, srcIP, srcPort, len, sequence_number FROM packets;
DEFINE { query_name flat; }
SELECT tb, srcIP, srcPort, max(len), count(*), sample_rate
FROM packets GROUP BY time/6 as tb, srcIP, srcPort;

DEFINE { query_name couples; }
SELECT A.time as t, S.srcIP as srcIP, S.srcPort as srcPort, A.len as l FROM TCP S JOIN UDP A
WHERE S.time/5 = A.time/5 + 1 and S.srcIP = A.srcIP and S.srcPort = A.srcPort;
DEFINE { query_name by_right; }
SELECT tt, srcIP, srcPort, max(l), count(*) FROM couples GROUP BY t/20 as tt, srcIP, srcPort;
"""

Times = tuple[str, int, int]
"""An LFTA, and seconds of its packets: from the first, below the second."""


def _x(tb: int) -> Iterator[Times]:
    yield "x", 4 * tb, 4 * tb + 4


def _y(tb: int) -> Iterator[Times]:
    yield "y", 4 * tb, 4 * tb + 4


def _shifted(tb: int) -> Iterator[Times]:
    yield from _x(tb)
    yield from _y(tb - 1)


def _shifted_from(tb: int, epochs: int) -> Iterator[Times]:
    for each in range(tb, tb + epochs):
        yield from _shifted(each)


def _couples(epoch: int) -> Iterator[Times]:
    """The epoch of the left side; the right one is one behind."""
    yield "tcp", 5 * epoch, 5 * epoch + 5
    yield "udp", 5 * epoch - 5, 5 * epoch


@dataclass(frozen=True)
class Expected:
    """What concerns the rows of a query.

    Attributes:
        times: returns, for an epoch, the times that concern it.
        rate: the place of ``sample_rate`` in a row; None if it has none.
    """

    times: Callable[[int], Iterator[Times]]
    rate: int | None = None


EXPECTED: Mapping[str, Expected] = {
    "of_x": Expected(_x, 6),
    "of_y": Expected(_y),
    "coarse": Expected(lambda tm: (t for tb in range(3 * tm, 3 * tm + 3) for t in _x(tb)), 5),
    "chosen": Expected(_x, 4),
    "both": Expected(lambda tb: (t for side in (_x, _y) for t in side(tb)), 5),
    "of_shifted": Expected(_shifted),
    "of_above": Expected(lambda tm: _shifted_from(2 * tm, 2), 5),
    "third": Expected(lambda tt: _shifted_from(4 * tt, 4)),
    "united": Expected(lambda tb: (t for side in (_x, _y) for t in side(tb)), 5),
    "by_right": Expected(
        lambda tt: (t for j in range(4 * tt + 1, 4 * tt + 5) for t in _couples(j))
    ),
    "flat": Expected(lambda tb: ((each, 6 * tb, 6 * tb + 6) for each in ("tcp", "udp")), 5),
}


def _limit(run: Moved, times: Iterator[Times]) -> int:
    return min(run.threshold(LFTAS.get(lfta, lfta), first, end) for lfta, first, end in times)


LFTAS = {"tcp": "packets.1", "udp": "packets.2"}
"""The names of the LFTAs that the merge of two selections reads, and the join of packets."""


def _hash(run: Moved, query: str, row: Row) -> int:
    of_packets = {"flat": "packets.1", "of_packets": "packets.1", "by_right": "packets.1"}
    return run.hashed(of_packets.get(query, "x"), {"srcIP": row[1], "srcPort": row[2]})


def check(
    seed: int, shared: SharedSpark, variation: Variation, packets: int, *, thins: bool = False
) -> Counter[str]:
    run = moved(QUERIES, seed, shared, variation, packets, thins=thins)
    seen: Counter[str] = Counter(trimmed=run.trimmed, thinned=run.thinned)
    for query, expected in EXPECTED.items():
        kept = []
        for full in run.full[query]:
            limit = _limit(run, expected.times(int(full[0])))
            if _hash(run, query, full) > limit:
                continue
            row = list(full)
            if expected.rate is not None:
                assert row[expected.rate] == "1.0"
                row[expected.rate] = repr((limit + 1) / 2**64)
                seen[f"{query} below 1"] += limit + 1 < 2**64
            kept.append(tuple(row))
        assert Counter(run.answers[query]) == Counter(kept), query
        seen[f"{query} left out"] = len(run.full[query]) - len(kept)
    _check_passed(run)
    return seen


def _check_passed(run: Moved) -> None:
    """Each input of a merge is cut as that input is; packets may be there above the threshold."""
    parts = Counter(row[:5] for row in run.answers["of_x"])
    assert Counter(run.answers["of_merged"]) == parts + Counter(run.answers["of_y"])
    full, answer = Counter(run.full["of_packets"]), Counter(run.answers["of_packets"])
    assert answer <= full
    for row in full:
        second = int(row[0])
        lfta = "tcp" if row[4] != "0" else "udp"
        if _hash(run, "of_packets", row) <= _limit(run, iter([(lfta, second, second + 1)])):
            assert answer[row] == full[row], row


@pytest.mark.spark
@pytest.mark.slow
@pytest.mark.parametrize("seed", cases((2,), (1, *range(3, 12), 103)))
def test_a_query_above_queries_is_cut_at_the_least_threshold_of_its_epoch(
    seed: int, shared_spark: SharedSpark
) -> None:
    # With many heartbeats, bounds rise early, and thresholds rise behind epochs that have fallen.
    variation = replace(
        PLAIN,
        seed=seed,
        crashes=seed % 3,
        table_slots=4 if seed % 2 else None,
        heartbeat_every_tick=seed % 2 == 1,
        chunks=(6, 15)[seed % 2],
        batch_rows=(20, 7)[seed % 2],
    )
    seen = check(seed, shared_spark, variation, 700)
    assert seen["trimmed"]
    if seed > 2:
        return
    for query, expected in EXPECTED.items():
        assert seen[f"{query} left out"], seen
        assert expected.rate is None or seen[f"{query} below 1"], seen


@pytest.mark.spark
@pytest.mark.slow
def test_so_it_is_with_a_heartbeat_at_every_tick(shared_spark: SharedSpark) -> None:
    """The default run of what odd seeds try: few packets, since steps take most of the time."""
    variation = replace(
        PLAIN, seed=5, crashes=1, table_slots=4, heartbeat_every_tick=True, chunks=4, batch_rows=7
    )
    assert check(5, shared_spark, variation, 200)["trimmed"]


@pytest.mark.spark
@pytest.mark.slow
@pytest.mark.parametrize("seed", cases((7,), range(2, 7)))
def test_what_a_full_log_removes_is_above_the_threshold_of_its_epoch(
    seed: int, shared_spark: SharedSpark
) -> None:
    # Half of the packets in the default run: they come in the same steps.
    packets = 350 if seed == 7 else 700
    variation = replace(PLAIN, seed=seed, crashes=seed % 3, batch_rows=20, chunks=6)
    seen = check(seed, shared_spark, variation, packets, thins=True)
    assert seen["thinned"]
    assert seen["trimmed"]
