"""Joins are understood: names, conditions by their role, columns of missing sides, orderings."""

from __future__ import annotations

import pytest

from gscope.errors import GsqlError, ResolveError, TemporalError
from gscope.queries.analysis.analyze import analyze
from gscope.queries.expressions.types import VARYING, Direction, Ordering
from gscope.queries.gsql.nodes import JoinKind
from gscope.queries.gsql.parser import parse
from gscope.queries.plan.logical import Filter, GroupBy, Join, Node, Project, QueryScan
from gscope.queries.plan.show_expressions import show, show_equalities, show_of_sides

INPUTS = """
Query a: SELECT tb, srcIP, destIP, count(*) as cnt FROM TCP GROUP BY time/60 as tb, srcIP, destIP;
Query b: SELECT tb, srcIP, count(*) as n FROM UDP GROUP BY time/60 as tb, srcIP;
Query c: SELECT tb, destIP, max(len) as m FROM IP GROUP BY time/60 as tb, destIP;
Query e: SELECT time, increasing(sequence_number) as n FROM TCP;
Query d: SELECT -time as down, time_ns, timestamp, len FROM IP;
"""


def root(text: str) -> Node:
    return analyze([parse(f"{INPUTS} Query q: {text}")], ("x", "y"), {}, {}).queries[-1].root


def join(text: str) -> Join:
    node = root(text)
    while not isinstance(node, Join):
        assert isinstance(node, Project | Filter | GroupBy)
        node = node.input
    return node


def column(node: Join, name: str) -> str:
    return next(show_of_sides(c.expression) for c in node.columns if c.name == name)


@pytest.mark.parametrize(
    ("spelling", "kind"),
    [
        ("FROM a, b WHERE", JoinKind.INNER),
        ("INNER_JOIN FROM a, b WHERE", JoinKind.INNER),
        ("FROM a JOIN b WHERE", JoinKind.INNER),
        ("FROM a INNER JOIN b ON", JoinKind.INNER),
        ("OUTER_JOIN FROM a, b WHERE", JoinKind.OUTER),
        ("FROM a OUTER_JOIN b WHERE", JoinKind.OUTER),
        ("FROM a FULL OUTER JOIN b ON", JoinKind.OUTER),
        ("LEFT_OUTER_JOIN FROM a, b WHERE", JoinKind.LEFT_OUTER),
        ("FROM a LEFT JOIN b ON", JoinKind.LEFT_OUTER),
        ("FROM a RIGHT OUTER JOIN b ON", JoinKind.RIGHT_OUTER),
    ],
)
def test_every_spelling_of_a_join_is_the_same_join(spelling: str, kind: JoinKind) -> None:
    made = join(f"SELECT a.tb, cnt, n {spelling} a.tb = b.tb and a.srcIP = b.srcIP")
    assert made.kind is kind
    assert show_equalities([made.epochs]) == "left.tb = right.tb"
    assert show_equalities(made.keys) == "left.srcIP = right.srcIP"
    assert made.residual is None


def test_conditions_over_one_side_filter_it_before() -> None:
    made = join(
        "SELECT a.tb FROM a LEFT_OUTER_JOIN b ON a.tb = b.tb and n > 3 WHERE cnt < 5 and n < 9"
    )
    left, right = made.inputs
    assert isinstance(left, Filter)
    assert show(left.predicate) == "cnt < 5"
    assert isinstance(right, Filter)
    assert show(right.predicate) == "(n < 9) AND (n > 3)"
    assert made.residual is None


def test_what_is_neither_equality_nor_of_one_side_is_asked_of_pairs() -> None:
    made = join("SELECT a.tb FROM a, b WHERE a.tb = b.tb and cnt > n and (cnt = n or n = 1)")
    assert made.residual is not None
    assert show_of_sides(made.residual) == (
        "(left.cnt > right.n) AND ((left.cnt = right.n) OR (right.n = 1))"
    )


@pytest.mark.parametrize(
    ("condition", "epochs"),
    [
        ("a.tb = b.tb + 1", "left.tb = right.tb + 1"),
        ("b.tb + 1 = a.tb", "left.tb = right.tb + 1"),
        ("a.tb/2 = b.tb + 1", "left.tb DIV 2 = right.tb + 1"),
        ("a.tb - b.tb = 1", "left.tb = right.tb + 1"),
        ("1 = a.tb - b.tb", "left.tb = right.tb + 1"),
        ("-a.tb = 5 - b.tb", "neg_int(neg_int(left.tb)) = neg_int(5 - right.tb)"),
    ],
)
def test_epochs_may_have_offsets_and_divisors(condition: str, epochs: str) -> None:
    made = join(f"SELECT a.tb FROM a, b WHERE {condition}")
    assert show_equalities([made.epochs]) == epochs
    assert made.keys == ()


