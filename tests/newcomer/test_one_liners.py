"""What a newcomer types is answered as typed, or a hint says what to type, which then answers."""

from __future__ import annotations

import csv
import io
import math
from typing import TYPE_CHECKING

import pytest
from tests.golden.driver import Variation, answer
from tests.newcomer.one_liners import CONTEXT, OneLiner, followed, one_liners
from tests.newcomer.oracle import open_oracle
from tests.newcomer.traffic import write_network
from tests.support.gscope_command import run
from tests.support.requirements import needs

from gscope.queries.compile import QueryText, compile_queries

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from pathlib import Path

    import duckdb
    from pyspark.sql import SparkSession

    Row = tuple[str, ...]

ONE_LINERS = one_liners()
IDS = [f"line {each.line}" for each in ONE_LINERS]
INTERPRETED = Variation("interpreted", is_interpreted=True, interprets_plans=True)


@pytest.fixture(scope="module")
def capture(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_network(tmp_path_factory.mktemp("newcomer"))


@pytest.fixture(scope="module")
def oracle(capture: Path) -> duckdb.DuckDBPyConnection:
    return open_oracle(capture)


@pytest.fixture
def answers(capture: Path, spark: SparkSession) -> dict[str, list[Row]]:
    """The rows of all one-liners, from one replay; those with a hint after following it."""
    texts = [QueryText(followed(each.text)[0], f"line_{each.line}.gsql") for each in ONE_LINERS]
    program = compile_queries(texts, CONTEXT).program
    return answer(program, {"net": [capture]}, INTERPRETED, spark)


def test_there_are_enough_and_nine_in_ten_answer_as_typed() -> None:
    as_typed = [each for each in ONE_LINERS if not each.hints]
    assert len(ONE_LINERS) >= 90
    assert len(as_typed) >= 0.9 * len(ONE_LINERS)


@pytest.mark.parametrize("one", ONE_LINERS, ids=IDS)
def test_it_compiles_as_typed_or_after_following_the_hints(one: OneLiner) -> None:
    _, hints = followed(one.text)
    assert hints == one.hints


@pytest.mark.spark
@needs("tshark")
def test_all_answer_what_the_oracle_answers(
    answers: dict[str, list[Row]], oracle: duckdb.DuckDBPyConnection
) -> None:
    wrong = []
    for one in ONE_LINERS:
        found, wanted = answers[f"line_{one.line}"], expected(one, oracle)
        if not are_equal(found, wanted, is_ordered=one.is_ordered):
            wrong.append(f"{one.text}\n  answered {found}\n  expected {wanted}")
    assert not wrong, "\n".join(wrong)


@needs("tshark")
@pytest.mark.parametrize("one", ONE_LINERS, ids=IDS)
def test_the_oracle_has_rows(one: OneLiner, oracle: duckdb.DuckDBPyConnection) -> None:
    """So that no answer is right because it is empty, or counts nothing."""
    rows = expected(one, oracle)
    assert rows
    assert any(value not in {"", "0", "0.0"} for row in rows for value in row)


@pytest.mark.long
@needs("tshark")
@pytest.mark.parametrize("one", ONE_LINERS, ids=IDS)
def test_alone_at_the_command_line(
    one: OneLiner, capture: Path, oracle: duckdb.DuckDBPyConnection
) -> None:
    text, _ = followed(one.text)
    done = run("replay", capture, "-o", "csv", "-e", text)
    assert done.returncode == 0, done.stderr
    found = [tuple(row) for row in csv.reader(io.StringIO(done.stdout))][1:]
    assert are_equal(found, expected(one, oracle), is_ordered=one.is_ordered)


def expected(one: OneLiner, oracle: duckdb.DuckDBPyConnection) -> list[Row]:
    """Return the rows of the oracle as text."""
    rows = oracle.execute(one.oracle).fetchall()
    return [tuple("" if value is None else str(value) for value in row) for row in rows]


def are_equal(found: Sequence[Row], wanted: Sequence[Row], *, is_ordered: bool) -> bool:
    """Return whether two answers have the same rows, numbers with a point to 12 digits."""
    if not is_ordered:
        found, wanted = sorted(map(_rounded, found)), sorted(map(_rounded, wanted))
    pairs = zip(found, wanted, strict=False)
    return len(found) == len(wanted) and all(_rounded(a) == _rounded(b) for a, b in pairs)


def _rounded(row: Iterable[str]) -> Row:
    return tuple(_number(value) for value in row)


def _number(text: str) -> str:
    try:
        value = float(text)
    except ValueError:
        return text
    return f"{value:.12g}" if math.isfinite(value) else text
