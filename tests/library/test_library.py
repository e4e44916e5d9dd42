"""Each query of the library finds what it looks for, and nothing where there is nothing."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from tests.golden.driver import INTERPRETED, answer
from tests.library.things import things
from tests.library.traffic import write

from gscope.queries.compile import CompileContext, QueryText, compile_queries

if TYPE_CHECKING:
    from pyspark.sql import SparkSession
    from tests.golden.driver import Row, Variation
    from tests.library.traffic import Sent

LIBRARY = Path(__file__).parents[2] / "queries" / "library"
QUERIES = sorted(path.stem for path in LIBRARY.glob("*.gsql"))


def rows(
    query: str, sent: list[Sent], folder: Path, spark: SparkSession, variation: Variation
) -> list[Row]:
    """The answer of the query of the library over a capture."""
    text = (LIBRARY / f"{query}.gsql").read_text()
    program = compile_queries(
        [QueryText(text, f"{query}.gsql")], CompileContext(("trace",))
    ).program
    files = {"trace": [write(folder / "trace.pcap", sent)]}
    (found,) = answer(program, files, variation, spark).values()
    return sorted(found)


def test_every_query_of_the_library_is_tried() -> None:
    assert sorted(things()) == QUERIES


@pytest.mark.spark
@pytest.mark.parametrize("query", QUERIES)
def test_what_is_there_is_found(query: str, tmp_path: Path, spark: SparkSession) -> None:
    thing = things()[query]
    assert rows(query, thing.sent, tmp_path, spark, INTERPRETED) == sorted(thing.rows)


@pytest.mark.spark
@pytest.mark.parametrize("query", QUERIES)
def test_what_is_not_there_is_not_found(query: str, tmp_path: Path, spark: SparkSession) -> None:
    assert rows(query, things()[query].absent, tmp_path, spark, INTERPRETED) == []


def test_all_can_be_asked_at_once() -> None:
    texts = [QueryText((LIBRARY / f"{q}.gsql").read_text(), f"{q}.gsql") for q in QUERIES]
    program = compile_queries(texts, CompileContext(("trace",))).program
    assert [query for query, _ in program.results] == QUERIES


@pytest.mark.parametrize("query", QUERIES)
def test_answers_are_ordered_in_time(query: str) -> None:
    """So that a live run can give them epoch by epoch."""
    text = QueryText((LIBRARY / f"{query}.gsql").read_text(), f"{query}.gsql")
    program = compile_queries([text], CompileContext(("trace",))).program
    ((result, _),) = program.results
    assert program.schema(result).columns[0] in program.schema(result).temporal


@pytest.mark.parametrize("query", QUERIES)
def test_a_comment_says_what_the_answer_shows(query: str) -> None:
    first = (LIBRARY / f"{query}.gsql").read_text().splitlines()[0]
    assert first.startswith("-- ")
    assert len(first) > 30
