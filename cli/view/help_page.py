"""The page that ``?`` shows."""

from __future__ import annotations

from gscope.cli.view.terminal.styles import Line, Span, Style

_KEYS = (
    ("Rows", ""),
    ("Up Down PgUp PgDn Home End", "choose a row; the wheel of the mouse scrolls"),
    ("Left Right, or < >", "sort by a column; leftmost: as delivered"),
    ("r, or a click on the heading", "sort in the other direction, by that column"),
    ("Enter, or a click on that row", "show all values of the row, whole"),
    ("p", "save packets of the row, of an ended replay"),
    ("/", "filter the rows, as it is typed"),
    ("Esc", "leave a page, or remove the filter"),
    ("Epochs and queries", ""),
    ("Space, or f", "freeze the rows; again: follow the latest"),
    ("[ ]", "freeze an older epoch, a newer one"),
    ("Tab, Shift-Tab, 1 to 9", "show another query"),
    ("w", "record these rows in a file; again: end it"),
    ("n", "show losses, links and notices"),
    ("Ctrl-L", "draw the screen again"),
    ("q, or Ctrl-C", "end the run; once it has ended: leave"),
    ("Filters", ""),
    ("word", "the text occurs in a cell"),
    ("bytes>64k  srcPort=443", "a number; k, M, G, T: thousands, millions ..."),
    ("srcIP=10.0.0.0/8", "an address, or a network"),
    ("name~example", "the text occurs in that column"),
    ("!word  !srcIP=::1", "turned round; all terms must hold"),
    ('name~"a b"', "a text with a space"),
    ("Columns", ""),
    ("bar", "relative to the greatest of the epoch"),
    ("last epochs", "the row in earlier epochs; 0 if missing"),
)


def help_lines(width: int) -> list[Line]:
    """Return the lines of the help; keys and meanings below each other on a narrow screen."""
    column = max(len(keys) for keys, meaning in _KEYS if meaning) + 3
    lines: list[Line] = []
    for keys, meaning in _KEYS:
        if not meaning:
            lines.append([Span(f" {keys}", Style.STRONG)])
        elif column + len(meaning) + 1 <= width:
            lines.append([Span(f"   {keys:<{column}}", Style.ACCENT), Span(meaning)])
        else:
            lines.append([Span(f"   {keys}", Style.ACCENT)])
            lines.append([Span(f"      {meaning}")])
    return lines
