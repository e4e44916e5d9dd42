"""The page that ``?`` shows."""

from __future__ import annotations

from gscope.cli.view.terminal.styles import Line, Span, Style

_KEYS = (
    ("Rows", ""),
    ("Up Down PgUp PgDn Home End", "choose a row; the wheel of the mouse scrolls"),
    ("Left Right, or < >", "sort by another column; left of the first: as delivered"),
    ("r, or a click on the heading", "sort in the other direction, by that column"),
    ("Enter, or a click on that row", "show all values of the row, whole"),
    ("/", "filter the rows of this query; takes effect as it is typed"),
    ("Esc", "leave a page, or remove the filter"),
    ("Epochs and queries", ""),
    ("Space, or f", "freeze the rows on the screen; again: follow the latest epoch"),
    ("[ ]", "freeze an older epoch, a newer one"),
    ("Tab, Shift-Tab, 1 to 9", "show another query"),
    ("n", "show losses, links and notices"),
    ("Ctrl-L", "draw the screen again"),
    ("q, or Ctrl-C", "end the run and its view; once it has ended: leave the view"),
    ("Filters", ""),
    ("word", "the text occurs in a cell"),
    ("bytes>64k  srcPort=443", "a number, with k, M, G or T for thousands, millions, ..."),
    ("srcIP=10.0.0.0/8", "an address, or a network"),
    ("name~example", "the text occurs in that column; = < > compare whole texts"),
    ("!word  !srcIP=::1", "turned round; terms with a space between must all hold"),
    ('name~"a b"', "a text with a space"),
    ("Columns", ""),
    ("bar", "the value relative to the greatest of the epoch"),
    ("last epochs", "the same row in earlier epochs, one character each; 0 if it is missing"),
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