def test_of_several_temporal_equalities_one_between_columns_is_the_epoch() -> None:
    made = join("SELECT x.len FROM TCP x, UDP y WHERE x.time/60 = y.time/60 and x.time = y.time")
    assert show_equalities([made.epochs]) == "left.time = right.time"
    assert show_equalities(made.keys) == "left.time DIV 60 = right.time DIV 60"


def test_a_missing_side_takes_what_it_is_equated_to() -> None:
    made = join(
        "SELECT a.tb, a.srcIP, cnt, n FROM a OUTER_JOIN b ON a.tb = b.tb and a.srcIP = b.srcIP"
    )
    assert column(made, "tb") == "coalesce(left.tb, right.tb)"
    assert column(made, "srcIP") == "coalesce(left.srcIP, right.srcIP)"
    assert not made.schema["srcIP"].is_nullable
    assert made.schema["tb"].ordering.direction is Direction.INCREASING
    assert made.schema["cnt"].is_nullable
    assert made.schema["n"].is_nullable


def test_an_offset_is_solved_for_the_column() -> None:
    made = join("SELECT a.tb, b.tb FROM a FULL JOIN b ON a.tb + 2 = b.tb")
    assert column(made, "tb") == "coalesce(left.tb, right.tb - 2)"
    assert column(made, "b_tb") == "coalesce(right.tb, left.tb + 2)"
    assert [c.ordering.is_temporal for c in made.schema.columns] == [True, True]


def test_only_the_outer_side_is_nullable() -> None:
    made = join("SELECT a.tb, cnt, n FROM a RIGHT_OUTER_JOIN b ON a.tb = b.tb + 1")
    assert column(made, "tb") == "right.tb + 1"
    assert [c.is_nullable for c in made.schema.columns] == [False, True, False]


def test_what_determines_the_epoch_stays_temporal_with_a_band() -> None:
    schema = join("SELECT a.tb, b.tb FROM a, b WHERE a.tb/3 = b.tb").schema
    assert schema["tb"].ordering.is_temporal
    assert schema["tb"].ordering.band == 3
    assert schema["b_tb"].ordering.band == 0


def test_other_temporal_columns_are_not_any_more() -> None:
    made = join("SELECT e.time, e.n FROM TCP x, e WHERE x.time = e.time")
    assert made.schema["time"].ordering.is_temporal
    assert made.schema["n"].ordering == VARYING


def test_times_of_one_packet_imply_each_others_order() -> None:
    schema = join("SELECT x.time, x.timestamp FROM TCP x, UDP y WHERE x.time = y.time").schema
    assert schema["timestamp"].ordering == Ordering(Direction.INCREASING, 1_000_000_000)
    schema = join("SELECT x.time FROM TCP x, UDP y WHERE x.timestamp = y.timestamp").schema
    assert schema["time"].ordering == Ordering(Direction.INCREASING)


def test_a_column_that_may_be_missing_is_not_temporal() -> None:
    made = join("SELECT a.tb, b.tb FROM a FULL JOIN b ON a.tb/2 = b.tb")
    assert made.schema["tb"].ordering == VARYING
    assert made.schema["b_tb"].ordering.is_temporal


@pytest.mark.parametrize("where", ["tb > 3", "tb BETWEEN 3 AND 5"])
def test_a_name_of_columns_that_are_equal_needs_no_qualifier(where: str) -> None:
    made = join(f"SELECT tb, cnt FROM a, b WHERE {where} and a.tb = b.tb")
    assert all(isinstance(side, Filter) for side in made.inputs)
    assert made.schema.names == ("tb", "cnt")


def test_a_name_of_one_input_needs_no_qualifier() -> None:
    node = root("SELECT a.tb, n*2 as twice, destIP FROM a, b WHERE a.tb = b.tb")
    assert node.schema.names == ("tb", "twice", "destIP")


