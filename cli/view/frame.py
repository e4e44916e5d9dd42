"""One picture of the view, from the model and the choices of the user."""

from __future__ import annotations

import time
from dataclasses import field
from typing import TYPE_CHECKING

from gscope.cli.render.progress_text import progress_text
from gscope.cli.sinks.table_cells import cell_len, printable
from gscope.cli.view.choices import Page
from gscope.cli.view.help_page import help_lines
from gscope.cli.view.rows.shown_rows import ShownRows
from gscope.cli.view.rows.sparkline import last_epochs, sparkline
from gscope.cli.view.table_part import (
    ASCII,
    UNICODE,
    TableDrawer,
    cell_texts,
    measure_of,
    total_text,
)
from gscope.cli.view.terminal.styles import Line, Span, Style
from gscope.records import dataclass

if TYPE_CHECKING:
    import os
    from collections.abc import Iterator

    from gscope.cli.view.choices import Choices
    from gscope.cli.view.model import LinkState, ViewModel
    from gscope.cli.view.rows.history import Frozen, History

_TOTALS = 30
"""The most epochs in the sparkline of a whole epoch."""

_LEAST_WIDTH, _LEAST_LINES = 40, 10
"""The smallest screen that the view is drawn on, in cells and lines."""

_MORE_LINKS = len(" … 1000 more")
_NOTES_HINT = " (n: all)"


@dataclass(slots=True)
class Frame:
    """The lines of the screen, and what a click on them means.

    Attributes:
        lines: from the top.
        tabs: for each answer the line, the first cell and the cell behind its name.
        heading: the line with the names of columns; None if there is none.
        columns: for each column the first cell, the cell behind it, and its name.
        first_row: the line of the first row; None if no rows are shown.
        page_rows: the number of rows that fit.
        rows: the number of rows that could be shown by scrolling.
        chosen: the place of the chosen row among all rows of the epoch; None if there is none.
    """

    lines: list[Line] = field(default_factory=list)
    tabs: list[tuple[int, int, int]] = field(default_factory=list)
    heading: int | None = None
    columns: list[tuple[int, int, str]] = field(default_factory=list)
    first_row: int | None = None
    page_rows: int = 1
    rows: int = 0
    chosen: int | None = None


