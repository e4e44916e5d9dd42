"""Windows in queries: what they slide along, in which unit, and what names mean above them."""

from __future__ import annotations

import pytest

from gscope.queries.analysis.analyze import analyze
from gscope.queries.expressions.expressions import Call
from gscope.queries.expressions.types import Direction, GsqlType
from gscope.queries.gsql.parser import parse
from gscope.queries.plan.logical import (
    Filter,
    GroupBy,
    LogicalPlan,
    LogicalQuery,
    Node,
    Project,
    WindowGroupBy,
)
from gscope.queries.plan.row_order import visible
from gscope.queries.plan.show_expressions import show
from gscope.queries.plan.windows.clamp import limits
from gscope.queries.plan.windows.columns import WINDOW_END, WINDOW_TIME
from gscope.queries.plan.windows.window import RepeatedSlices, SlidingWindow, Window

SECOND_NS = 10**9
MINUTES = "(SELECT tb, count(*) AS c FROM TCP GROUP BY time/60 AS tb) q"
NUMBERED = "(SELECT increasing(id) AS n, len FROM IPV4) q"
TIMES = "(SELECT time, timestamp, time_ns, len FROM TCP) q"


def plan_of(text: str, **parameters: str) -> LogicalPlan:
    return analyze([parse(text, "q")], ("main0",), {}, parameters, is_unbounded=True)


def query_of(text: str, **parameters: str) -> LogicalQuery:
    return plan_of(text, **parameters).queries[-1]


def window_of(query: LogicalQuery) -> WindowGroupBy:
    node: Node = query.root
    while isinstance(node, Project | Filter | GroupBy):
        node = node.input
    assert isinstance(node, WindowGroupBy)
    return node


def leaf_of(node: WindowGroupBy) -> str:
    on = node.on
    while hasattr(on, "arguments"):
        on, *_ = on.arguments
    assert hasattr(on, "name")
    return str(on.name)


@pytest.mark.parametrize(
    ("window", "expected", "on", "unit_ns"),
    [
        ("[RANGE 18 SLIDE 15]", SlidingWindow(18, 15), "time", SECOND_NS),
        ("[RANGE '18' SLIDE '15']", SlidingWindow(18, 15), "time", SECOND_NS),
        ("[RANGE '18 sec' SLIDE 15]", SlidingWindow(18, 15), "time", SECOND_NS),
        ("[RANGE INTERVAL '1 min']", SlidingWindow(60, 60), "time", SECOND_NS),
        ("[RANGE $r SLIDE #s]", SlidingWindow(90, 7), "time", SECOND_NS),
        ("[RANGE 'r' SLIDE 's']", SlidingWindow(90, 7), "time", SECOND_NS),
        ("[RANGE $n SLIDE $t]", SlidingWindow(5, 2), "time", SECOND_NS),
        ("[RANGE '500 ms']", SlidingWindow(500_000_000, 500_000_000), "time_ns", 1),
        ("[RANGE 1 SLIDE '1.5 sec']", SlidingWindow(10**9, 1_500_000_000), "time_ns", 1),
        ("[SLICES '12 sec', 3]", RepeatedSlices((12, 3)), "time", SECOND_NS),
        ("[SLICES '12 sec', '1 ns' ON time]", RepeatedSlices((12 * 10**9, 1)), "time_ns", 1),
        ("[RANGE 18 ON time]", SlidingWindow(18, 18), "time", SECOND_NS),
        ("[RANGE 18 ON timestamp]", SlidingWindow(18, 18), "time", SECOND_NS),
        ("[RANGE 18 ON time_ns]", SlidingWindow(18, 18), "time_ns", 1),
        ("[RANGE 4000000000 ON time_ns]", SlidingWindow(4, 4), "time", SECOND_NS),
    ],
)
def test_lengths_over_packets(window: str, expected: Window, on: str, unit_ns: int) -> None:
    text = (
        "DEFINE { s '7 sec'; } PARAM { r INTERVAL; n INT; t STRING; s INTERVAL; } "
        f"SELECT count(*) FROM TCP {window}"
    )
    node = window_of(query_of(text, r="90 sec", n="5", t="2 sec", s="7 sec"))
    assert (node.window, leaf_of(node), node.unit_ns) == (expected, on, unit_ns)


