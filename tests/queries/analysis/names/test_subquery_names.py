"""Subqueries have names of their own in the query set, whatever their aliases are."""

from __future__ import annotations

import pytest

from gscope.queries.compile import CompileContext, QueryText, compile_queries
from gscope.queries.plan.program import JoinNode, Program, QueryInput

COUNT = "SELECT tb, count(*) AS c FROM {} GROUP BY time/10 AS tb"
TCP, UDP = COUNT.format("TCP"), COUNT.format("UDP")


def program(text: str) -> Program:
    return compile_queries([QueryText(text, "q.gsql")], CompileContext(("main1",))).program


def protocols_of_sides(made: Program) -> list[str]:
    """What the inputs of the last join are aggregated from."""
    join = next(node for node in reversed(made.nodes) if isinstance(node, JoinNode))
    names = [each.query for each in join.inputs if isinstance(each, QueryInput)]
    return [made.lfta(name).protocol for name in names]


def test_an_alias_hides_no_subquery_of_with() -> None:
    made = program(f"WITH a AS ({TCP}) SELECT a.tb, y.c FROM ({UDP}) a, a AS y WHERE a.tb = y.tb")
    assert protocols_of_sides(made) == ["UDP", "TCP"]


def test_a_numbered_alias_is_not_taken_for_a_subquery_of_with() -> None:
    made = program(
        f"WITH a_2 AS ({TCP}), a AS ({TCP}) "
        f"SELECT a.tb, y.c FROM ({UDP}) a, a_2 AS y WHERE a.tb = y.tb"
    )
    assert protocols_of_sides(made) == ["UDP", "TCP"]


@pytest.mark.parametrize(
    "text",
    [
        f"SELECT joined.tb, count(*) FROM ({UDP}) joined, ({TCP}) b "
        "WHERE joined.tb = b.tb GROUP BY joined.tb",
        f"WITH joined AS ({UDP}) SELECT a.tb, count(*) FROM joined a, ({TCP}) b "
        "WHERE a.tb = b.tb GROUP BY a.tb",
        f"SELECT DISTINCT tb FROM ({UDP}) groups GROUP BY tb, c",
        "SELECT tb, count(*)"
        f" FROM (MERGE a.tb : b.tb FROM ({UDP}) a, ({TCP}) b) merged GROUP BY tb",
    ],
)
def test_no_alias_is_taken_for_a_part_that_the_split_makes(text: str) -> None:
    names = [node.query for node in program(text).nodes]
    assert len(set(names)) == len(names)
