"""Groups that live across epochs: what of them runs low, and what bounds their state."""

from __future__ import annotations

import pytest

from gscope.queries.catalog.aggregate.partial_op import PartialOp
from gscope.queries.compile import CompileContext, QueryText, compile_queries
from gscope.queries.plan.explain.state_bounds import node_state_bound
from gscope.queries.plan.idle_groups import idle_groups_close
from gscope.queries.plan.program import Program, RunningNode

HEAD = "SELECT tb, srcIP, running_sum(len) FROM TCP GROUP BY time/60 as tb, srcIP CLOSING_WHEN "


def program(text: str) -> Program:
    return compile_queries([QueryText(text, "q.gsql")], CompileContext(("main1",))).program


def node(text: str) -> RunningNode:
    made = program(text).nodes[-1]
    assert isinstance(made, RunningNode)
    return made


def test_each_epoch_is_reduced_low() -> None:
    made = program(
        "SELECT tb, srcIP, sum(len), running_sum(len), moving_avg(len, 3), ewma(len, 0.5) FROM TCP"
        " GROUP BY time/60 as tb, srcIP CLOSING_WHEN count(*) = 0"
    )
    (lfta,) = made.lftas
    assert [key.name for key in lfta.keys] == ["tb", "srcIP"]
    assert [partial.op for partial in lfta.partials] == [PartialOp.SUM, PartialOp.COUNT]
    (running,) = made.nodes
    assert isinstance(running, RunningNode)
    assert [a.function for a in running.aggregates] == ["sum", "count", "count"]
    assert {name for a in running.running for name in a.inputs} <= {
        a.name for a in running.aggregates
    }


def test_the_values_of_sum_of_dups_join_the_low_key() -> None:
    (lfta,) = program(
        "SELECT tb, sum_of_dups(seq) FROM TCP GROUP BY time/60 as tb CLOSING_WHEN count(*) = 0"
    ).lftas
    assert [key.name for key in lfta.keys] == ["tb", "sequence_number"]


def test_a_key_of_text_ships_rows() -> None:
    made = program(
        "SELECT tb, host, sum_of_dups(seq), last(window) FROM TCP"
        " GROUP BY time/60 as tb,"
        " str_extract_regex(TCP_data, 'a+') as host CLOSING_WHEN count(*) = 0"
    )
    assert not made.lftas[0].is_aggregation
    (running,) = made.nodes
    assert isinstance(running, RunningNode)
    assert all(not aggregate.partials for aggregate in running.aggregates)


def test_what_a_plain_aggregate_is_of_nothing_may_be_null() -> None:
    made = node(
        "SELECT tb, srcIP, sum(len) as s, count(*) as n FROM TCP GROUP BY time/60 as tb, srcIP"
        " CLOSING_WHEN count(*) = 0"
    )
    assert made.schema["s"].is_nullable
    assert not made.schema["n"].is_nullable
    assert made.schema["tb"].ordering.is_temporal


@pytest.mark.parametrize(
    ("closing", "closes"),
    [
        ("count(*) = 0", True),
        ("or_aggr(FIN) = 1 OR count(*) < 2", True),
        ("sum(len) IS NULL", True),
        ("moving_sum(len, 5) IS NULL", True),
        ("running_count(*) > 5 AND count(*) = 0", True),
        ("tb % 60 = 0", True),
        ("TRUE", True),
        ("or_aggr(FIN) = 1", False),
        ("max(len) > 100 OR running_count(*) > 5", False),
        ("count(*) > 3", False),
        ("FALSE", False),
        ("srcIP = '10.0.0.1'", False),
    ],
)
def test_explain_reports_whether_idle_groups_close(closing: str, closes: bool) -> None:
    made = node(HEAD + closing)
    assert idle_groups_close(made) == closes
    assert ("WARNING" in node_state_bound(made)) != closes


def test_one_group_is_bounded_whatever_it_does() -> None:
    made = node("SELECT tb, running_count(*) FROM TCP GROUP BY time/60 as tb CLOSING_WHEN FALSE")
    assert "WARNING" not in node_state_bound(made)
