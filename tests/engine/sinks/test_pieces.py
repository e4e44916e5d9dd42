"""Tables with large values become text in bounded pieces, and long values are truncated."""

from __future__ import annotations

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gscope.engine.sinks.columns import readable
from gscope.engine.sinks.pieces import MOST_BYTES, PIECE_BYTES, bounded_pieces
from gscope.queries.expressions.schema import ColumnSchema, Schema
from gscope.queries.expressions.types import GsqlType

SCHEMA = Schema((ColumnSchema("n", GsqlType.INT), ColumnSchema("s", GsqlType.STRING)))


def table_of(sizes: list[int | None], *, is_dictionary: bool = False) -> pa.Table:
    values = pa.array([None if n is None else bytes(n) for n in sizes], pa.binary())
    column = values.dictionary_encode() if is_dictionary else values
    return pa.table({"n": pa.array(range(len(sizes)), pa.int64()), "s": column})


@given(
    st.lists(st.none() | st.sampled_from([0, 1, 999, PIECE_BYTES // 3, PIECE_BYTES + 1])),
    st.booleans(),
)
def test_pieces_are_small_and_all_the_rows(sizes: list[int | None], is_dictionary: bool) -> None:
    table = table_of(sizes, is_dictionary=is_dictionary)
    pieces = list(bounded_pieces(table, SCHEMA))
    assert [n for piece in pieces for n in piece["n"].to_pylist()] == list(range(len(sizes)))
    for piece in pieces:
        held = sum(sizes[n] or 0 for n in piece["n"].to_pylist())
        assert piece.num_rows == 1 or held <= PIECE_BYTES


@pytest.mark.parametrize("extra", [0, 1])
def test_a_long_value_is_cut_and_says_how_long_it_is(extra: int) -> None:
    (text,) = readable(table_of([MOST_BYTES + extra]), SCHEMA)["s"].to_pylist()
    whole = "\\x00" * MOST_BYTES
    assert text == (f"{whole}… ({MOST_BYTES + 1} bytes)" if extra else whole)
