"""Every recipe of the cookbook gives the answer that the page shows.

It is also the one that its oracle computes.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from tests.docs.cookbook import (
    CAPTURE,
    PAGE,
    README,
    answers,
    recipes,
    shown,
    with_answers,
    with_contents,
    with_table_of_duckdb,
)
from tests.docs.cookbook_oracles import BY_NUMBER
from tests.docs.office import write_office
from tests.library import tshark
from tests.library.comparison import text_of, with_time
from tests.library.oracles import ORACLES
from tests.support.requirements import require

from gscope.queries.expressions.types import GsqlType
from gscope.queries.plan.row_order import visible

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from pathlib import Path

    from pyspark.sql import SparkSession
    from tests.docs.cookbook import Recipe
    from tests.library.tshark import Packet

RECIPES = recipes()


def test_there_are_fifty_questions_in_order() -> None:
    assert len(RECIPES) >= 50
    assert [recipe.number for recipe in RECIPES] == list(range(1, len(RECIPES) + 1))


def test_the_first_ten_are_commands() -> None:
    assert all(recipe.is_command for recipe in RECIPES[:10])


def test_the_contents_list_every_question() -> None:
    page = PAGE.read_text(encoding="utf-8")
    assert with_contents(page) == page, "`python -m tests.docs.cookbook` writes it"


def test_readme_shows_answers_of_the_cookbook() -> None:
    readme = README.read_text(encoding="utf-8")
    assert readme.count(f"$ gscope replay {CAPTURE}.pcap ") == 3
    assert with_answers(readme, RECIPES) == readme, "`python -m tests.docs.cookbook` writes them"


def test_every_question_has_an_oracle() -> None:
    of_library = {r.number for r in RECIPES if r.is_command and " -e " not in r.asked}
    assert of_library | set(BY_NUMBER) == {recipe.number for recipe in RECIPES}
    assert not of_library & set(BY_NUMBER)
    assert {name for r in RECIPES if r.number in of_library for name in r.results} <= set(ORACLES)


@pytest.mark.spark
def test_answers_are_those_of_the_page_and_of_their_oracles(
    tmp_path: Path, spark: SparkSession
) -> None:
    """One test, because one replay answers all queries."""
    program, rows = answers(RECIPES, tmp_path, spark)
    wrong = {}
    for recipe in RECIPES:
        found = shown(recipe.results, program, rows)
        if lines_of(found, recipe) != lines_of(recipe.answer, recipe):
            wrong[recipe.number] = found
    assert wrong == {}, "`python -m tests.docs.cookbook` rewrites the answers"
    page = PAGE.read_text(encoding="utf-8")
    assert with_table_of_duckdb(page, program, rows) == page
    require("tshark")
    packets = tshark.read(write_office(tmp_path))
    for recipe in RECIPES:
        for name in recipe.results:
            types = [column.type for column in visible(program.schema(name)).columns]
            have = [
                tuple(
                    text_of(float(value)) if kind is GsqlType.FLOAT and value else value
                    for value, kind in zip(row, types, strict=True)
                )
                for row in rows[name]
            ]
            want = [tuple(map(text_of, row)) for row in oracle_rows(recipe, name, packets)]
            want = [tuple(CAPTURE if v == "trace" else v for v in row) for row in want]
            assert ordered(have, recipe) == ordered(want, recipe), (recipe.number, name)


def oracle_rows(recipe: Recipe, name: str, packets: Sequence[Packet]) -> list[tuple[object, ...]]:
    """What a plain loop computes for a result of the recipe."""
    if recipe.number in BY_NUMBER:
        return list(BY_NUMBER[recipe.number](packets))
    oracle = ORACLES[name]
    return [with_time(row, oracle.seconds) for row in oracle.rows(packets)]


def lines_of(answer: str, recipe: Recipe) -> list[str]:
    """The lines of an answer, sorted unless its query orders them."""
    return answer.splitlines() if recipe.is_ordered else sorted(answer.splitlines())


def ordered(rows: Iterable[tuple[str, ...]], recipe: Recipe) -> list[tuple[str, ...]]:
    """Rows, sorted unless the query orders them."""
    return list(rows) if recipe.is_ordered else sorted(rows)
