"""Windows: which slices an LFTA folds, who shares them, and what the node above assembles."""

from __future__ import annotations

import pytest

from gscope.cli.delivery.rounds import Rounds
from gscope.queries.catalog.aggregate.partial_op import PartialOp
from gscope.queries.compile import CompileContext, QueryText, compile_queries
from gscope.queries.plan.program import (
    AggregationNode,
    Lfta,
    Program,
    QueryInput,
    StreamInput,
)
from gscope.queries.plan.show_expressions import show, show_named
from gscope.queries.plan.split.slice_classes import MAX_EDGES, MAX_REFINEMENT
from gscope.queries.plan.window_node import Slices, WindowNode
from gscope.queries.plan.windows.columns import SLICE
from gscope.queries.plan.windows.window import RepeatedSlices, SlidingWindow
from gscope.queries.plan.windows.window_plan import WindowPlan

FLOWS = (
    "SELECT srcIP, count(*) as cnt, avg(len) as size FROM TCP [RANGE 18 SLIDE 15] GROUP BY srcIP"
)
PAPER = (
    "Query a: SELECT srcIP as s, count(*) FROM TCP [RANGE 18 SLIDE 15] GROUP BY srcIP as s;"
    "Query b: SELECT srcIP, max(len) FROM TCP [RANGE 12 SLIDE 9] GROUP BY srcIP;"
)
COMPOSED = (6, 3, 3, 3, 3, 6, 3, 3, 3, 3, 6, 3)
"""(12,3) and (6,3) composed: On-the-Fly Sharing, section 4.2, which leaves one 3 out."""


def program(text: str, plan: WindowPlan = WindowPlan.PAIRED) -> Program:
    context = CompileContext(("main1",), window_plan=plan)
    return compile_queries([QueryText(text, "q")], context).program


def windows(made: Program) -> list[WindowNode]:
    return [node for node in made.nodes if isinstance(node, WindowNode)]


def parts(made: Program) -> tuple[Lfta, WindowNode, Slices]:
    (lfta,), (node,) = made.lftas, windows(made)
    assert node.slices is not None
    return lfta, node, node.slices


def test_an_lfta_folds_slices_and_the_node_assembles_them() -> None:
    lfta, node, slices = parts(program(FLOWS))
    assert [key.name for key in lfta.keys] == [SLICE, "srcIP"]
    assert lfta.epoch == SLICE
    assert show(lfta.keys[0].expression) == "((time FLOOR_DIV 15) + ((time - 12) FLOOR_DIV 15)) + 1"
    assert lfta.schema[SLICE].ordering.is_temporal
    assert [p.op for p in lfta.partials] == [PartialOp.COUNT, PartialOp.SUM]
    assert node.input == StreamInput(lfta.name)
    assert node.on is None
    assert slices.is_merged
    assert show(slices.number) == SLICE
    assert [show(p.argument) for p in slices.partials if p.argument] == ["count0", "sum1"]
    assert [key.name for key in slices.keys] == ["srcIP"]
    assert [a.partials for a in node.aggregates] == [("count0",), ("sum1", "count0")]


def test_extents_below_a_second_count_nanoseconds() -> None:
    lfta, node, slices = parts(
        program("SELECT count(*) FROM TCP [RANGE '1500 msec' SLIDE '1 sec']")
    )
    half = 500_000_000
    assert show(lfta.keys[0].expression) == (
        f"((time_ns FLOOR_DIV {2 * half}) + ((time_ns - {half}) FLOOR_DIV {2 * half})) + 1"
    )
    assert node.window == SlidingWindow(3 * half, 2 * half)
    assert (node.unit_ns, slices.keys) == (1, ())


def test_slices_of_a_query_are_its_windows() -> None:
    _, node, slices = parts(program("SELECT count(*) FROM TCP [SLICES '12 sec', '3 sec']"))
    assert node.window == RepeatedSlices((12, 3))
    assert slices.slicing.vector(9) == (12, 3)
    assert slices.slicing.most_within(node.window) == 1


def test_an_argument_that_joins_the_key_is_a_low_level_key() -> None:
    lfta, node, slices = parts(
        program("SELECT srcIP, count(DISTINCT destPort) FROM TCP [RANGE 60 SLIDE 1] GROUP BY srcIP")
    )
    assert [key.name for key in lfta.keys] == [SLICE, "srcIP", "destPort"]
    assert [key.name for key in slices.keys] == ["srcIP", "destPort"]
    assert show_named(node.keys) == "srcIP"


def test_the_interface_is_a_low_level_key() -> None:
    lfta, node, slices = parts(
        program("SELECT interface, count(*) FROM TCP [RANGE 60 SLIDE 1] GROUP BY interface")
    )
    assert lfta.has_interface_column
    assert [key.name for key in slices.keys] == ["interface"]
    assert show_named(node.keys) == "interface"


