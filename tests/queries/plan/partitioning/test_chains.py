"""Which nodes run in partitions, in which chain, and why others do not."""

from __future__ import annotations

import pytest

from gscope.queries.compile import CompileContext, QueryText, compile_queries
from gscope.queries.plan.partitioning.chains import PartitionedPlan, partitioned_plan
from gscope.queries.plan.show_expressions import show

FLOWS = (
    "DEFINE { query_name 'flows'; } SELECT tb, srcIP, destIP, count(*) as cnt, sum(len) as bytes"
    " FROM a.TCP GROUP BY time/60 as tb, srcIP, destIP; "
)
LINKS = " ".join(
    f"Query {name}: SELECT tb, srcIP, destIP, count(*) as cnt FROM {link}.TCP"
    " GROUP BY time/60 as tb, srcIP, destIP;"
    for name, link in (("there", "a"), ("back", "b"))
)


def plan(text: str, partitions: int = 1) -> PartitionedPlan:
    context = CompileContext(("a", "b"), partitions=partitions)
    return partitioned_plan(compile_queries([QueryText(text, "q.gsql")], context).program)


def classes(text: str, partitions: int = 1) -> dict[str, str]:
    """The class of each node, with what divides its rows if it runs in partitions."""
    return {
        each.query: f"{each.runs_as.value} by {each.reason}"
        if each.runs_as.value == "partitioned"
        else each.runs_as.value
        for each in plan(text, partitions).placed
    }


def test_a_chain_is_divided_by_what_all_of_its_nodes_have() -> None:
    text = FLOWS + (
        "Query heavy: SELECT tb, srcIP, max(cnt) as most FROM flows GROUP BY tb, srcIP;"
        " Query pairs: SELECT x.tb, x.srcIP, x.most, y.most FROM heavy x, heavy y"
        " WHERE x.srcIP = y.srcIP and x.tb = y.tb+1"
    )
    assert classes(text) == dict.fromkeys(("flows", "heavy", "pairs"), "partitioned by srcIP")
    (chain,) = plan(text).chains
    assert chain.queries == ("flows", "heavy", "pairs")
    assert not chain.is_labelled
    assert plan(text, 64).chains[0].is_labelled


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        ("SELECT tb, destIP, sum(cnt) as c FROM flows GROUP BY tb, destIP", "sub/super"),
        ("SELECT tb, count(*) as c FROM flows GROUP BY tb", "sub/super"),
        ("SELECT tb, destIP, sum(cnt / 2.0) as c FROM flows GROUP BY tb, destIP", "central"),
        ("SELECT tb, destIP, median(cnt) as c FROM flows GROUP BY tb, destIP", "central"),
        ("SELECT tb, destIP, first(cnt) as c FROM flows GROUP BY tb, destIP", "central"),
        ("SELECT tb, srcIP, median(cnt) as c FROM flows GROUP BY tb, srcIP", "central"),
        ("SELECT tb, srcIP, avg(cnt) as c FROM flows GROUP BY tb, srcIP", "partitioned by srcIP"),
        (
            "SELECT tb, srcIP, sum(cnt) as c FROM flows GROUP BY tb, srcIP ORDER BY c LIMIT 3",
            "sub/super",
        ),
        (
            "SELECT tb, destIP, sum(cnt) as c FROM flows GROUP BY tb, destIP ORDER BY c LIMIT 3",
            "sub/super",
        ),
    ],
)
def test_a_grouping_by_other_keys_is_split_where_its_folds_can_be_folded_again(
    body: str, expected: str
) -> None:
    by_source = "Query sources: SELECT tb, srcIP, max(cnt) as m FROM flows GROUP BY tb, srcIP;"
    assert classes(f"{FLOWS} {by_source} Query q: {body}")["q"] == expected


def test_what_reads_central_rows_is_central() -> None:
    text = FLOWS + (
        "Query m: SELECT tb, srcIP, median(cnt) as c FROM flows GROUP BY tb, srcIP;"
        " Query above: SELECT tb, srcIP, max(c) as c FROM m GROUP BY tb, srcIP"
    )
    found = {each.query: str(each) for each in plan(text).placed}
    assert found == {
        "flows": "partitioned by (srcIP, destIP)",
        "m": "central: one task computes median",
        "above": "central: m is not partitioned",
    }


