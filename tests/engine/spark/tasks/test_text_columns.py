"""Functions of texts in tasks: what the catalog's meaning gives for each row, one by one."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gscope.engine.spark.tasks.columns import TaskRows, columns_of, is_column, is_of_text
from gscope.queries.catalog.evaluate import call, evaluate
from gscope.queries.catalog.scalar.strings import STRINGS
from gscope.queries.expressions.expressions import Column, Expression, Literal
from gscope.queries.expressions.types import GsqlType

if TYPE_CHECKING:
    from gscope.queries.expressions.expressions import Value

TEXT = Column("text", GsqlType.STRING, is_nullable=True)
OTHER = Column("other", GsqlType.STRING, is_nullable=True)
TEXTS = st.lists(
    st.none()
    | st.binary(max_size=9)
    | st.sampled_from([b"", b"GET /a", b"get", b"aa", b"\xff\x00"]),
    max_size=30,
)


def word(value: bytes) -> Literal:
    return Literal(value, GsqlType.STRING)


def number(value: int) -> Literal:
    return Literal(value, GsqlType.INT)


CALLS: dict[str, list[tuple[Expression, ...]]] = {
    "str_match_start": [(TEXT, word(b"GET"))],
    "byte_match_offset": [(number(1), number(97), TEXT), (number(-1), number(0), TEXT)],
    "str_match_offset": [(number(1), word(b"a"), TEXT)],
    "str_exists_substr": [(TEXT, word(b"a"))],
    "str_regex_match": [(TEXT, word(b"[Gg]e?"))],
    "str_extract_regex": [(TEXT, word(b"[A-Z]+"))],
    "str_truncate": [(TEXT, number(2)), (TEXT, number(-1))],
    "str_suffix": [(TEXT, number(2)), (TEXT, number(0))],
    "substr": [(TEXT, number(2), number(3)), (TEXT, number(0), number(2))],
    "concat": [(TEXT, word(b"!")), (word(b"<"), TEXT)],
    "str_find": [(TEXT, word(b"a")), (word(b"xGET /ax"), TEXT)],
    "length": [(TEXT,)],
    "lower": [(TEXT,)],
    "upper": [(TEXT,)],
    "to_hex": [(TEXT,)],
    "string_hash": [(TEXT,)],
    "to_int": [(TEXT,)],
}


def test_every_function_of_texts_is_here() -> None:
    assert set(CALLS) == set(STRINGS)


def expected(expression: Expression, text: bytes | None) -> Value:
    return evaluate(expression, lambda _column: text)


def check(expression: Expression, texts: list[bytes | None]) -> None:
    assert is_of_text(expression)
    assert is_column(expression)
    assert list(columns_of(expression)) == [TEXT]
    wanted = [expected(expression, text) for text in texts]
    plain = pa.array(texts, pa.binary())
    for column in (plain, plain.dictionary_encode(), pa.chunked_array([plain[:3], plain[3:]])):
        rows = TaskRows.of_table(pa.table({"text": column}))
        assert rows.column(expression).to_pylist() == wanted


@pytest.mark.parametrize("name", sorted(CALLS))
@given(texts=TEXTS)
def test_a_function_of_a_text_gives_its_meaning(name: str, texts: list[bytes | None]) -> None:
    for arguments in CALLS[name]:
        check(call(name, *arguments), texts)


@given(texts=TEXTS)
def test_functions_of_functions_of_a_text(texts: list[bytes | None]) -> None:
    inner = call("str_truncate", call("lower", TEXT), number(4))
    check(call("str_suffix", inner, number(2)), texts)
    check(call("str_find", inner, word(b"e")), texts)


def test_two_columns_or_a_null_are_no_function_of_one_text() -> None:
    assert not is_of_text(call("concat", TEXT, OTHER))
    assert not is_of_text(call("concat", TEXT, Literal(None, GsqlType.STRING)))
    assert not is_of_text(call("length", word(b"constant")))
    assert not is_of_text(call("str_suffix", TEXT, Column("n", GsqlType.INT, is_nullable=False)))
