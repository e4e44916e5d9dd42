"""The screen of a terminal: its modes, and the lines that have changed.

Sequences are those that xterm, the Linux console, tmux, screen and the terminals derived from them
share: a cursor position, the end of a line, 16 colours, the alternate screen, SGR mouse reports.
"""

from __future__ import annotations

import os
import select
import sys
import termios
from typing import TYPE_CHECKING, Protocol

from gscope.cli.view.terminal.keys import KeyReader
from gscope.cli.view.terminal.styles import cropped, encoded
from gscope.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from gscope.cli.view.terminal.keys import Event
    from gscope.cli.view.terminal.styles import Line

_ENTER = "\x1b[?1049h\x1b[?25l\x1b[?1000h\x1b[?1006h\x1b[?7l\x1b[2J"
_LEAVE = "\x1b[?1006l\x1b[?1000l\x1b[?7h\x1b[m\x1b[?25h\x1b[?1049l"
_ERASE = "\x1b[K"
_ESCAPE_S = 0.05
"""Seconds after which an escape character is the key, and not the beginning of a sequence."""

CONTROLLING = "/dev/tty"
"""The terminal that controls a process."""


class Screen(Protocol):
    """What the view is drawn on."""

    @property
    def size(self) -> os.terminal_size:
        """The cells of a line and the lines."""

    @property
    def has_unicode(self) -> bool:
        """Whether block characters can be shown."""

    def draw(self, lines: Sequence[Line]) -> None:
        """Show lines from the top; those below are empty."""

    def redraw(self) -> None:
        """Show all lines again at the next ``draw``."""

    def events(self, timeout_s: float) -> list[Event]:
        """Return keys and clicks, as soon as there are any or after ``timeout_s``.

        Raises:
            EOFError: the terminal is gone.
        """


def ensure_terminal() -> None:
    """Check that there is a terminal that the view can be drawn on.

    Raises:
        UsageError: standard output is none, or it cannot move the cursor.
    """
    if not sys.stdout.isatty():
        message = (
            "the view needs a terminal, but standard output is a pipe or a file; choose another"
            " format, such as -o table or -o ndjson"
        )
        raise UsageError(message)
    if (name := os.environ.get("TERM", "dumb")) in ("", "dumb", "unknown"):
        message = (
            f"the view needs a terminal that moves the cursor, and TERM is {name or 'empty'}; set"
            " TERM, for example to xterm, or choose -o table"
        )
        raise UsageError(message)
    try:
        os.close(os.open(CONTROLLING, os.O_RDWR | os.O_NOCTTY))
    except OSError as error:
        message = "the view reads keys from the terminal that controls the process, and it has none"
        raise UsageError(message) from error


class TerminalScreen:
    r"""The terminal that controls the process, until ``close``.

    Keys are read from it even if standard input is a pipe with packets. Ctrl-C and Ctrl-\ are keys
    meanwhile, and Ctrl-Z and Ctrl-S do nothing.

    Args:
        path: of the terminal.
    """

    def __init__(self, path: str = CONTROLLING) -> None:
        self._descriptor = os.open(path, os.O_RDWR | os.O_NOCTTY)
        self._reader = KeyReader()
        self._has_colours = not os.environ.get("NO_COLOR")
        self._shown: list[str] = []
        self._size = self.size
        self._before = termios.tcgetattr(self._descriptor)
        mode = termios.tcgetattr(self._descriptor)
        mode[0] &= ~(termios.IXON | termios.ICRNL)
        mode[3] &= ~(termios.ICANON | termios.ECHO | termios.ISIG | termios.IEXTEN)
        mode[6][termios.VMIN], mode[6][termios.VTIME] = 0, 0
        termios.tcsetattr(self._descriptor, termios.TCSADRAIN, mode)
        self._write(_ENTER)

    @property
    def size(self) -> os.terminal_size:
        """The cells of a line and the lines."""
        try:
            size = os.get_terminal_size(self._descriptor)
        except OSError:
            return os.terminal_size((80, 24))
        return size if size.columns and size.lines else os.terminal_size((80, 24))

    @property
    def has_unicode(self) -> bool:
        """Whether block characters can be shown."""
        return (sys.stdout.encoding or "").lower().replace("-", "") == "utf8"

    def draw(self, lines: Sequence[Line]) -> None:
        """Write the lines that have changed."""
        size = self.size
        if size != self._size:
            self._size, self._shown = size, []
        parts = [] if self._shown else ["\x1b[m\x1b[2J"]
        wanted = [
            encoded(cropped(line, size.columns), has_colours=self._has_colours)
            for line in lines[: size.lines]
        ]
        wanted += [""] * (size.lines - len(wanted))
        before = self._shown or [""] * size.lines
        for place, (line, shown) in enumerate(zip(wanted, before, strict=True)):
            if line != shown:
                parts.append(f"\x1b[{place + 1};1H{line or _ERASE}")
        self._shown = wanted
        self._write("".join(parts))

    def redraw(self) -> None:
        """Show all lines again at the next ``draw``."""
        self._shown = []

    def events(self, timeout_s: float) -> list[Event]:
        """Return keys and clicks, as soon as there are any or after ``timeout_s``.

        Raises:
            EOFError: the terminal is gone.
        """
        if self._reader.waits:
            timeout_s = min(timeout_s, _ESCAPE_S)
        readable, _, _ = select.select([self._descriptor], [], [], timeout_s)
        if not readable:
            return self._reader.read(b"") if self._reader.waits else []
        try:
            data = os.read(self._descriptor, 4096)
        except OSError as error:
            raise EOFError from error
        if not data:
            raise EOFError
        return self._reader.read(data)

    def close(self) -> None:
        """Restore the terminal as it was."""
        try:
            self._write(_LEAVE)
            termios.tcsetattr(self._descriptor, termios.TCSADRAIN, self._before)
        except (OSError, EOFError, termios.error):
            pass  # the terminal is gone
        os.close(self._descriptor)

    def _write(self, text: str) -> None:
        data = memoryview(text.encode(sys.stdout.encoding or "ascii", "replace"))
        try:
            while data:
                data = data[os.write(self._descriptor, data) :]
        except OSError as error:
            raise EOFError from error


def open_terminal() -> tuple[Screen, Callable[[], None]]:
    """Return the terminal that controls the process, and what restores it."""
    screen = TerminalScreen()
    return screen, screen.close
