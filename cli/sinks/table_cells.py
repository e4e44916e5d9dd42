"""Cells of a table: text that is safe on a terminal, its width there, padding and folding."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from gscope.engine.sinks.columns import for_each_distinct

if TYPE_CHECKING:
    from numpy.typing import NDArray

HANGING = 2
"""The indent of the second and further lines of a folded cell."""

_NOT_PLAIN = r"[^\x20-\x7e]"


_UNKNOWN = -1
_widths_of_characters = np.full(sys.maxunicode + 1, _UNKNOWN, np.int8)
"""The cells of each character, filled as characters come: rich takes a microsecond for one."""


def cell_len(text: str) -> int:
    """Return the number of terminal cells of a text, as wcswidth(3).

    East Asian characters take two. A terminal shows no sequence of characters as one: those that
    join others are escaped.
    """
    return len(text) if text.isascii() else int(_character_widths(text).sum())


def _character_widths(text: str) -> NDArray[np.int64]:
    """Return the number of cells of each character."""
    codes = np.frombuffer(text.encode("utf-32-le"), np.uint32)
    widths = _widths_of_characters[codes]
    if (widths == _UNKNOWN).any():
        from rich.cells import get_character_cell_size

        for code in np.unique(codes[widths == _UNKNOWN]).tolist():
            _widths_of_characters[code] = max(0, get_character_cell_size(chr(code)))
        widths = _widths_of_characters[codes]
    return widths.astype(np.int64)


def printable(text: str, encoding: str | None = None) -> str:
    """Return a text with escapes for what a terminal would obey, or ``encoding`` lacks."""
    if not text.isprintable():
        text = "".join(c if c.isprintable() else _escaped(c) for c in text)
    if encoding is not None and not text.isascii():
        try:
            text.encode(encoding)
        except UnicodeEncodeError:
            text = "".join(c if _is_in(c, encoding) else _escaped(c) for c in text)
    return text


def _escaped(character: str) -> str:
    r"""Return the escape of a character; ``\xNN`` would be a byte that is not text."""
    code = ord(character)
    return f"\\u{code:04x}" if code < 1 << 16 else f"\\U{code:08x}"


def _is_in(character: str, encoding: str) -> bool:
    return character.encode(encoding, "ignore") != b""


def printable_column(column: pa.Array, encoding: str | None) -> pa.Array:
    """Return a column of texts, each ``printable``; NULL stays NULL."""
    if not pc.any(pc.match_substring_regex(column, _NOT_PLAIN)).as_py():
        return column
    return for_each_distinct(column, lambda text: printable(text, encoding))


def cell_lengths(column: pa.Array) -> NDArray[np.int64]:
    """Return the number of terminal cells of each text in a column without NULL."""
    lengths: NDArray[np.int64] = pc.utf8_length(column).to_numpy().astype(np.int64)
    if pc.all(pc.string_is_ascii(column)).as_py() is False:
        sums = np.concatenate([[0], np.cumsum(_character_widths("".join(column.to_pylist())))])
        ends = np.cumsum(lengths)
        lengths = sums[ends] - sums[ends - lengths]
    return lengths


def padded_column(column: pa.Array, width: int, *, is_right: bool) -> pa.Array:
    """Return a column padded to ``width`` cells; no text may be wider."""
    if pc.all(pc.string_is_ascii(column)).as_py() is not False:
        return (pc.utf8_lpad if is_right else pc.utf8_rpad)(column, width)
    return for_each_distinct(column, lambda text: padded(text, width, is_right=is_right))


def padded(text: str, width: int, *, is_right: bool = False) -> str:
    """Return a text padded to ``width`` cells."""
    space = " " * (width - cell_len(text))
    return space + text if is_right else text + space


def folded(text: str, width: int) -> list[str]:
    """Return a text in lines of at most ``width`` cells; all but the first are indented.

    Without the indents, the lines together are the text. ``width`` is at least 4.
    """
    lines = _chopped(text, width)
    if len(lines) == 1:
        return lines
    first = lines[0]
    further = _chopped(text[len(first) :], width - HANGING)
    return [first, *(" " * HANGING + line for line in further)]


def _chopped(text: str, width: int) -> list[str]:
    if text.isascii():
        return [text[at : at + width] for at in range(0, len(text), width)] or [""]
    ends, at, lines = np.cumsum(_character_widths(text)), 0, []
    while at < len(text):
        begun = int(ends[at - 1]) if at else 0
        # Characters without a width stay with those before them.
        end = max(at + 1, int(np.searchsorted(ends, begun + width, side="right")))
        lines.append(text[at:end])
        at = end
    return lines
