from __future__ import annotations

import io
import threading

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gscope.engine.sinks.columns import readable
from gscope.engine.sinks.parallel import ROWS_AT_ONCE, by_pieces, side_by_side
from gscope.engine.sinks.text import write_csv, write_ndjson
from gscope.queries.expressions.schema import ColumnSchema, Schema
from gscope.queries.expressions.types import GsqlType

_ROWS = 3 * ROWS_AT_ONCE + 7


@given(st.lists(st.integers(0, 9), max_size=40))
def test_results_come_in_the_order_of_the_items(items: list[int]) -> None:
    assert list(side_by_side(lambda item: item * 2, items)) == [item * 2 for item in items]


def test_one_item_is_done_by_the_caller() -> None:
    (thread,) = side_by_side(lambda _item: threading.current_thread(), [0])
    assert thread is threading.current_thread()


def test_what_fails_in_a_thread_fails_for_the_caller() -> None:
    with pytest.raises(ZeroDivisionError):
        list(side_by_side(lambda item: 1 // item, [1, 0, 1]))


def test_pieces_make_up_the_table() -> None:
    table = pa.table({"n": range(_ROWS)})
    assert pa.concat_tables(by_pieces(lambda piece: piece, table)) == table
    assert list(by_pieces(lambda piece: piece, table.slice(0, 0))) == []


def test_a_long_table_reads_like_its_rows_one_by_one() -> None:
    schema = Schema((ColumnSchema("n", GsqlType.INT, True), ColumnSchema("a", GsqlType.IP, True)))
    addresses = [bytes(10) + b"\xff\xff\x0a\x00\x00" + bytes([n % 251]) for n in range(_ROWS)]
    addresses[70_000] = bytes(15) + b"\x01"
    table = readable(pa.table({"n": range(_ROWS), "a": pa.array(addresses, pa.binary(16))}), schema)
    shown = [f"10.0.0.{n % 251}" for n in range(_ROWS)]
    shown[70_000] = "::1"
    text = io.BytesIO()
    write_csv(table, text)
    lines = text.getvalue().decode().splitlines()
    assert lines == [f"{n},{address}" for n, address in enumerate(shown)]
    objects = io.BytesIO()
    write_ndjson(table, objects)
    assert objects.getvalue().count(b"\n") == _ROWS
