"""UNION ALL is the MERGE on the first column that increases in all its parts.

Or it is the MERGE of whole inputs.
"""

from __future__ import annotations

import pytest

from gscope.errors import GsqlError
from gscope.queries.analysis.analyze import analyze
from gscope.queries.compile import CompileContext, QueryText, compile_queries
from gscope.queries.gsql.nodes import MergeQuery, SubqueryInput
from gscope.queries.gsql.parser import parse
from gscope.queries.gsql.printer import print_file
from gscope.queries.plan.explain.state_bounds import WHOLE_INPUT_BOUND, node_state_bound
from gscope.queries.plan.program import MergeNode
from gscope.queries.plan.row_order import visible
from gscope.queries.plan.whole_input import answers_at_the_end, unites_whole_inputs

UP, DOWN = "SELECT time, srcIP FROM main0.TCP", "SELECT time, destIP FROM main1.UDP"
COUNTS = "SELECT time/60 AS tb, count(*) AS n FROM {} GROUP BY ALL"


def plans(text: str, *, is_unbounded: bool = False) -> str:
    plan = analyze([parse(text)], ("main0", "main1"), {}, {}, is_unbounded=is_unbounded)
    return str([(query.name, query.root, query.schema) for query in plan.queries])


@pytest.mark.parametrize(
    ("union", "merge"),
    [
        (f"{UP} UNION ALL {DOWN}", f"MERGE a.time : b.time FROM ({UP}) a, ({DOWN}) b"),
        (
            f"({UP}) union all {DOWN} UNION ALL ({UP})",
            f"MERGE a.time : b.time : c.time FROM ({UP}) a, ({DOWN}) b, ({UP}) c",
        ),
        (
            f"{COUNTS.format('TCP')} UNION ALL {COUNTS.format('UDP')}",
            f"MERGE a.tb : b.tb FROM ({COUNTS.format('TCP')}) a, ({COUNTS.format('UDP')}) b",
        ),
        (  # the first common one of several
            "SELECT srcIP, timestamp, time FROM TCP UNION ALL"
            " SELECT destIP, timestamp, time FROM UDP",
            "MERGE a.timestamp : b.timestamp FROM (SELECT srcIP, timestamp, time FROM TCP) a, "
            "(SELECT destIP, timestamp, time FROM UDP) b",
        ),
        (
            f"WITH u AS ({UP} UNION ALL {DOWN}) SELECT time/60 AS tb, count(*) FROM u GROUP BY 1",
            f"WITH u AS (MERGE a.time : b.time FROM ({UP}) a, ({DOWN}) b) "
            "SELECT time/60 AS tb, count(*) FROM u GROUP BY 1",
        ),
    ],
)
def test_it_is_a_merge(union: str, merge: str) -> None:
    expected = plans(merge)
    for alias, part in (("a", "sub"), ("b", "sub_2"), ("c", "sub_3")):
        expected = expected.replace(f".{alias}'", f".{part}'")
    assert plans(union) == expected


@pytest.mark.parametrize(
    "text",
    [
        f"{UP} UNION ALL {DOWN}",
        f"({UP} UNION ALL {DOWN}) UNION ALL {UP}",
        f"WITH a AS ({UP}) SELECT * FROM a UNION ALL {DOWN}",
        f"{UP} UNION ALL (WITH a AS ({DOWN}) SELECT * FROM a)",
        f"SELECT * FROM ({UP} UNION ALL {DOWN}) AS u",
        f"{UP} UNION ALL {DOWN} ORDER BY srcIP DESC LIMIT 3",
        f"({UP} LIMIT 2) UNION ALL ({DOWN} LIMIT 3)",
    ],
)
def test_it_prints_as_it_parses(text: str) -> None:
    parsed = parse(text)
    assert parse(print_file(parsed)) == parsed
    assert plans(print_file(parsed)) == plans(text)


def test_order_by_and_limit_belong_to_the_union_unless_in_brackets() -> None:
    text = f"{UP} UNION ALL {DOWN} ORDER BY srcIP DESC LIMIT 3"
    outer = f"SELECT * FROM ({UP} UNION ALL {DOWN}) ORDER BY srcIP DESC LIMIT 3"
    assert plans(text) == plans(outer)
    assert plans(f"{UP} UNION ALL ({DOWN} LIMIT 3)") != plans(f"{UP} UNION ALL {DOWN} LIMIT 3")
    with pytest.raises(GsqlError, match="belong behind its last SELECT"):
        parse(f"{UP} UNION ALL {UP} LIMIT 3 UNION ALL {DOWN}")