@pytest.mark.parametrize(
    ("text", "mode"),
    [
        # What no LFTA computes: a key of text, or a condition; the node folds rows into slices.
        ("SELECT qname, count(*) FROM DNS [RANGE 60 SLIDE 1] GROUP BY qname", "folded"),
        ("SELECT count(DISTINCT qname) FROM DNS [RANGE 60 SLIDE 1]", "folded"),
        ("SELECT count(*) FROM UDP [RANGE 9 SLIDE 1] WHERE lower(UDP_data) LIKE 'a%'", "folded"),
        # What has no partials: rows are kept.
        ("SELECT sum(len / 2.0) FROM TCP [RANGE 60 SLIDE 1]", "kept"),
        ("SELECT count(*), sum(len / 2.0), max(len) FROM TCP [RANGE 60 SLIDE 1]", "kept"),
        ("SELECT count_diff(len) FROM TCP [RANGE 60 SLIDE 1]", "kept"),
        ("SELECT max(qname) FROM DNS [RANGE 60 SLIDE 1]", "kept"),
    ],
)
def test_rows_are_shipped_where_no_lfta_folds_them(text: str, mode: str) -> None:
    made = program(text)
    (lfta,), (node,) = made.lftas, windows(made)
    assert not lfta.is_aggregation
    assert node.on is not None
    assert show(node.on) == "time"
    assert (node.slices is None) == (mode == "kept")
    assert (node.predicate is None) == ("lower" not in text)
    if node.slices is not None:
        assert not node.slices.is_merged
        assert show(node.slices.number) == "time FLOOR_DIV 1"


def test_a_window_over_a_query_folds_its_rows() -> None:
    made = program(
        "Query flow: SELECT tb, srcIP, sum(len) as bytes FROM TCP GROUP BY time/10 as tb, srcIP;"
        "Query q: SELECT srcIP, sum(bytes) as s FROM flow [RANGE 3 SLIDE 2] WHERE bytes > 5"
        " GROUP BY srcIP"
    )
    (node,) = windows(made)
    assert node.input == QueryInput("flow")
    assert node.on is not None
    assert node.slices is not None
    assert (show(node.on), node.unit_ns) == ("tb", 10 * 10**9)
    assert show(node.slices.number) == "((tb FLOOR_DIV 2) + ((tb - 1) FLOOR_DIV 2)) + 1"
    assert show_named(node.slices.keys) == "srcIP"
    assert node.predicate is not None
    assert not node.slices.is_merged
    # Sums of any INT have two halves.
    assert [p.op for p in node.slices.partials] == [PartialOp.SUM, PartialOp.SUM]


def test_order_and_having_are_of_a_window() -> None:
    made = program(
        "SELECT window_end, srcIP, count(*) as n FROM TCP [RANGE 60 SLIDE 1] GROUP BY srcIP"
        " HAVING count(*) > 5 ORDER BY n DESC LIMIT 3"
    )
    (node,) = windows(made)
    assert node.having is not None
    assert node.top is not None
    assert node.top.limit == 3


def test_distinct_groups_the_groups_of_windows_again() -> None:
    made = program(
        "SELECT DISTINCT window_end, count(*) as n FROM TCP [RANGE 60 SLIDE 1] GROUP BY srcIP"
    )
    assert [type(node) for node in made.nodes] == [WindowNode, AggregationNode]


def test_queries_of_a_class_share_one_lfta() -> None:
    text = PAPER + (
        "Query c: SELECT srcIP, max(len) FROM TCP [RANGE 12 SLIDE 9] WHERE SYN = 1 GROUP BY srcIP;"
        "Query d: SELECT destIP, max(len) FROM TCP [RANGE 12 SLIDE 9] GROUP BY destIP"
    )
    made = program(text)
    shared, *alone = made.lftas
    assert [p.op for p in shared.partials] == [PartialOp.COUNT, PartialOp.MAX]
    assert [len(lfta.partials) for lfta in alone] == [1, 1]
    a, b, *_ = windows(made)
    assert a.input == b.input == StreamInput(shared.name)
    assert a.slices is not None
    assert b.slices is not None
    assert a.slices.slicing == b.slices.slicing
    assert a.slices.slicing.vector(20) == COMPOSED
    # Each assembles only the partials that it needs.
    assert [p.op for p in a.slices.partials] == [PartialOp.COUNT]
    assert [p.op for p in b.slices.partials] == [PartialOp.MAX]


ONE = "SELECT count(*) FROM TCP [RANGE 18 SLIDE 15]"