@pytest.mark.parametrize(
    ("condition", "expected"),
    [
        ("l.srcIP = r.srcIP and l.destIP = r.destIP", "srcIP, destIP | srcIP, destIP"),
        ("l.srcIP = r.destIP and l.destIP = r.srcIP", "srcIP, destIP | destIP, srcIP"),
        ("l.srcIP = r.srcIP", "srcIP | srcIP"),
    ],
)
def test_a_join_of_streams_divides_each_by_its_own_columns(condition: str, expected: str) -> None:
    text = (
        f"{LINKS} Query j:"
        f" SELECT l.tb, l.cnt, r.cnt FROM there l, back r WHERE l.tb = r.tb and {condition}"
    )
    (chain,) = plan(text).chains
    assert chain.queries == ("there", "back", "j")
    assert chain.of_streams is not None
    shown = (
        ", ".join(show(value) for member in chain.of_streams[name] for value in member.values)
        for name in ("there", "back")
    )
    assert " | ".join(shown) == expected


@pytest.mark.parametrize(
    ("join", "column", "runs_as"),
    [
        ("INNER JOIN", "l.srcIP", "partitioned"),
        ("INNER JOIN", "r.srcIP", "partitioned"),
        ("LEFT OUTER JOIN", "l.srcIP", "partitioned"),
        ("LEFT OUTER JOIN", "r.srcIP", "sub/super"),
        ("RIGHT OUTER JOIN", "l.srcIP", "sub/super"),
        ("RIGHT OUTER JOIN", "r.srcIP", "partitioned"),
    ],
)
def test_a_side_that_may_be_missing_has_no_lineage(join: str, column: str, runs_as: str) -> None:
    """The NULL group of its rows is in all partitions."""
    side = "r" if join.startswith("RIGHT") else "l"
    text = (
        f"{LINKS} Query j: SELECT {side}.tb, {column} as who, l.cnt FROM there l {join} back r"
        " ON l.tb = r.tb and l.srcIP = r.srcIP;"
        " Query above: SELECT tb, who, count(*) as c FROM j GROUP BY tb, who"
    )
    assert classes(text)["above"].split(" by ")[0] == runs_as


def test_both_directions_of_one_stream_need_a_symmetric_hash() -> None:
    text = FLOWS + (
        "Query j: SELECT l.tb, l.cnt, r.cnt FROM flows l, flows r"
        " WHERE l.tb = r.tb and l.srcIP = r.destIP and l.destIP = r.srcIP"
    )
    (chain,) = plan(text).chains
    assert chain.queries == ("flows", "j")
    assert chain.of_streams is not None
    ((member,),) = chain.of_streams.values()
    assert sorted(map(show, member.values)) == ["destIP", "srcIP"]
    assert plan(text, 64).chains[0].is_labelled


def test_what_does_not_suit_the_labels_is_split() -> None:
    """Two queries of one stream: the set that packets are divided by suits one of them."""
    text = FLOWS + (
        "Query s: SELECT tb, srcIP, max(cnt) as c FROM flows GROUP BY tb, srcIP;"
        " Query d: SELECT tb, destIP, max(cnt) as c FROM flows GROUP BY tb, destIP"
    )
    found = classes(text, 64)
    suited, other = ("s", "d") if found["s"].startswith("partitioned") else ("d", "s")
    by = "srcIP" if suited == "s" else "destIP"
    assert found == {
        "flows": f"partitioned by {by}",
        suited: f"partitioned by {by}",
        other: "sub/super",
    }


def test_keys_that_change_with_time_divide_nothing() -> None:
    text = FLOWS + "Query t: SELECT tb, sum(cnt) as c FROM flows GROUP BY tb"
    assert classes(text)["t"] == "sub/super"
    reasons = {each.query: each.reason for each in plan(text).placed}
    assert reasons["t"] == "rows of a group are in several partitions of (srcIP, destIP)"
