"""Tables without lines, in which names may be truncated but figures never are."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rich.text import Text

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from rich.console import Console, ConsoleOptions

_LEAST = 8
"""Names are truncated to this many columns at least."""

_RIGHT, _LEFT = ">", "="
_GAP = 2


class StatusTable:
    """Rows below headings, as wide as the cells need or the terminal allows; a rich renderable.

    Args:
        headings: ``>`` before a heading marks figures, which are right-justified and never
            truncated; ``=`` marks words that are never truncated; other columns may be.
        rows: the rows, each with one cell for each heading.
    """

    def __init__(self, headings: Sequence[str], rows: Sequence[Sequence[str | Text]]) -> None:
        self._names = [heading.lstrip(_RIGHT + _LEFT) for heading in headings]
        self._is_right = [heading.startswith(_RIGHT) for heading in headings]
        self._is_fixed = [heading.startswith((_RIGHT, _LEFT)) for heading in headings]
        self._rows = [[Text(c) if isinstance(c, str) else c for c in row] for row in rows]

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> Iterator[Text]:
        """Yield the lines of the table."""
        widths = self._widths(options.max_width)
        yield self._line([Text(name, "bold") for name in self._names], widths)
        for row in self._rows:
            yield self._line(row, widths)

    def _widths(self, limit: int) -> list[int]:
        """Return the widths of the columns; if ``limit`` is exceeded, the widest ones shrink."""
        widths = [
            max([len(name), *(row[place].cell_len for row in self._rows)])
            for place, name in enumerate(self._names)
        ]
        excess = sum(widths) + _GAP * (len(widths) - 1) - limit
        while excess > 0:
            cuttable = [
                n for n, width in enumerate(widths) if width > _LEAST and not self._is_fixed[n]
            ]
            if not cuttable:
                break
            widths[max(cuttable, key=lambda n: widths[n])] -= 1
            excess -= 1
        return widths

    def _line(self, cells: Sequence[Text], widths: Sequence[int]) -> Text:
        line = Text(no_wrap=True, overflow="ellipsis")
        for place, (cell, width) in enumerate(zip(cells, widths, strict=True)):
            shown = cell.copy()
            shown.truncate(width, overflow="ellipsis")
            shown.align("right" if self._is_right[place] else "left", width)
            line.append_text(shown)
            line.append(" " * _GAP)
        line.rstrip()
        return line
