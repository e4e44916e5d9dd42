"""Windows: which slices an LFTA folds, who shares them, and what the node above assembles."""

from __future__ import annotations

from tests.support.window_queries import window_program

from gscope.queries.catalog.aggregate.partial_op import PartialOp
from gscope.queries.plan.program import Lfta, Program, StreamInput, WindowNode
from gscope.queries.plan.show_expressions import show
from gscope.queries.plan.windows.columns import SLICE
from gscope.queries.plan.windows.window import SlidingWindow
from gscope.queries.plan.windows.window_plan import WindowPlan

FLOWS = "SELECT tb, srcIP, count(*) as cnt, avg(len) as size FROM TCP GROUP BY time/60 as tb, srcIP"
W = SlidingWindow


def parts(program: Program) -> tuple[Lfta, WindowNode]:
    (lfta,), (node,) = program.lftas, program.nodes
    assert isinstance(node, WindowNode)
    return lfta, node


def test_an_lfta_folds_slices_and_the_node_assembles_them() -> None:
    lfta, node = parts(window_program(FLOWS, [W(18, 15)]))
    assert [key.name for key in lfta.keys] == [SLICE, "srcIP"]
    assert lfta.epoch == SLICE
    assert show(lfta.keys[0].expression) == "(time FLOOR_DIV 15) + ((time + 3) FLOOR_DIV 15)"
    assert lfta.schema[SLICE].ordering.is_temporal
    assert [p.op for p in lfta.partials] == [PartialOp.COUNT, PartialOp.SUM]
    assert node.input == StreamInput(lfta.name)
    assert node.on is None
    assert node.slices is not None
    assert node.slices.is_merged
    assert [show(p.argument) for p in node.slices.partials if p.argument] == ["count0", "sum1"]
    assert [key.name for key in node.slices.keys] == ["srcIP"]
    assert [a.partials for a in node.aggregates] == [("count0",), ("sum1", "count0")]


def test_queries_of_a_class_share_one_lfta() -> None:
    text = (
        "Query a: SELECT tb, srcIP as s, count(*) FROM TCP GROUP BY time/60 as tb, srcIP as s;"
        "Query b: SELECT tb, srcIP, max(len) FROM TCP GROUP BY time/60 as tb, srcIP;"
        "Query c: SELECT tb, srcIP, max(len) FROM TCP WHERE SYN = 1 GROUP BY time/60 as tb, srcIP"
    )
    made = window_program(text, [W(18, 15), W(12, 9), W(12, 9)])
    shared, alone = made.lftas
    assert [p.op for p in shared.partials] == [PartialOp.COUNT, PartialOp.MAX]
    assert [p.op for p in alone.partials] == [PartialOp.MAX]
    a, b, c = made.nodes
    assert isinstance(a, WindowNode)
    assert isinstance(b, WindowNode)
    assert isinstance(c, WindowNode)
    assert a.slices is not None
    assert b.slices is not None
    assert a.slices.slicing == b.slices.slicing
    # The example of the paper, section 4.2: (12,3) and (6,3) composed.
    assert a.slices.slicing.vector(20) == (6, 3, 3, 3, 3, 6, 3, 3, 3, 3, 6, 3)
    assert (
        len(window_program(text, [W(18, 15), W(12, 9), W(12, 9)], plan=WindowPlan.UNSHARED).lftas)
        == 3
    )