@pytest.mark.parametrize(
    ("text", "error", "message"),
    [
        ("SELECT srcIP FROM a, b WHERE a.tb = b.tb", ResolveError, "write a.srcIP or b.srcIP"),
        ("SELECT a.tb FROM a, a WHERE a.tb = a.tb", ResolveError, "several inputs are called a"),
        ("SELECT z.tb FROM a, b WHERE a.tb = b.tb", ResolveError, "no input is called z"),
        ("SELECT z.* FROM a, b WHERE a.tb = b.tb", ResolveError, "no input is called z"),
        ("SELECT nn FROM a, b WHERE a.tb = b.tb", ResolveError, "a and b have no column nn"),
        ("SELECT a.tb FROM a, b WHERE cnt = n", TemporalError, "add a.tb = b.tb"),
        ("SELECT a.tb FROM a, b WHERE a.tb < b.tb", TemporalError, "add b.tb <= a.tb + 5"),
        ("SELECT a.tb FROM a, b WHERE a.tb/2.0 = b.tb", TemporalError, "add a.tb = b.tb"),
        (
            "SELECT a.tb FROM a, b, c WHERE a.tb = b.tb",
            TemporalError,
            "time of c to that of a and b",
        ),
        ("SELECT a.tb FROM a, d WHERE a.tb = d.down", TemporalError, "add a.tb = d.time_ns"),
        (
            "SELECT y.time FROM IP x, (SELECT len FROM IP) y WHERE x.len = y.len",
            GsqlError,
            "y has no",
        ),
    ],
)
def test_wrong_joins_are_refused_with_a_remedy(
    text: str, error: type[GsqlError], message: str
) -> None:
    with pytest.raises(error) as caught:
        root(text)
    assert message in caught.value.report()
    assert caught.value.position is not None


def test_a_star_is_all_columns_left_then_right_with_names_made_unique() -> None:
    node = root("SELECT * FROM a, b WHERE a.tb = b.tb and a.srcIP = b.srcIP")
    assert node.schema.names == ("tb", "srcIP", "destIP", "cnt", "tb_2", "srcIP_2", "n")
    node = root("SELECT b.*, cnt FROM a, b WHERE a.tb = b.tb")
    assert node.schema.names == ("tb", "srcIP", "n", "cnt")


def test_an_input_joined_to_itself_is_two_inputs() -> None:
    made = join("SELECT S1.tb, S1.cnt, S2.cnt FROM a S1, a S2 WHERE S1.tb = S2.tb + 1")
    assert [each.query for each in made.inputs if isinstance(each, QueryScan)] == ["a", "a"]
    assert column(made, "S2_cnt") == "right.cnt"


def test_an_alias_hides_an_input_of_that_name() -> None:
    made = join("SELECT a.n FROM a b, b a WHERE a.tb = b.tb and b.cnt > 1")
    assert column(made, "n") == "right.n"


def test_aggregates_stand_above_a_join() -> None:
    node = root(
        "SELECT tb, sum(n)/count(*) as r FROM a, b WHERE a.tb = b.tb GROUP BY b.tb as tb"
        " HAVING count(*) > 2"
    )
    assert isinstance(node, Project)
    assert isinstance(node.input, Filter)
    assert isinstance(node.input.input, GroupBy)
    assert isinstance(node.input.input.input, Join)
    assert node.input.input.input.schema.names == ("tb", "n")


def test_three_inputs_are_joined_from_left_to_right() -> None:
    made = join(
        "SELECT a.tb, n, m FROM a, b, c WHERE a.tb = b.tb and b.tb = c.tb and a.srcIP = b.srcIP"
        " and a.destIP = c.destIP and n + m > cnt and cnt > n and m > 7"
    )
    assert show_equalities([made.epochs]) == "left.tb = right.tb"
    assert show_equalities(made.keys) == "left.destIP = right.destIP"
    assert made.residual is not None
    assert show_of_sides(made.residual) == "(left.n + right.m) > left.cnt"
    assert isinstance(made.inputs[1], Filter)
    first = made.inputs[0]
    assert isinstance(first, Join)
    assert first.residual is not None
    assert show_of_sides(first.residual) == "left.cnt > right.n"


def test_an_input_joined_later_is_equated_to_columns_of_any_before() -> None:
    made = join("SELECT tb, n, m FROM a FULL JOIN b ON a.tb = b.tb FULL JOIN c ON b.tb = c.tb")
    assert made.schema["tb"].ordering.is_temporal
    assert column(made, "tb") == "coalesce(left.tb, right.tb)"
    first = made.inputs[0]
    assert isinstance(first, Join)
    assert column(first, "tb") == "coalesce(left.tb, right.tb)"


def test_packets_take_part_with_the_fields_that_are_read() -> None:
    made = join("SELECT x.len FROM TCP x, a WHERE x.time/60 = a.tb and x.dstIP = a.destIP")
    left = made.inputs[0]
    assert isinstance(left, Project)
    assert left.schema.names == ("time", "len", "destIP")


def test_a_condition_that_holds_for_no_tuple_empties_both_sides() -> None:
    made = join("SELECT a.tb FROM a, b WHERE a.tb = b.tb and 1 = 0 and TRUE")
    assert [show(each.predicate) for each in made.inputs if isinstance(each, Filter)] == [
        "FALSE",
        "FALSE",
    ]
