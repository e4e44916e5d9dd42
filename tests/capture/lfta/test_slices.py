"""Slices of windows in kernels: a batch in one slice is the same as each packet on its own."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from tests.capture.lfta.lfta_builders import block_of, ipv4, tcp
from tests.capture.lfta.lfta_collect import answer, compiled, interpreted, run

from gscope.capture.lfta.codegen.epochs import rising_times
from gscope.capture.lfta.value_ranges import ANY_INT
from gscope.queries.catalog.evaluate import call
from gscope.queries.compile import CompileContext, QueryText, compile_queries
from gscope.queries.expressions.expressions import Expression, Literal, PacketField
from gscope.queries.expressions.types import GsqlType
from gscope.queries.plan.windows.columns import SLICE

if TYPE_CHECKING:
    from gscope.queries.plan.program import Lfta

SECOND = 10**9
LAST = 2**63 - 1
QUERIES = (
    "Query a: SELECT srcIP, count(*) FROM IP [RANGE '2500 ms' SLIDE '2 sec'] GROUP BY srcIP;"
    "Query b: SELECT srcIP, count(*) FROM IP [RANGE '7 sec' SLIDE '3 sec'] GROUP BY srcIP;"
    "Query c: SELECT destIP, count(*) FROM IP [RANGE 7 SLIDE 3] GROUP BY destIP"
)
FRAME = ipv4(1, 2, tcp(5, 80), 6)


def lftas() -> list[Lfta]:
    program = compile_queries([QueryText(QUERIES, "q")], CompileContext(("main",))).program
    return [lfta for lfta in program.lftas if lfta.epoch == SLICE]


times = st.one_of(
    st.integers(0, 40).map(lambda n: n * SECOND // 2),
    st.integers(0, 20 * SECOND),
    # A hostile trace: centuries apart, and where the number of a slice would wrap.
    st.sampled_from([1 << 62, LAST - SECOND // 2, LAST - 1, -(1 << 62) - 1, -LAST - 1, -LAST]),
)


@settings(max_examples=40)
@given(st.lists(times, min_size=1, max_size=150))
@example([0, LAST - 1, SECOND])
@example([-LAST - 1, -LAST, 1 - LAST])
@example([-LAST - 1, SECOND, 0])
@example([LAST - SECOND, LAST - SECOND // 2, LAST - 1])
@example([n * SECOND // 40 for n in range(300)])
def test_kernels_number_slices_as_the_interpreter_does(stamps: list[int]) -> None:
    queries = lftas()
    blocks = [block_of([(stamp, FRAME) for stamp in stamps])]
    expected, _ = run(interpreted(), queries, blocks)
    rows, _ = run(compiled(), queries, blocks)
    for lfta in queries:
        assert answer(lfta, rows[lfta.name]) == answer(lfta, expected[lfta.name])


def test_two_slices_of_a_class_are_one_function_of_a_batch() -> None:
    assert len(lftas()) == 2
    for lfta in lftas():
        assert rising_times(lfta.keys[0].expression) is not None


def field(name: str) -> Expression:
    return PacketField(name, GsqlType.INT, is_nullable=False)


def number(value: int) -> Expression:
    return Literal(value, GsqlType.INT)


@pytest.mark.parametrize(
    ("expression", "rises"),
    [
        (call("idiv_int", field("time"), number(60)), "always"),
        (call("floor_div", call("add_int", field("time"), number(3)), number(15)), "always"),
        (call("floor_div", call("sub_int", field("time"), number(12)), number(15)), "always"),
        (call("sub_int", field("time_ns"), number(3)), "usually"),
        (call("floor_div", call("sub_int", field("time_ns"), number(3)), number(15)), "usually"),
        (call("add_int", field("time_ns"), number(3)), "never"),
        (call("sub_int", field("time_ns"), number(-3)), "never"),
        (call("sub_int", field("time_ns"), number(-(2**63))), "never"),
        (call("add_int", field("time"), field("time_ns")), "never"),
        (call("add_int", field("time_ns"), field("time_ns")), "never"),
        (call("add_int", field("time_ns"), number(LAST)), "never"),
        (call("add_int", field("time"), field("len")), "never"),
        (call("floor_div", field("time"), number(-60)), "never"),
        (call("sub_int", number(5), field("time")), "never"),
    ],
)
def test_which_epochs_rise_with_time(expression: Expression, rises: str) -> None:
    found = rising_times(expression)
    assert rises == ("never" if found is None else "always" if found == ANY_INT else "usually")
