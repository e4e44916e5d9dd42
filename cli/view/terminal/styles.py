"""Styled text: what stands on a line of the screen, in at most 16 colours."""

from __future__ import annotations

from enum import Enum
from typing import NamedTuple

from gscope.cli.sinks.table_cells import cell_len


class Style(Enum):
    """How text looks; the value is the SGR code with colours, and the one without."""

    PLAIN = ("", "")
    STRONG = ("1", "1")
    FAINT = ("2", "2")
    GOOD = ("32", "")
    WARNING = ("33", "1")
    BAD = ("1;31", "1")
    ACCENT = ("36", "")
    TITLE = ("7", "7")
    CHOSEN = ("1;7", "1;7")


class Span(NamedTuple):
    """A piece of a line."""

    text: str
    style: Style = Style.PLAIN


Line = list[Span]


def fitted(text: str, width: int, *, is_right: bool = False, mark: str = "…") -> str:
    """Return a text in exactly ``width`` cells; what does not fit ends in ``mark``."""
    length = cell_len(text)
    if length > width:
        text = cut(text, width - len(mark)) + mark if width > len(mark) else cut(text, width)
        length = cell_len(text)
    space = " " * (width - length)
    return space + text if is_right else text + space


def cut(text: str, width: int) -> str:
    """Return the beginning of a text that takes at most ``width`` cells."""
    if text.isascii():
        return text[: max(0, width)]
    while cell_len(text) > max(0, width):
        text = text[:-1]
    return text


def cropped(line: Line, width: int) -> Line:
    """Return a line of exactly ``width`` cells: cut, or filled with spaces in its last style."""
    result: Line = []
    left = width
    for span in line:
        if left <= 0:
            break
        text = cut(span.text, left)
        left -= cell_len(text)
        result.append(Span(text, span.style))
    if left > 0:
        last = line[-1].style if line else Style.PLAIN
        is_filled = last in (Style.TITLE, Style.CHOSEN)
        result.append(Span(" " * left, last if is_filled else Style.PLAIN))
    return result


def encoded(line: Line, *, has_colours: bool) -> str:
    """Return a line as text with SGR sequences."""
    parts = []
    for span in line:
        code = span.style.value[0 if has_colours else 1]
        parts.append(f"\x1b[{code}m{span.text}\x1b[m" if code and span.text else span.text)
    return "".join(parts)


def plain(line: Line) -> str:
    """Return the text of a line."""
    return "".join(span.text for span in line)
