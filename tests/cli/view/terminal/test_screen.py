"""The screen writes what has changed, and restores the terminal."""

from __future__ import annotations

import os
import pty
import termios
from typing import TYPE_CHECKING

import pytest
from tests.cli.view.emulator import Emulator, written

from gscope.cli.view.terminal.keys import Key
from gscope.cli.view.terminal.screen import TerminalScreen
from gscope.cli.view.terminal.styles import Span, Style

if TYPE_CHECKING:
    from collections.abc import Iterator


class Line:
    """A terminal of 60 by 12, and what it shows."""

    def __init__(self) -> None:
        self.master, self.slave = pty.openpty()
        self.resize(60, 12)
        self.before = termios.tcgetattr(self.slave)
        self.screen = TerminalScreen(os.ttyname(self.slave))

    def resize(self, columns: int, lines: int) -> None:
        termios.tcsetwinsize(self.slave, (lines, columns))
        self.shown = Emulator(columns, lines)

    def draw(self, *texts: str) -> int:
        """Draw lines; return how many characters were written."""
        before = self.shown.written
        self.screen.draw([[Span(text, Style.GOOD)] for text in texts])
        self.read()
        return self.shown.written - before

    def read(self) -> None:
        self.shown.feed(written(self.master, self.slave).decode())


@pytest.fixture
def line() -> Iterator[Line]:
    made = Line()
    yield made
    os.close(made.master)
    os.close(made.slave)


def test_only_lines_that_have_changed_are_written(line: Line) -> None:
    assert line.draw("one", "two", "three") == 3 * 60
    assert line.shown.lines[:3] == ["one", "two", "three"]
    assert line.draw("one", "two", "three") == 0
    assert line.draw("one", "2", "three") == 60
    assert line.shown.lines[:4] == ["one", "2", "three", ""]
    assert line.draw("one") == 0
    assert line.shown.text.strip() == "one"
    line.screen.redraw()
    assert line.draw("one") == 60
    line.resize(30, 5)
    assert line.draw("one") == 30
    line.screen.close()


def test_keys_are_read_singly_and_the_terminal_is_as_it_was(line: Line) -> None:
    assert line.screen.events(0) == []
    os.write(line.master, b"\x03a")
    assert line.screen.events(5) == [Key("interrupt"), Key("a", is_character=True)]
    os.write(line.master, b"\x1b")
    assert line.screen.events(5) == []
    assert line.screen.events(5) == [Key("escape")]
    line.screen.close()
    line.read()
    assert termios.tcgetattr(line.slave) == line.before
    assert not {"1049", "1000", "1006"} & line.shown.modes
    assert {"7", "25"} <= line.shown.modes


def test_a_terminal_that_is_gone_ends_the_view() -> None:
    made = Line()
    os.close(made.master)
    with pytest.raises(EOFError):
        made.screen.events(5)
    made.screen.close()
    os.close(made.slave)
