"""The table of lowerings: complete, and apart from the bookkeeping of the same operators."""

from __future__ import annotations

import ast
from pathlib import Path
from typing import TYPE_CHECKING, get_args

import gscope
from gscope.engine.spark.lowering import LOWERINGS
from gscope.queries.plan.program import HftaNode

if TYPE_CHECKING:
    from collections.abc import Iterator

ENGINE = Path(gscope.__file__).parent / "engine"


def imported(folder: Path) -> Iterator[str]:
    """Yield the modules that the modules below ``folder`` import names from."""
    for path in folder.rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.ImportFrom):
                yield node.module or ""


def test_every_operator_has_a_row() -> None:
    assert set(LOWERINGS) == set(get_args(HftaNode))


def test_the_halves_of_an_operator_do_not_import_each_other() -> None:
    """Both know ``Work`` in operators/base.py, and nothing else of the other."""
    of_spark = set(imported(ENGINE / "spark"))
    of_operators = set(imported(ENGINE / "operators"))
    assert {name for name in of_spark if name.startswith("gscope.engine.operators")} == {
        "gscope.engine.operators.base"
    }
    assert not {name for name in of_operators if name.startswith("gscope.engine.spark")}
