"""Every example of the language reference is what the page says of it."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import pytest
from tests.docs.examples import PAGES, Example, examples, value_tables
from tests.docs.function_tables import with_tables
from tests.docs.outcomes import answers, compile_example, explanation, refusal, sorted_csv

from gscope.queries.gsql.scanner import RESERVED

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import SparkSession

EXAMPLES = [example for page in PAGES for example in examples(page)]


def placed(example: Example) -> str:
    return example.place


@pytest.mark.parametrize(
    "example", [example for example in EXAMPLES if example.outcome != "error"], ids=placed
)
def test_an_example_is_a_query(example: Example) -> None:
    compile_example(example)


@pytest.mark.parametrize(
    "example", [example for example in EXAMPLES if example.outcome == "error"], ids=placed
)
def test_what_is_shown_as_refused_is_refused_in_these_words(example: Example) -> None:
    assert refusal(example) == example.shown


@pytest.mark.parametrize(
    "example", [example for example in EXAMPLES if example.outcome == "explain"], ids=placed
)
def test_explain_shows_the_lines_that_the_page_shows(example: Example) -> None:
    lines = explanation(example)
    assert [line for line in map(str.strip, example.shown.splitlines()) if line not in lines] == []


@pytest.mark.spark
@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_the_answers_on_a_page_are_those_of_its_queries(
    page: Path, tmp_path: Path, spark: SparkSession
) -> None:
    answered = [example for example in examples(page) if example.outcome == "csv"]
    tables = value_tables(page)
    found = answers(answered, tables, tmp_path, spark)
    for example in answered:
        assert sorted_csv(found[example.place]) == sorted_csv(example.shown), example.place
    for table in tables:
        values = found[table.place].splitlines()
        assert dict(zip(table.expressions, values, strict=True)) == dict(
            zip(table.expressions, table.values, strict=True)
        ), table.place


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_tables_of_functions_are_those_of_the_catalog(page: Path) -> None:
    text = page.read_text(encoding="utf-8")
    assert with_tables(text) == text, "`python -m tests.docs` writes them again"


def test_there_are_examples() -> None:
    assert len(EXAMPLES) > 40


def test_the_reserved_words_are_listed() -> None:
    text = " ".join((PAGES[0].parent / "gsql" / "files.md").read_text(encoding="utf-8").split())
    (listed,) = re.findall(r"The words ([A-Z ]+) are reserved", text)
    assert sorted(listed.split()) == sorted(RESERVED)
