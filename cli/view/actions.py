"""What each key and each click does."""

from __future__ import annotations

from enum import Enum
from typing import TYPE_CHECKING

from gscope.cli.view.choices import Page
from gscope.cli.view.terminal.keys import Click, Key

if TYPE_CHECKING:
    from collections.abc import Callable

    from gscope.cli.view.choices import Choices
    from gscope.cli.view.frame import Frame
    from gscope.cli.view.terminal.keys import Event

_WHEEL_ROWS = 3


class Request(Enum):
    """What a key asks for that is not a choice of what to see."""

    QUIT = "end the run, or leave a view of one that has ended"
    REDRAW = "show all lines again"
    PACKETS = "save the packets of the row that is chosen in the next picture"


class Actions:
    """Changes the choices of the user.

    Args:
        choices: what is changed.
    """

    def __init__(self, choices: Choices) -> None:
        self._choices = choices

    def on(self, event: Event, frame: Frame) -> Request | None:
        """Handle a key or a click on the picture ``frame``; return what it asks for besides."""
        self._choices.message = ""
        if isinstance(event, Click):
            self._on_click(event, frame)
            return None
        if event.name == "interrupt":
            return Request.QUIT
        if event.name == "redraw":
            return Request.REDRAW
        if self._choices.prompt is not None:
            self._on_typed(event)
            return None
        if event.name in ("q", "Q", "quit"):
            return Request.QUIT
        if event.name == "p" and self._choices.page is Page.ROWS:
            # Keys before this one may not be in the picture yet.
            return Request.PACKETS
        self._on_key(event, frame)
        return None

    def _on_key(self, key: Key, frame: Frame) -> None:
        choices = self._choices
        pages = {"?": Page.HELP, "h": Page.HELP, "help": Page.HELP, "n": Page.NOTES}
        if key.name in pages:
            self._turn_to(pages[key.name])
        elif key.name in ("tab", "back-tab"):
            choices.show_answer(choices.place + (1 if key.name == "tab" else -1))
        elif key.is_character and key.name in "123456789":
            if int(key.name) <= len(choices.histories):
                choices.show_answer(int(key.name) - 1)
        elif key.name == "escape" and choices.page is Page.ROWS:
            choices.clear_filter()
        elif key.name in ("escape", "enter") and choices.page is not Page.ROWS:
            self._turn_to(Page.ROWS)
        elif choices.page is Page.ROWS:
            self._on_rows(key, frame)
        else:
            self._scroll(key)

    def _turn_to(self, page: Page) -> None:
        """Show a page; the same page again: the rows."""
        choices = self._choices
        choices.page = Page.ROWS if choices.page is page else page
        choices.scroll = 0
        if page is Page.NOTES:
            choices.read_all_notices()

    def _on_rows(self, key: Key, frame: Frame) -> None:
        choices, row = self._choices, self._choices.current.row
        moves = {
            "up": row - 1,
            "k": row - 1,
            "down": row + 1,
            "j": row + 1,
            "page-up": row - frame.page_rows,
            "page-down": row + frame.page_rows,
            "home": 0,
            "g": 0,
            "end": frame.rows - 1,
            "G": frame.rows - 1,
        }
        if key.name in moves:
            choices.move(moves[key.name], frame.rows)
            return
        actions: dict[str, Callable[[], object]] = {
            "right": lambda: choices.sort_beside(1),
            ">": lambda: choices.sort_beside(1),
            "left": lambda: choices.sort_beside(-1),
            "<": lambda: choices.sort_beside(-1),
            "r": choices.reverse,
            " ": choices.freeze,
            "f": choices.freeze,
            "[": lambda: choices.step_epoch(-1),
            "]": lambda: choices.step_epoch(1),
            "/": choices.ask_filter,
            "w": choices.record,
            "enter": lambda: self._open(frame),
        }
        if (action := actions.get(key.name)) is not None:
            action()

    def _open(self, frame: Frame) -> None:
        if frame.rows:
            self._turn_to(Page.ROW)

    def _scroll(self, key: Key) -> None:
        pages = {"up": -1, "k": -1, "down": 1, "j": 1, "page-up": -10, "page-down": 10}
        self._choices.scroll = max(0, self._choices.scroll + pages.get(key.name, 0))

    def _on_typed(self, key: Key) -> None:
        choices = self._choices
        assert choices.prompt is not None
        text = choices.prompt.text
        if key.is_character:
            choices.type(text + key.name)
        elif key.name == "backspace":
            choices.type(text[:-1])
        elif key.name == "erase-line":
            choices.type("")
        elif key.name == "enter":
            choices.accept_prompt()
        elif key.name == "escape":
            choices.cancel_prompt()

    def _on_click(self, click: Click, frame: Frame) -> None:
        choices = self._choices
        if choices.page is not Page.ROWS:
            if click.button != "left":
                self._scroll(Key("up" if click.button == "wheel-up" else "down"))
            elif not self._on_tab(click, frame):
                self._turn_to(Page.ROWS)
        elif click.button != "left":
            by = _WHEEL_ROWS if click.button == "wheel-down" else -_WHEEL_ROWS
            choices.move(choices.current.row + by, frame.rows)
        elif not self._on_tab(click, frame):
            self._on_table(click, frame)

    def _on_tab(self, click: Click, frame: Frame) -> bool:
        """Show the answer whose name was clicked; return whether it was one."""
        found = [
            place for line, at, place in frame.tabs if line == click.line and at <= click.column
        ]
        if found:
            self._choices.show_answer(found[-1])
        return bool(found)

    def _on_table(self, click: Click, frame: Frame) -> None:
        choices = self._choices
        if click.line == frame.heading:
            for begin, end, name in frame.columns:
                if begin <= click.column <= end:
                    choices.sort_by(name)
        elif frame.first_row is not None and click.line >= frame.first_row:
            row = choices.current.top + click.line - frame.first_row
            if row >= min(frame.rows, choices.current.top + frame.page_rows):
                return
            if row == choices.current.row:
                self._open(frame)
            choices.move(row, frame.rows)
