"""Cells of a table: text that is safe on a terminal, its width there, padding and folding."""

from __future__ import annotations

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


def cell_len(text: str) -> int:
    """Return the number of terminal cells of a text; East Asian characters take two."""
    if text.isascii():
        return len(text)
    from rich import cells

    return cells.cell_len(text)


def printable(text: str, encoding: str | None = None) -> str:
    """Return a text with escapes for what a terminal would obey, or ``encoding`` lacks."""
    if not text.isprintable():
        text = "".join(
            c if c.isprintable() else c.encode("unicode_escape").decode("ascii") for c in text
        )
    if encoding is not None and not text.isascii():
        text = text.encode(encoding, "backslashreplace").decode(encoding)
    return text


def printable_column(column: pa.Array, encoding: str | None) -> pa.Array:
    """Return a column of texts, each ``printable``; NULL stays NULL."""
    if not pc.any(pc.match_substring_regex(column, _NOT_PLAIN)).as_py():
        return column
    return for_each_distinct(column, lambda text: printable(text, encoding))


def cell_lengths(column: pa.Array) -> NDArray[np.int64]:
    """Return the number of terminal cells of each text in a column without NULL."""
    lengths: NDArray[np.int64] = pc.utf8_length(column).to_numpy().astype(np.int64)
    if pc.all(pc.string_is_ascii(column)).as_py() is False:
        encoded = column.dictionary_encode()
        distinct = np.array([cell_len(text) for text in encoded.dictionary.to_pylist()], np.int64)
        lengths = distinct[encoded.indices.to_numpy()]
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
    from rich.cells import chop_cells

    lines = chop_cells(text, width) or [""]
    # rich leaves out a last line whose characters take no cells.
    lines[-1] += text[sum(map(len, lines)) :]
    return lines