@pytest.mark.parametrize(
    ("source", "expected", "on", "unit_ns"),
    [
        (f"{MINUTES} [RANGE 5 SLIDE 2]", SlidingWindow(5, 2), "tb", 60 * SECOND_NS),
        (f"{MINUTES} [RANGE '5 min' SLIDE 2]", SlidingWindow(5, 2), "tb", 60 * SECOND_NS),
        (f"{NUMBERED} [RANGE 100 SLIDE 10]", SlidingWindow(100, 10), "n", None),
        (f"{NUMBERED} [SLICES 100, 10 ON q.n]", RepeatedSlices((100, 10)), "n", None),
        (f"{TIMES} [RANGE 5 ON time]", SlidingWindow(5, 5), "time", SECOND_NS),
        (f"{TIMES} [RANGE '2 s' ON time_ns]", SlidingWindow(2 * 10**9, 2 * 10**9), "time_ns", 1),
        (f"{TIMES} [RANGE 2 ON time_ns]", SlidingWindow(2, 2), "time_ns", 1),
        (f"{TIMES} [RANGE 2 ON timestamp]", SlidingWindow(2 * 10**9, 2 * 10**9), "timestamp", 1),
    ],
)
def test_lengths_over_results(source: str, expected: Window, on: str, unit_ns: int | None) -> None:
    query = query_of(f"SELECT window_start, window_end, count(*) AS c FROM {source}")
    node = window_of(query)
    assert (node.window, leaf_of(node), node.unit_ns) == (expected, on, unit_ns)
    kind = GsqlType.INT if unit_ns is None else GsqlType.TIMESTAMP
    assert [c.type for c in query.schema.columns] == [kind, kind, GsqlType.INT]
    assert [c.name for c in query.schema.temporal] == ["window_start", "window_end"]


def test_only_the_written_columns_are_visible() -> None:
    query = query_of("SELECT srcIP, count(*) FROM TCP [RANGE 60] GROUP BY srcIP")
    assert visible(query.schema).names == ("srcIP", "cnt")
    (first, *_) = query.schema.columns
    assert first.name.startswith("$")
    assert first.ordering.direction is Direction.INCREASING


@pytest.mark.parametrize(
    ("select", "keys"),
    [
        ("window_end, srcIP, count(*) FROM TCP [RANGE 60] GROUP BY window_end, srcIP", ["srcIP"]),
        ("window_end AS e, srcIP, count(*) FROM TCP [RANGE 60] GROUP BY e, 2", ["srcIP"]),
        ("minute(window_end) m, srcIP, count(*) FROM TCP [RANGE 60] GROUP BY ALL", ["srcIP"]),
        ("Window_Start, count(*) FROM TCP [RANGE 60]", []),
        ("DISTINCT * FROM (SELECT time, srcIP FROM TCP) q [RANGE 60]", ["time", "srcIP"]),
        ("t.window_end, count(*) FROM TCP t [RANGE 60] GROUP BY t.window_end", []),
        ("DISTINCT srcIP, window_end FROM TCP [RANGE 60]", ["srcIP"]),
        ("DISTINCT srcIP AS a, len/100 AS b FROM TCP [RANGE 60]", ["a", "b"]),
        ("count(*) FROM TCP [RANGE 60] GROUP BY time/10 AS t, minute(time) AS m", ["t", "m"]),
        (
            "count(*) FROM (SELECT time, window AS window_end FROM TCP) q [RANGE 60] "
            "GROUP BY window_end",
            ["window_end"],
        ),
    ],
)
def test_keys_beside_a_window(select: str, keys: list[str]) -> None:
    node = window_of(query_of(f"SELECT {select}"))
    assert [key.name for key in node.keys] == keys
    assert not any(c.ordering.is_temporal for c in node.schema.columns[2:])


def test_a_window_has_no_row_without_tuples_so_aggregates_are_no_more_nullable_than_groups() -> (
    None
):
    node = window_of(query_of("SELECT sum(len), max(vlan) FROM TCP [RANGE 60]"))
    total, greatest = node.aggregates
    assert not total.is_nullable
    assert greatest.is_nullable


@pytest.mark.parametrize(
    ("order", "keys", "epoch"),
    [
        ("ORDER BY count(*) DESC LIMIT 3", ["cnt"], "$order"),
        ("ORDER BY window_end, cnt LIMIT 3", ["cnt"], "$by1"),
        ("ORDER BY minute(window_start), srcIP", ["srcIP"], "$order"),
        ("LIMIT 3", [], "$order"),
    ],
)
def test_order_by_and_limit_are_of_each_window(order: str, keys: list[str], epoch: str) -> None:
    query = query_of(f"SELECT srcIP, count(*) FROM TCP [RANGE 60] GROUP BY srcIP {order}")
    assert query.order is not None
    assert [key.name for key in query.order.keys] == keys
    assert query.order.epoch == epoch
    assert query.schema[epoch].ordering.direction is Direction.INCREASING


def test_a_window_that_is_shown_needs_no_hidden_column() -> None:
    text = (
        "SELECT window_start AS w, srcIP FROM TCP [RANGE 60] GROUP BY srcIP ORDER BY srcIP LIMIT 1"
    )
    query = query_of(text)
    assert query.schema.names == ("w", "srcIP")
    assert query.order is not None
    assert query.order.epoch == "w"


def test_distinct_groups_are_those_of_each_window() -> None:
    root = query_of("SELECT DISTINCT srcIP FROM TCP [RANGE 60] GROUP BY srcIP, destIP").root
    assert isinstance(root, Project)
    assert isinstance(root.input, GroupBy)
    assert root.input.epoch == WINDOW_END


