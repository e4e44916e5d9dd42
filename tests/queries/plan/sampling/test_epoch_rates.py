"""The column ``sample_rate`` becomes the rate of the epoch of each row."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from gscope.queries.catalog.evaluate import evaluate
from gscope.queries.compile import CompileContext, QueryText, compile_queries
from gscope.queries.expressions.expressions import Column, Expression, walk
from gscope.queries.plan.program import AggregationNode, JoinNode, SelectionNode
from gscope.queries.plan.sampling.epoch_rates import reads_rate, with_epoch_rates
from gscope.queries.plan.sampling.moving_samples import moving_samples

if TYPE_CHECKING:
    from gscope.queries.plan.program import HftaNode

RATES = [(5, 1.0), (7, 0.25)]
LAST = 0.5


def bound(text: str, query: str) -> HftaNode:
    """The node of a query with the rates 1 below 5, 0.25 below 7, 0.5 from there on."""
    context = CompileContext(("a",), {}, samples=True)
    program = compile_queries([QueryText(text, "q")], context).program
    ((sample,), _) = moving_samples(program)
    node = program.node(query)
    assert reads_rate(node)
    made = with_epoch_rates(node, sample.rates[query], RATES, LAST)
    assert not reads_rate(made)
    return made


def values(expression: Expression, **columns: int) -> list[float]:
    """The values of an expression in the epochs 3 to 8 of the column that it reads."""
    (epoch,) = {part.name for part in walk(expression) if isinstance(part, Column)} - set(columns)

    def value(at: int) -> float:
        found = evaluate(expression, lambda leaf: {**columns, epoch: at}[leaf.name])
        assert isinstance(found, float)
        return found

    return [value(at) for at in range(3, 9)]


EXPECTED = [1.0, 1.0, 0.25, 0.25, 0.5, 0.5]


def test_in_select_and_having_of_an_aggregation() -> None:
    node = bound(
        "DEFINE { query_name q; } SELECT tb, srcIP, sample_rate as s FROM IP"
        " GROUP BY time/10 as tb, srcIP HAVING sample_rate > 0.3",
        "q",
    )
    assert isinstance(node, AggregationNode)
    (selected,) = (c.expression for c in node.columns if c.name == "s")
    assert values(selected) == EXPECTED
    having = node.having
    assert having is not None
    passed = [evaluate(having, lambda _, at=at: at) for at in range(3, 9)]  # type: ignore[misc]
    assert passed == [rate > 0.3 for rate in EXPECTED]


def test_in_group_by() -> None:
    node = bound(
        "DEFINE { query_name q; } SELECT tb, srcIP, sr FROM IP"
        " GROUP BY time/10 as tb, srcIP, sample_rate as sr",
        "q",
    )
    assert isinstance(node, AggregationNode)
    (key,) = (k.expression for k in node.keys if k.name == "sr")
    assert values(key) == EXPECTED


@pytest.mark.parametrize("kind", ["INNER_JOIN", "LEFT_OUTER_JOIN", "RIGHT_OUTER_JOIN"])
def test_in_a_join_it_is_that_of_the_side_which_is_there(kind: str) -> None:
    node = bound(
        "DEFINE { query_name q; }"
        f" SELECT S.time, S.srcIP, sample_rate as s FROM TCP S {kind} UDP A"
        " WHERE S.time = A.time and S.srcIP = A.srcIP",
        "q",
    )
    assert isinstance(node, JoinNode)
    (selected,) = (c.expression for c in node.columns if c.name == "s")
    sides = {part.input for part in walk(selected) if isinstance(part, Column)}
    assert sides == {int(kind.startswith("RIGHT"))}
    assert values(selected) == EXPECTED


def test_a_selection_takes_it_from_the_query_that_it_reads() -> None:
    node = bound(
        "DEFINE { query_name low; } SELECT tb, srcIP, count(*) as c FROM IP"
        " GROUP BY time/10 as tb, srcIP;"
        "DEFINE { query_name q; } SELECT c, sample_rate as s FROM low WHERE c > 1",
        "q",
    )
    assert isinstance(node, SelectionNode)
    (selected,) = (c.expression for c in node.columns if c.name == "s")
    assert values(selected) == EXPECTED
