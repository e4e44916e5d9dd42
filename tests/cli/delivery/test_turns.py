"""Rows of several results in turn: their order stays, and text is made for many turns at once."""

from __future__ import annotations

import io
import json
from typing import TYPE_CHECKING

import pyarrow as pa
import pytest

from gscope.cli.delivery import turns as turns_module
from gscope.cli.delivery.checkpoint import StreamPosition
from gscope.cli.delivery.delivery import Delivery
from gscope.cli.delivery.turns import Turns
from gscope.cli.sinks.replay_files import StreamSink
from gscope.engine.sinks import text
from gscope.engine.sinks.columns import readable
from gscope.engine.sinks.pieces import PIECE_BYTES
from gscope.queries.compile import CompileContext, QueryText, compile_queries
from gscope.queries.expressions.schema import ColumnSchema, Schema
from gscope.queries.expressions.types import GsqlType

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

TWO = "Query all: SELECT time, srcPort FROM TCP; Query some: SELECT time, len FROM TCP"
BEGIN = 1_700_000_000
SECONDS = 500


def test_text_is_made_once_for_hundreds_of_rounds(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    calls: list[str] = []

    def counted(name: str, work: Callable[..., object]) -> Callable[..., object]:
        def count(*arguments: object) -> object:
            calls.append(name)
            return work(*arguments)

        return count

    monkeypatch.setattr(turns_module, "readable", counted("readable", readable))
    monkeypatch.setattr(text, "_ndjson_lines", counted("lines", text._ndjson_lines))
    context = CompileContext(("a",), is_repeatable=True, is_interleaved=True)
    program = compile_queries([QueryText(TWO, "q")], context).program
    stdout = io.BytesIO()
    sink = StreamSink(stdout, "ndjson", ["all", "some"])
    answers = Delivery(program, tmp_path, sink, is_interleaved=True)
    answers.begin()
    times = pa.array(range(BEGIN, BEGIN + SECONDS))
    values = pa.array(range(SECONDS))
    rows = [
        ("all", iter([pa.table({"time": times, "srcPort": values})])),
        ("some", iter([pa.table({"time": times, "len": values})])),
    ]
    ended = {f"{query}@a": StreamPosition(has_ended=True) for query in ("all", "some")}
    answers.on_rows(rows, ended, lambda _: None, is_last=True)
    found = [json.loads(line) for line in stdout.getvalue().splitlines()]
    assert found == [
        {"query": query, "time": BEGIN + second, column: second}
        for second in range(SECONDS)
        for query, column in (("all", "srcPort"), ("some", "len"))
    ]
    assert answers.rows == {"all": SECONDS, "some": SECONDS}
    # The very first row alone, and then all others.
    assert calls == ["readable", "lines", "readable", "readable", "lines", "lines"]


@pytest.mark.parametrize("size", [3, PIECE_BYTES // 2, PIECE_BYTES])
def test_rows_with_long_text_stay_in_order_and_in_pieces(size: int) -> None:
    schemas = {
        "long": Schema((ColumnSchema("s", GsqlType.STRING),)),
        "short": Schema((ColumnSchema("n", GsqlType.INT),)),
    }
    turns = Turns(schemas)
    turns.add("short", pa.table({"n": [1]}))
    turns.add("long", pa.table({"s": pa.array([b"a" * size, b"b" * size, b"c"], pa.binary())}))
    turns.add("short", pa.table({"n": [2]}))
    assert turns.is_full == (size > 3)
    given = list(turns.take())
    rows = [(query, value) for query, part in given for value in part.columns[0].to_pylist()]
    assert [(query, str(value)[0]) for query, value in rows] == [
        ("short", "1"),
        *(("long", first) for first in "abc"),
        ("short", "2"),
    ]
    assert len(given) == (3 if 2 * size < PIECE_BYTES else 4 if 2 * size == PIECE_BYTES else 5)
    assert not list(turns.take())
    assert not turns.is_full