def test_slices_have_a_hidden_time_for_the_window_over_them() -> None:
    plan = plan_of(
        "WITH sub AS (SELECT count(*) as cnt FROM Snort [SLICES '12 sec','3 sec'])"
        " (SELECT sum(cnt) FROM sub [RANGE '18 sec' SLIDE '15 sec'])"
    )
    sub, whole = plan.queries
    assert sub.schema.names == (WINDOW_TIME, "cnt")
    assert isinstance(sub.root, Project)
    assert show(sub.root.columns[0].expression) == f"{WINDOW_END} - 1"
    node = window_of(whole)
    assert (node.window, node.unit_ns) == (SlidingWindow(18 * 10**9, 15 * 10**9), 1)
    assert leaf_of(node) == WINDOW_TIME
    assert visible(whole.schema).names == ("sum_cnt",)


def test_the_hidden_time_precedes_a_visible_end_and_is_there_only_for_windows() -> None:
    inner = "DEFINE { query_name 'a'; } SELECT window_end, count(*) AS c FROM TCP [RANGE 10]; "
    read, _ = plan_of(inner + "SELECT sum(c) FROM a [RANGE 60]").queries
    assert read.schema.names == (WINDOW_TIME, "window_end", "c")
    plain, other = plan_of(inner + "SELECT window_end, c FROM a WHERE c > 5").queries
    assert plain.schema.names == ("window_end", "c")
    assert other.schema.names == ("window_end", "c")
    named = window_of(query_of(inner + "SELECT sum(c) FROM a [RANGE 60 ON window_end]"))
    assert leaf_of(named) == "window_end"


PASSING = [
    "SELECT window_end AS e, c FROM a WHERE c > 1",
    "SELECT window_start, c, window_end FROM a",
    "SELECT * FROM a",
    "SELECT c + 1 AS c, window_end FROM a",
    "SELECT window_end, max(c) AS c FROM a GROUP BY window_end",
    "SELECT DISTINCT window_end, c FROM a",
    "SELECT window_end, c FROM a UNION ALL SELECT window_end, c FROM other",
    "SELECT a.window_end, a.c FROM a JOIN other ON a.window_end = other.window_end",
]


@pytest.mark.parametrize("passing", PASSING)
def test_a_window_end_that_a_query_passes_on_is_not_in_the_window_that_begins_there(
    passing: str,
) -> None:
    text = (
        "WITH a AS (SELECT window_start, window_end, count(*) AS c FROM TCP [RANGE 10]), "
        "other AS (SELECT window_end, count(*) AS c FROM UDP [RANGE 20 SLIDE 10]), "
        f"b AS ({passing}) SELECT sum(c) FROM b [RANGE 60]"
    )
    node = window_of(query_of(text))
    assert isinstance(node.on, Call)
    assert node.on.function == "sub_int"
    end = "e" if " e," in passing else "window_end"
    named = window_of(query_of(text.replace("60]", f"60 ON {end}]")))
    assert node.on.arguments[0] == named.on


def test_rows_that_are_ordered_in_each_window_keep_their_order_beside_the_hidden_time() -> None:
    text = (
        "WITH a AS (SELECT count(*) AS c FROM TCP [RANGE 10] GROUP BY srcIP ORDER BY c LIMIT 3) "
        "SELECT sum(c) FROM a [RANGE 60]"
    )
    inner, _ = plan_of(text).queries
    assert inner.order is not None
    assert inner.schema.names == (WINDOW_TIME, inner.order.epoch, "c")


@pytest.mark.parametrize(
    ("source", "on"),
    [
        (f"{MINUTES} [RANGE 5 SLIDE 2]", "tb"),
        (f"{NUMBERED} [RANGE 7 SLIDE 3]", "min_of(max_of(n, {least}), {greatest})"),
        (
            "(SELECT increasing(time) AS n FROM TCP) q [RANGE 7 SLIDE 3]",
            "min_of(max_of(n, {least}), {greatest})",
        ),
    ],
)
def test_only_declared_orders_may_be_near_the_ends_of_64_bits(source: str, on: str) -> None:
    node = window_of(query_of(f"SELECT count(*) FROM {source}"))
    least, greatest = limits(node.window)
    assert show(node.on) == on.format(least=least, greatest=greatest)


def test_windows_over_numbers_have_a_hidden_number() -> None:
    text = (
        "SELECT sum(c) FROM (SELECT count(*) AS c"
        f" FROM {NUMBERED} [SLICES 7, 3]) s [RANGE 13 SLIDE 10]"
    )
    node = window_of(query_of(text))
    assert (node.window, node.unit_ns, leaf_of(node)) == (SlidingWindow(13, 10), None, WINDOW_TIME)


def test_conditions_on_the_window_are_above_the_groups() -> None:
    text = "SELECT count(*) FROM TCP [RANGE 60] HAVING window_end > '2024-01-01' AND count(*) > 1"
    root = query_of(text).root
    assert isinstance(root, Project)
    assert isinstance(root.input, Filter)
    assert isinstance(root.input.input, WindowGroupBy)
