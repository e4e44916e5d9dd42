"""The search against all sets of operators, and the orders of sets that were published."""

from __future__ import annotations

import random
from itertools import chain, combinations

import pytest
from tests.queries.analysis.sampling.random_queries import query_set
from tests.support.long_form import cases

from gscope.queries.analysis.partitioning.compatible import ANY
from gscope.queries.analysis.partitioning.given import given_set
from gscope.queries.analysis.partitioning.operators import Operator, operators_of
from gscope.queries.analysis.partitioning.placement import Place, Placement, place
from gscope.queries.analysis.partitioning.search import BY_CHANCE, Search, search
from gscope.queries.analysis.partitioning.sets import PartitionSet
from gscope.queries.analysis.partitioning.traffic import Counts, Rows, rows_of
from gscope.queries.compile import CompileContext, QueryText, compile_queries

SUBNETS = """
DEFINE { query_name subnet_stats; }
SELECT tb, subnet, destIP, count(*) as cnt, sum(len) as bytes FROM TCP
GROUP BY time/60 as tb, srcIP & 0xFFFFFFF0 as subnet, destIP;
"""
JITTER = """
DEFINE { query_name jitter; }
SELECT S1.time, S1.srcIP, S1.destIP, S1.srcPort, S1.destPort, S2.timestamp - S1.timestamp as delay
FROM TCP as S1, TCP as S2
WHERE S1.time = S2.time and S1.srcIP = S2.srcIP and S1.destIP = S2.destIP
  and S1.srcPort = S2.srcPort and S1.destPort = S2.destPort
  and S1.sequence_number + 1 = S2.sequence_number;
"""
HEAVY = """
DEFINE { query_name flows; } SELECT tb, srcIP, destIP, count(*) as cnt FROM TCP
GROUP BY time/60 as tb, srcIP, destIP;
DEFINE { query_name heavy_flows; } SELECT tb, srcIP, max(cnt) as max_cnt FROM flows
GROUP BY tb, srcIP;
DEFINE { query_name flow_pairs; } SELECT S1.tb, S1.srcIP, S1.max_cnt, S2.max_cnt as other
FROM heavy_flows S1, heavy_flows S2 WHERE S1.srcIP = S2.srcIP and S1.tb = S2.tb + 1;
"""


def operators(text: str) -> tuple[Operator, ...]:
    compiled = compile_queries([QueryText(text, "")], CompileContext(("eth0",)))
    results = tuple(name for name, _ in compiled.program.results)
    return operators_of(compiled.stages[0][1], results)


def searched(text: str, hosts: int = 4, counts: Counts | None = None) -> Search:
    made = operators(text)
    return search(made, rows_of(made, counts), hosts)


def cost(placement: Placement) -> tuple[float, float]:
    return placement.cost, placement.total


@pytest.mark.parametrize("seed", cases(range(30), range(30, 1000)))
def test_no_subset_of_operators_has_a_better_set(seed: int) -> None:
    source = random.Random(seed)
    made = operators(query_set(source, by_tuples=False))
    rows = [Rows(source.random(), source.randrange(8, 60), 2.0) for _ in made]
    own = list(dict.fromkeys(each.compatible for each in made if each.compatible is not ANY))[:8]
    best: tuple[float, float] = cost(place(made, rows, BY_CHANCE, 4))
    subsets = chain.from_iterable(combinations(own, size) for size in range(1, len(own) + 1))
    for subset in subsets:
        met = subset[0]
        assert isinstance(met, PartitionSet)
        for each in subset[1:]:
            assert isinstance(each, PartitionSet)
            met = met.meet(each)
        best = min(best, cost(place(made, rows, met, 4)))
    assert cost(search(made, rows, 4).best) == best


def test_conflicting_queries_get_what_their_sets_have_in_common() -> None:
    found = searched(SUBNETS + JITTER)
    assert found.is_complete
    assert found.best.given.texts() == ("srcIP & 4294967280", "destIP")
    assert [each.given.texts() for each in found.candidates[1:]] == [
        ("srcIP", "destIP", "srcPort", "destPort"),
        (),
    ]


def test_the_finest_set_is_chosen_where_sets_cost_the_same() -> None:
    found = searched(JITTER)
    assert found.best.given.texts() == ("srcIP", "destIP", "srcPort", "destPort")


def test_a_chain_runs_on_all_hosts_only_by_what_all_its_queries_keep() -> None:
    made = operators(HEAVY)
    found = search(made, rows_of(made), 4)
    assert found.best.given.texts() == ("srcIP",)
    assert set(found.best.places) == {Place.HOSTS}
    partly = next(each for each in found.candidates if len(each.given.plain) == 2)
    places = {
        operator.query: where
        for operator, where in zip(made, partly.places, strict=True)
        if operator.is_root
    }
    assert places == {
        "flows": Place.HOSTS,
        "heavy_flows": Place.CENTRAL,
        "flow_pairs": Place.CENTRAL,
    }
    assert found.best.cost < partly.cost < found.candidates[-1].cost


def test_first_rows_are_chosen_on_hosts_and_then_of_all() -> None:
    text = HEAVY.replace("GROUP BY tb, srcIP;", "GROUP BY tb, srcIP ORDER BY max_cnt DESC LIMIT 2;")
    made = operators(text)
    counts = Counts(1000, {"flows": 500, "heavy_flows": 20, "flow_pairs": 10})
    found = search(made, rows_of(made, counts), 4).best
    assert found.given.texts() == ("srcIP",)
    places = {
        operator.query: where
        for operator, where in zip(made, found.places, strict=True)
        if operator.is_root
    }
    assert places == {
        "flows": Place.HOSTS,
        "heavy_flows": Place.FIRST,
        "flow_pairs": Place.CENTRAL,
    }
    # 20 rows on each of 4 hosts are more than the 50 groups that flows are assumed to make.
    assert found.total == pytest.approx(50 / 1000 * (16 + 2 * 8))
    few = rows_of(made, Counts(1000, {"flows": 500, "heavy_flows": 2}))
    assert search(made, few, 4).best.total == pytest.approx(4 * 2 / 1000 * (16 + 2 * 8))


def test_the_limit_of_a_whole_input_is_not_for_hosts() -> None:
    made = operators("SELECT time, srcIP FROM IP LIMIT 3")
    given = given_set("srcIP", "set")
    assert place(made, rows_of(made), given, 4).places == (Place.HOSTS, Place.CENTRAL)


def test_counts_of_a_run_replace_the_assumed_shares() -> None:
    text = SUBNETS + JITTER
    few = searched(text, counts=Counts(1000, {"subnet_stats": 900, "jitter": 1}))
    assert few.best.given.texts() == ("srcIP & 4294967280", "destIP")
    assert few.best.cost == pytest.approx(0.9 * (3 * 8 + 2 * 16))


def test_one_host_needs_no_set_to_make_few_partial_rows() -> None:
    made = operators(SUBNETS)
    (rows,) = [each for each, operator in zip(rows_of(made), made, strict=True) if operator.relates]
    assert rows.partials(1) == pytest.approx(rows.size)
    # Of groups of 10 rows, nearly all are on each of 2 hosts, and 1 - 0.9**10 on each of 10.
    assert rows.partials(2) == pytest.approx(rows.size * 2 * (1 - 0.5**10))
    assert rows.partials(10) == pytest.approx(rows.size * 10 * (1 - 0.9**10))
