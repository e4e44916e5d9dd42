"""Files of watchlists are read as values, or the error names the invalid line."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from gscope.engine.storage.watchlists import read_watchlist
from gscope.errors import EngineError
from gscope.queries.expressions.schema import ColumnSchema, Schema
from gscope.queries.expressions.types import GsqlType
from gscope.queries.plan.logical import Watchlist

if TYPE_CHECKING:
    from pathlib import Path

V4 = 0xFFFF << 32


def watchlist(folder: Path, text: bytes, *kinds: GsqlType) -> Watchlist:
    path = folder / "list.csv"
    path.write_bytes(text)
    columns = (ColumnSchema(f"c{n}", kind) for n, kind in enumerate(kinds))
    return Watchlist("list", str(path), Schema(tuple(columns)))


def test_fields_are_read_by_their_types(tmp_path: Path) -> None:
    text = b"10.0.0.1, -5, 2.5, true, aa:bb:cc:dd:ee:ff, 12.5, 5 sec, some text\n"
    kinds = (
        *(GsqlType.IP, GsqlType.INT, GsqlType.FLOAT, GsqlType.BOOL, GsqlType.MAC),
        *(GsqlType.TIMESTAMP, GsqlType.INTERVAL, GsqlType.STRING),
    )
    assert read_watchlist(watchlist(tmp_path, text, *kinds)) == [
        (
            V4 | 0x0A000001,
            -5,
            2.5,
            True,
            0xAABBCCDDEEFF,
            12_500_000_000,
            5_000_000_000,
            b"some text",
        )
    ]


def test_headings_comments_and_empty_lines_are_no_rows(tmp_path: Path) -> None:
    text = b'\xef\xbb\xbfc0,c1\n# one\n\n1,a\r\n , \n0x10, "b, c"\n'
    table = watchlist(tmp_path, text, GsqlType.INT, GsqlType.STRING)
    assert read_watchlist(table) == [(1, b"a"), (16, b"b, c")]


def test_an_empty_field_is_null_and_of_a_text_empty(tmp_path: Path) -> None:
    text = b"1,,\n"
    table = watchlist(tmp_path, text, GsqlType.INT, GsqlType.IP, GsqlType.STRING)
    assert read_watchlist(table) == [(1, None, b"")]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (b"1\n10.0.0.999\n", "list.csv:2: invalid INT: '10.0.0.999'"),
        (
            b"1,2\n",
            "list.csv:1: invalid number of fields:"
            " expected 1, as the watchlist list declares, got 2",
        ),
        (b"99999999999999999999\n", "invalid INT"),
        (b"\xff\xfe\n", "cannot read"),
        (b'1\n"', "unexpected end of data"),
    ],
)
def test_an_invalid_line_is_reported(tmp_path: Path, text: bytes, message: str) -> None:
    with pytest.raises(EngineError) as caught:
        read_watchlist(watchlist(tmp_path, text, GsqlType.INT))
    assert message in str(caught.value)


def test_a_file_that_is_not_there_is_reported(tmp_path: Path) -> None:
    table = Watchlist("list", str(tmp_path / "none.csv"), Schema(()))
    with pytest.raises(EngineError, match=r"cannot read watchlist list from .*none\.csv"):
        read_watchlist(table)