def test_parts_stand_side_by_side_and_with_holds_for_all() -> None:
    (query,) = parse(f"{UP} UNION ALL {DOWN} UNION ALL {UP}").queries
    assert isinstance(query.body, MergeQuery)
    assert len(query.body.inputs) == 3
    assert all(isinstance(one, SubqueryInput) for one in query.body.inputs)
    assert plans(f"WITH a AS ({UP}) SELECT * FROM a UNION ALL SELECT * FROM a")


@pytest.mark.parametrize(
    ("text", "message", "remedy", "followed"),
    [
        (
            f"{UP} UNION {DOWN}",
            "expected ALL, got SELECT",
            "SELECT DISTINCT * FROM (SELECT … UNION ALL SELECT …) AS u",
            f"SELECT DISTINCT * FROM ({UP} UNION ALL {DOWN}) AS u",
        ),
        (
            f"{UP} UNION DISTINCT {DOWN}",
            "expected ALL, got DISTINCT",
            "write UNION ALL",
            f"{UP} UNION ALL {DOWN}",
        ),
        (
            f"{UP} UNION ALL SELECT time/60 AS tb, srcIP FROM UDP",
            "column 1 counts in different units",
            "time of SELECT 1",
            f"{UP} UNION ALL SELECT time, srcIP FROM UDP",
        ),
        (
            f"{UP} UNION ALL SELECT increasing(id) AS x, srcIP FROM IPV4",
            "column 1 counts in different units",
            "compute it in the same way",
            f"{UP} UNION ALL SELECT time, srcIP FROM IPV4",
        ),
        (
            "SELECT time, len FROM TCP UNION ALL SELECT len, time FROM UDP",
            "time is column 1 of SELECT 1, time is column 2 of SELECT 2",
            "in the same position",
            "SELECT time, len FROM TCP UNION ALL SELECT time, len FROM UDP",
        ),
        (
            f"{UP} UNION ALL SELECT time, len FROM UDP",
            "column 2 is len INT in SELECT 2, but srcIP IP in SELECT 1",
            "same columns",
            f"{UP} UNION ALL {DOWN}",
        ),
        (
            f"{UP} UNION ALL SELECT time FROM UDP",
            "SELECT 2 has 1 columns, SELECT 1 has 2",
            "same columns",
            f"{UP} UNION ALL {DOWN}",
        ),
    ],
)
def test_what_cannot_be_united_is_refused(
    text: str, message: str, remedy: str, followed: str
) -> None:
    with pytest.raises(GsqlError) as caught:
        plans(text)
    assert message in str(caught.value)
    assert remedy in caught.value.remedy
    assert plans(followed)


WITHOUT_TIME = (
    "SELECT srcIP FROM TCP UNION ALL SELECT srcIP FROM UDP",
    "SELECT 'tcp' AS p, count(*) AS n FROM TCP UNION ALL SELECT 'udp', count(*) FROM UDP",
    "SELECT time, len FROM TCP UNION ALL SELECT 0, len FROM UDP",
    "SELECT srcIP, count(*) FROM TCP GROUP BY 1 UNION ALL SELECT srcIP, len FROM UDP",
)


@pytest.mark.parametrize("text", WITHOUT_TIME)
def test_without_a_common_clock_the_whole_input_is_united_if_it_ends(text: str) -> None:
    program = compile_queries([QueryText(text, "q.gsql")], CompileContext(("main0",))).program
    ((query, _),) = program.results
    node = program.node(query)
    assert isinstance(node, MergeNode)
    assert unites_whole_inputs(node)
    assert answers_at_the_end(program, query)
    assert node_state_bound(node) == WHOLE_INPUT_BOUND
    assert not visible(program.schema(query)).temporal
    again = f"WITH u AS ({text}) SELECT * FROM u AS a, u AS b"
    with pytest.raises(GsqlError, match=r"temporal|time"):
        plans(again)


@pytest.mark.parametrize("text", WITHOUT_TIME)
def test_an_input_that_never_ends_needs_a_common_clock(text: str) -> None:
    """Counts are refused before their union is: each part needs an epoch."""
    with pytest.raises(GsqlError) as caught:
        plans(text, is_unbounded=True)
    assert "--duration or -c" in caught.value.remedy
    assert plans(f"{UP} UNION ALL {DOWN}", is_unbounded=True)
