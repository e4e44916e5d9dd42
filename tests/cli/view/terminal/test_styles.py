"""Lines of exactly the cells that a screen has."""

from __future__ import annotations

import pytest

from gscope.cli.sinks.table_cells import cell_len
from gscope.cli.view.terminal.styles import Span, Style, cropped, encoded, fitted, plain


@pytest.mark.parametrize("text", ["", "abc", "日本語のテキスト", "aé日", "x" * 50])
@pytest.mark.parametrize("width", [1, 2, 3, 7, 20])
def test_text_and_lines_take_the_cells_they_are_given(text: str, width: int) -> None:
    for is_right in (False, True):
        assert cell_len(fitted(text, width, is_right=is_right)) == width
    for span in (Span(text), Span(text, Style.TITLE)):
        assert cell_len(plain(cropped([span, Span("!")], width))) == width


def test_what_is_cut_is_marked() -> None:
    assert fitted("abcdef", 4) == "abc…"
    assert fitted("日本語", 4) == "日… "
    assert fitted("abcdef", 4, mark="~") == "abc~"


def test_colours_and_none() -> None:
    line = [Span("a"), Span("b", Style.BAD), Span("c", Style.GOOD)]
    assert encoded(line, has_colours=True) == "a\x1b[1;31mb\x1b[m\x1b[32mc\x1b[m"
    assert encoded(line, has_colours=False) == "a\x1b[1mb\x1b[mc"