class FrameDrawer:
    """Draws pictures of one model.

    Args:
        model: what there is to see.
        choices: what the user has chosen of it.
        has_unicode: whether the terminal shows block characters.
    """

    def __init__(self, model: ViewModel, choices: Choices, *, has_unicode: bool) -> None:
        self._model = model
        self._choices = choices
        self._signs = UNICODE if has_unicode else ASCII
        self._table = TableDrawer(self._signs)
        self.shown = ShownRows()

    def draw(self, size: os.terminal_size) -> Frame:
        """Return the picture for a screen of ``size``."""
        frame = Frame()
        if size.columns < _LEAST_WIDTH or size.lines < _LEAST_LINES:
            text = f"the view needs {_LEAST_WIDTH} columns and {_LEAST_LINES} lines; q quits"
            frame.lines.append([Span(text)])
            return frame
        frame.lines.append(self._title(size.columns))
        self._tabs(frame, size.columns)
        frame.lines += self._account_lines(size.columns)
        match self._choices.page:
            case Page.HELP:
                body = help_lines(size.columns)
                self._scroll(frame, body, size)
            case Page.NOTES:
                self._scroll(frame, list(self._notes()), size)
            case Page.ROW:
                self._scroll(frame, list(self._row_lines()), size)
            case Page.ROWS:
                self._rows(frame, size)
        del frame.lines[size.lines - 1 :]
        frame.lines += [[]] * (size.lines - 1 - len(frame.lines))
        prompt = self._choices.prompt
        if prompt is not None and prompt.error:
            frame.lines[-1] = [Span(f" {printable(prompt.error)}", Style.BAD)]
        frame.lines.append(self._footer())
        return frame

    def _title(self, width: int) -> Line:
        state = self._model.state
        name = printable(self._model.title)
        if state.has_ended:
            what = "ended; q quits"
        else:
            what = progress_text(state.view, time.monotonic(), max(10, width - cell_len(name) - 3))
        return [Span(f" {name}  {what}", Style.TITLE)]

    def _tabs(self, frame: Frame, width: int) -> None:
        """Name the answers, if there are several: from the one that is shown on, if need be."""
        names = [printable(each.answer.query) for each in self._choices.histories]
        if len(names) < 2:
            return
        place, line, at = self._choices.place, [], 0
        widths = [len(f" {number} ") + cell_len(name) + 1 for number, name in enumerate(names, 1)]
        first = 0
        while first < place and sum(widths[first : place + 1]) > width:
            first += 1
        for number in range(first, len(names)):
            text = f" {number + 1} {names[number]} "
            style = Style.CHOSEN if number == place else Style.PLAIN
            line.append(Span(text, style))
            frame.tabs.append((len(frame.lines), at, number))
            at += cell_len(text)
        frame.lines.append([*line, Span("")])

    def _account_lines(self, width: int) -> Iterator[Line]:
        account = self._model.state.account
        if account.links and not self._model.state.has_ended:
            yield self._links(account.links, width)
        if account.equation:
            yield [Span(" "), Span(account.equation, Style.BAD if account.losses else Style.GOOD)]
        if account.losses:
            more = f" and {len(account.losses) - 1} more" if len(account.losses) > 1 else ""
            yield [Span(f" {account.losses[0]}{more}", Style.BAD), Span(_NOTES_HINT, Style.FAINT)]

    def _links(self, links: tuple[LinkState, ...], width: int) -> Line:
        """Return the rate of each link, or for how long it has been silent; the odd ones first."""
        line: Line = []
        used = 0
        odd_first = sorted(
            links,
            key=lambda each: (each.idle_s is None and each.has_packets, not each.lost_packets),
        )
        for place, each in enumerate(odd_first):
            text, style = _link_text(each)
            span = Span(f" {printable(each.name)} {text} ", style)
            room = width if place + 1 == len(links) else width - _MORE_LINKS
            if used + cell_len(span.text) > room and place:
                line.append(Span(f" … {len(links) - place} more", Style.FAINT))
                break
            used += cell_len(span.text)
            line.append(span)
        return line

    def _rows(self, frame: Frame, size: os.terminal_size) -> None:
        choices, history = self._choices, self._choices.history
        shown = choices.shown()
        if shown is None:
            frame.lines.append([])
            frame.lines.append([Span(f" {self._waiting()}", Style.FAINT)])
            return
        answer, choice = history.answer, choices.current
        self.shown.choose(answer, shown, choice.filter, choice.sorting)
        frame.lines.append(self._epoch_line(history, shown, size.columns))
        frame.rows = self.shown.number
        frame.heading = len(frame.lines)
        frame.first_row = frame.heading + 1
        frame.page_rows = max(1, size.lines - 1 - frame.first_row)
        choices.move(choice.row, frame.rows)
        choice.top = max(min(choice.top, choice.row), choice.row - frame.page_rows + 1, 0)
        choice.top = min(choice.top, max(0, frame.rows - frame.page_rows))
        rows = self.shown.page(answer, choice.top, frame.page_rows)
        frame.chosen = self.shown.place(answer, choice.row) if frame.rows else None
        measure = measure_of(answer, choice.sorting)
        greatest = self.shown.greatest(measure) if measure is not None else 0.0
        with self._model.lock:
            part = self._table.draw(
                history,
                shown.epoch,
                rows,
                greatest,
                choice.sorting,
                choice.row - choice.top,
                size.columns,
            )
        frame.columns = part.columns
        frame.lines += [part.heading, *part.rows]

    def _waiting(self) -> str:
        if self._model.state.has_ended:
            return "no rows"
        return "no rows yet: they come when their epoch ends"

    def _epoch_line(self, history: History, shown: Frozen, width: int) -> Line:
        """Return which epoch is shown, how many rows it has, and their sum over the last epochs."""
        answer, choice, epoch = history.answer, self._choices.current, shown.epoch
        line: Line = []
        label = f"{answer.clock.column} {epoch.label}" if answer.clock else "the whole input"
        line.append(Span(f" {printable(label)}", Style.STRONG))
        if choice.frozen is not None:
            latest = history.latest
            behind = 0 if latest is None else latest.number - epoch.number
            line.append(Span(f" FROZEN, {behind:,} behind" if behind else " FROZEN", Style.WARNING))
        rows = self.shown.number
        count = f"{rows:,} {'row' if rows == 1 else 'rows'}"
        if choice.filter.terms:
            count = f"{rows:,} of {shown.table.num_rows:,} rows: {printable(choice.filter.text)}"
        line.append(Span(f"  {count}"))
        recording = self._choices.recorder.current
        if recording is not None and recording.query == answer.query:
            line.append(Span(f" RECORDING {recording.rows:,} rows", Style.WARNING))
        if epoch.rows > shown.table.num_rows:
            line.append(Span(f" ({epoch.rows - shown.table.num_rows:,} not kept)", Style.WARNING))
        if self._model.incomplete(answer.query, epoch.value):
            line.append(Span(" INCOMPLETE", Style.BAD))
        return line + self._totals(history, shown, width - sum(cell_len(s.text) for s in line))

    def _totals(self, history: History, shown: Frozen, left: int) -> Line:
        measure = measure_of(history.answer, self._choices.current.sorting)
        if measure is None or self._choices.current.filter.terms:
            return []
        text = f"  sum of {printable(measure)} {total_text(shown.epoch.sums.get(measure, 0.0))} "
        count = min(_TOTALS, left - cell_len(text) - 1)
        if count < 1:
            return []
        with self._model.lock:
            epochs = last_epochs(history, shown.epoch, count)
        sums = [0.0 if each is None else each.sums.get(measure, 0.0) for each in epochs]
        return [Span(text, Style.FAINT), Span(sparkline(sums, self._signs.blocks), Style.GOOD)]

    def _row_lines(self) -> Iterator[Line]:
        """Yield all values of the chosen row, whole."""
        choices, shown = self._choices, self._choices.shown()
        answer = choices.history.answer
        if shown is None:
            return
        self.shown.choose(answer, shown, choices.current.filter, choices.current.sorting)
        row = self.shown.page(answer, choices.current.row, 1)
        if row.num_rows == 0:
            return
        cells = cell_texts(answer, row)
        width = max(cell_len(name) for name, _ in cells)
        yield []
        for name, text in cells:
            yield [Span(f" {name:>{width}}  ", Style.STRONG), Span(text)]

    def _notes(self) -> Iterator[Line]:
        """Yield all losses, and what the run has notified."""
        account = self._model.state.account
        yield []
        yield [Span(" Losses", Style.STRONG)]
        for loss in account.losses or ("none: every packet is accounted for",):
            yield [Span(f"   {printable(loss)}", Style.BAD if account.losses else Style.GOOD)]
        yield [Span(" Links", Style.STRONG)]
        for link in account.links:
            text, style = _link_text(link)
            yield [Span(f"   {printable(link.name)}: {text}", style)]
        yield [Span(" Notices", Style.STRONG)]
        for notice in self._model.notices or ("none",):
            yield [Span(f"   {printable(notice)}")]

    def _scroll(self, frame: Frame, body: list[Line], size: os.terminal_size) -> None:
        """Show the lines of a page from the place to which the user has scrolled."""
        room = size.lines - 1 - len(frame.lines)
        self._choices.scroll = max(0, min(self._choices.scroll, len(body) - room))
        frame.lines += body[self._choices.scroll :]

    def _footer(self) -> Line:
        choices = self._choices
        if (prompt := choices.prompt) is not None:
            line = [Span(f" {prompt.title}: ", Style.STRONG), Span(printable(prompt.text))]
            return [*line, Span(" ", Style.TITLE), Span("")]
        if choices.message:
            return [Span(f" {printable(choices.message)}", Style.WARNING)]
        if choices.page is not Page.ROWS:
            return [Span(" Esc back  q quit", Style.FAINT)]
        if notices := self._model.notices[self._choices.read_notices :]:
            hint = Span(_NOTES_HINT, Style.FAINT)
            return [Span(f" {printable(notices[-1])}", Style.WARNING), hint]
        keys = "? help  q quit  / filter  ← → sort  r reverse  space freeze  [ ] older, newer"
        if self._signs is ASCII:
            keys = keys.replace("← →", "< >")
        return [Span(f" {keys}", Style.FAINT)]


def _link_text(link: LinkState) -> tuple[str, Style]:
    parts = []
    style = Style.PLAIN
    if link.state and link.state not in ("up", "reading", "ended"):
        parts.append(link.state)
        style = Style.WARNING
    if link.idle_s is not None:
        parts.append(f"silent for {_duration(link.idle_s)}")
        style = Style.WARNING
    elif not link.has_packets:
        parts.append("no packets yet")
        style = Style.WARNING
    elif link.packets_per_second is not None:
        parts.append(f"{link.packets_per_second:,.0f} packets/s")
    if link.lost_packets:
        parts.append(f"{link.lost_packets:,} lost")
        style = Style.BAD
    return ", ".join(parts) or link.state, style


def _duration(seconds: float) -> str:
    whole = int(seconds)
    if whole < 60:
        return f"{whole} s"
    minutes, rest = divmod(whole, 60)
    if minutes < 60:
        return f"{minutes} min {rest} s"
    return f"{minutes // 60} h {minutes % 60} min"
