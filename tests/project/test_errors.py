"""How errors in queries are reported."""

from __future__ import annotations

import pytest

from gscope.errors import GsqlError, Position


def test_an_error_that_no_text_is_to_blame_for_is_a_sentence() -> None:
    assert GsqlError("no query declares x", remedy="leave it out").report() == (
        "no query declares x\n  leave it out"
    )


@pytest.mark.parametrize("column", [1, 50, 101, 102, 5_000, 9_998])
def test_of_a_long_line_the_part_around_the_place_is_shown(column: int) -> None:
    line = "".join(chr(ord("a") + n % 26) for n in range(9_999))
    report = GsqlError("wrong", text=line, position=Position(1, column, 3)).report()
    headline, shown, marks = report.splitlines()
    assert headline == f"query:1:{column}: wrong"
    assert len(shown) < 200
    begin = marks.index("^")
    assert shown[begin : begin + 2] == line[column - 1 : column + 1]
    assert shown.startswith("  1 | …") == (column > 101)


def test_a_short_line_is_shown_as_it_is() -> None:
    report = GsqlError("wrong", text="\tx y", position=Position(1, 4, 9), source="a.gsql").report()
    assert report == "a.gsql:1:4: wrong\n  1 | \tx y\n    | \t  ^"
