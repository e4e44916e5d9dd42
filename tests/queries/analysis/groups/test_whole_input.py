"""Groupings without a temporal term.

Over a finite input they are of the whole input, live they are refused.
"""

from __future__ import annotations

import pytest

from gscope.errors import TemporalError
from gscope.queries.compile import CompileContext, QueryText, compile_queries
from gscope.queries.plan.explain.state_bounds import (
    WHOLE_INPUT_BOUND,
    lfta_state_bound,
    node_state_bound,
)
from gscope.queries.plan.program import AggregationNode, Program
from gscope.queries.plan.whole_input import answers_at_the_end, is_global

QUERIES = (
    "SELECT count(*) FROM TCP",
    "SELECT srcIP, sum(len) FROM IP GROUP BY srcIP",
    "SELECT DISTINCT destIP FROM TCP",
    "SELECT t, count(*) FROM TCP GROUP BY time % 60 AS t",
    "SELECT p, count(*) FROM TCP GROUP BY non_temporal(time/60) AS p HAVING count(*) > 1",
    "SELECT DISTINCT count(*) FROM TCP GROUP BY time/60 AS tb, srcIP",
    "SELECT srcIP, median(len), count_distinct(destIP) FROM IP WHERE data LIKE 'x%' GROUP BY srcIP",
    "Query a: SELECT len FROM TCP; SELECT sum(len) FROM a",
    "SELECT a.srcIP, count(*) FROM x.TCP a, y.TCP b WHERE a.time = b.time GROUP BY a.srcIP",
)


def compiled(text: str, *, is_unbounded: bool = False) -> Program:
    context = CompileContext(("x", "y"), is_unbounded=is_unbounded)
    return compile_queries([QueryText(text, "q.gsql")], context).program


def last(program: Program) -> AggregationNode:
    node = program.nodes[-1]
    assert isinstance(node, AggregationNode)
    return node


@pytest.mark.parametrize("text", QUERIES)
def test_a_finite_input_is_an_epoch_and_an_endless_one_is_not(text: str) -> None:
    program = compiled(text)
    (result, _) = program.results[0]
    assert answers_at_the_end(program, result)
    assert node_state_bound(last(program)) == WHOLE_INPUT_BOUND
    assert not program.schema(result).temporal
    with pytest.raises(TemporalError) as caught:
        compiled(text, is_unbounded=True)
    assert "--duration or -c" in caught.value.remedy


def test_low_groups_are_in_a_table_of_fixed_size() -> None:
    program = compiled("SELECT srcIP, sum(len) FROM IP GROUP BY srcIP")
    (lfta,) = program.lftas
    assert lfta.is_aggregation
    assert "fixed size" in lfta_state_bound(lfta)


@pytest.mark.parametrize(
    "text",
    [
        "SELECT srcIP, running_sum(len) FROM TCP GROUP BY srcIP CLOSING_WHEN count(*) = 0",
        "SELECT a.srcIP FROM x.TCP a, y.TCP b WHERE a.srcIP = b.srcIP",
        "Query a: SELECT srcIP, count(*) AS c FROM TCP GROUP BY srcIP;"
        " MERGE u.c : v.c FROM a u, a v",
    ],
)
def test_what_needs_an_order_is_refused_as_before(text: str) -> None:
    with pytest.raises(Exception, match=r"temporal|time|increas|twice"):
        compiled(text)


def test_a_temporal_term_is_still_the_epoch() -> None:
    node = last(compiled("SELECT tb, srcIP, count(*) FROM TCP GROUP BY srcIP, time/60 AS tb"))
    assert node.epoch == "tb"
    assert not is_global(node.keys, node.epoch)


def test_columns_may_be_called_as_the_epoch_is() -> None:
    text = "SELECT whole_input, count(*) AS c FROM TCP GROUP BY srcPort AS whole_input"
    program = compiled(text)
    assert program.schema("q").names == ("whole_input", "c")
    assert last(program).epoch == "whole_input_2"


def test_aggregates_of_perhaps_no_tuples_may_be_null_but_counts() -> None:
    schema = compiled("SELECT count(*) AS n, sum(len) AS s, max(time) AS m FROM IP").schema("q")
    assert [column.is_nullable for column in schema.columns] == [False, True, True]
    grouped = compiled("SELECT srcPort, sum(len) AS s FROM IP GROUP BY srcPort").schema("q")
    assert not grouped["s"].is_nullable


def test_a_constant_beside_keys_is_no_epoch() -> None:
    node = last(compiled("SELECT DISTINCT time/60 AS tb, 5 AS five FROM TCP"))
    assert node.epoch == "tb"
    assert [key.name for key in node.keys] == ["tb", "five"]
