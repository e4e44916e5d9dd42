"""Operators as Spark SQL text: case files of a query and, after ``---``, the text of its operator.

A case file shows the last operator of its query. It is named after the module of
``engine/spark/sql`` that it shows. Its rows come from ``left`` and ``right``, or from ``input``;
epochs from 3 up to 9 are answered.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from gscope.engine.spark.lowering import LOWERINGS, lower
from gscope.engine.spark.sql.inputs import Sources
from gscope.queries.compile import CompileContext, QueryText, compile_queries
from gscope.queries.plan.program import node_inputs

if TYPE_CHECKING:
    from gscope.queries.plan.program import HftaNode

CASES = sorted(Path(__file__).with_name("texts").glob("*.case"))


def compiled(case: Path) -> HftaNode:
    query = case.read_text(encoding="utf-8").partition("\n---\n")[0]
    context = CompileContext(("a", "b"))
    *_, node = compile_queries([QueryText(query, str(case))], context).program.nodes
    return node


@pytest.mark.parametrize("case", CASES, ids=[case.stem for case in CASES])
def test_an_operator_is_lowered_to_its_text(case: Path) -> None:
    expected = case.read_text(encoding="utf-8").partition("\n---\n")[2]
    node = compiled(case)
    names = ("left", "right") if len(node_inputs(node)) == 2 else ("input",)
    assert lower(node, Sources(names, (3, 9))) == " ".join(expected.split())


def test_every_operator_has_a_case() -> None:
    assert {type(compiled(case)) for case in CASES} == set(LOWERINGS)