@pytest.mark.parametrize(
    ("other", "lftas"),
    [
        ("SELECT sum(len) FROM TCP [RANGE 12 SLIDE 9]", 1),
        ("SELECT sum(len) FROM main1.TCP [RANGE 12 SLIDE 9]", 2),
        ("SELECT sum(len) FROM UDP [RANGE 12 SLIDE 9]", 2),
        ("SELECT interface, sum(len) FROM TCP [RANGE 12 SLIDE 9] GROUP BY interface", 2),
        ("SELECT count(DISTINCT len) FROM TCP [RANGE 12 SLIDE 9]", 2),
        ("SELECT count(*) FROM (SELECT time/60 AS tb FROM TCP) t [RANGE 12 SLIDE 9]", 2),
    ],
)
def test_windows_share_slices_of_the_same_packets_groups_and_order(other: str, lftas: int) -> None:
    context = CompileContext(("main1", "main2"))
    text = f"Query a: {ONE}; Query b: {other}"
    made = compile_queries([QueryText(text, "q")], context).program
    assert len(made.lftas) == lftas
    assert len({node.slices.slicing for node in windows(made) if node.slices}) == lftas


def test_written_and_joined_keys_make_the_same_groups() -> None:
    made = program(
        "Query pairs: SELECT srcIP, destIP, sum(len) FROM IP [RANGE 60 SLIDE 5]"
        " GROUP BY srcIP, destIP;"
        "Query fan: SELECT srcIP, count(DISTINCT destIP) FROM IP [RANGE 300 SLIDE 60]"
        " GROUP BY srcIP"
    )
    (lfta,) = made.lftas
    assert [key.name for key in lfta.keys] == [SLICE, "srcIP", "destIP"]


def test_a_class_with_parts_of_seconds_counts_nanoseconds() -> None:
    made = program(
        "Query a: SELECT srcIP, count(*) FROM TCP [RANGE 3 SLIDE 2] GROUP BY srcIP;"
        "Query b: SELECT srcIP, count(*) FROM TCP [RANGE '500 msec'] GROUP BY srcIP"
    )
    (lfta,) = made.lftas
    assert show(lfta.keys[0].expression) == "time_ns FLOOR_DIV 500000000"
    a, b = windows(made)
    assert a.window == SlidingWindow(3 * 10**9, 2 * 10**9)
    assert (a.unit_ns, b.unit_ns) == (1, 1)


def test_a_long_window_does_not_share_very_short_slices() -> None:
    text = (
        "Query day: SELECT srcIP, count(*) FROM TCP [RANGE {0}] GROUP BY srcIP;"
        "Query second: SELECT srcIP, count(*) FROM TCP [RANGE 1] GROUP BY srcIP"
    )
    assert len(program(text.format(MAX_REFINEMENT)).lftas) == 1
    assert len(program(text.format(MAX_REFINEMENT + 1)).lftas) == 2


@pytest.mark.parametrize(("count", "lftas"), [(MAX_EDGES - 1, 1), (MAX_EDGES, 2)])
def test_a_class_has_a_bounded_number_of_edges(count: int, lftas: int) -> None:
    """With one slide each range has an edge of its own, beside the one that all share."""
    text = "Query q{0}: SELECT srcIP, count(*) FROM TCP [RANGE 10{0:02} SLIDE 1000] GROUP BY srcIP"
    made = program(";".join(text.format(n) for n in range(1, count + 1)))
    assert len(made.lftas) == lftas


def test_a_slice_number_never_exceeds_64_bits() -> None:
    made = program(
        "Query a: SELECT count(*) FROM TCP [RANGE '2 ns'];"
        "Query b: SELECT count(*) FROM TCP [RANGE '3 ns'];"
        "Query c: SELECT count(*) FROM TCP [RANGE '5 ns'];"
        "Query d: SELECT count(*) FROM TCP [RANGE '7 ns']"
    )
    assert all(lfta.schema[SLICE].ordering.is_temporal for lfta in made.lftas)
    assert len(made.lftas) == 2


def test_plans_for_experiments() -> None:
    unshared = program(PAPER, WindowPlan.UNSHARED)
    assert [node.slices.slicing.vector(9) for node in windows(unshared) if node.slices] == [
        (12, 3),
        (6, 3),
    ]
    assert len(unshared.lftas) == 2
    paned = program(PAPER, WindowPlan.PANED)
    assert [lfta.keys[0].name for lfta in paned.lftas] == [SLICE]
    assert [node.slices.slicing.vector(9) for node in windows(paned) if node.slices] == [(3,), (3,)]
    rows = program(PAPER, WindowPlan.SUPERQUERY)
    assert [lfta.is_aggregation for lfta in rows.lftas] == [False, False]
    assert [node.slices for node in windows(rows)] == [None, None]


def test_windows_are_timed_up_to_the_last_time() -> None:
    """Delivery asks for the bound at the last time.

    Where N would wrap, rows would wait for the end.
    """
    made = program(
        "Query a: SELECT window_end, count(*) FROM IP [RANGE '12500 ms' SLIDE '9 sec'];"
        "Query b: SELECT window_end, count(*) FROM IP [RANGE 20 SLIDE 9];"
    )
    rounds = Rounds(made)
    assert all(rounds.is_timed(query, "window_end") for query in ("a", "b"))
    end = 9 * 163_344_931
    assert rounds.bound("a", "window_end", end - 1) == end * 10**9
    assert rounds.bound("a", "window_end", end) == (end + 9) * 10**9
