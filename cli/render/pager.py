"""A pager for answers and texts that are longer than the terminal, as git and psql have."""

from __future__ import annotations

import io
import os
import shutil
import signal
import subprocess
import sys
from contextlib import contextmanager, nullcontext, redirect_stdout, suppress
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from collections.abc import Iterator
    from contextlib import AbstractContextManager

PAGER_VARIABLES = ("GSCOPE_PAGER", "PAGER")
"""The first of these that is set names the pager, a command of the shell; "" or cat for none."""

_LESS = "FRX"
"""How less runs unless $LESS is set: leave if all fits on the screen, pass on bold, keep the screen.

It does not chop lines (-S): lines that are too long are wrapped, so that nothing is hidden."""


class Display(Protocol):
    """What else uses the terminal: the progress of a run."""

    def aside(self) -> AbstractContextManager[None]:
        """Make space on the terminal while text is written."""

    def on_pager_start(self) -> None:
        """Leave the terminal to the pager."""

    def on_pager_end(self) -> None:
        """Note that the pager is gone."""


def pager_command() -> str | None:
    """Return the command of the pager; None for none."""
    for variable in PAGER_VARIABLES:
        if (command := os.environ.get(variable)) is not None:
            return None if command.strip() in ("", "cat") else command
    is_capable = os.environ.get("TERM", "dumb") != "dumb"
    return "less" if is_capable and shutil.which("less") else None


@contextmanager
def paged_stdout() -> Iterator[None]:
    """Show what is printed meanwhile with the pager, if it exceeds the screen of a terminal.

    Raises:
        BrokenPipeError: the user has left the pager before all was shown.
    """
    command = pager_command() if sys.stdout.isatty() else None
    if command is None:
        yield
        return
    printed = io.StringIO()
    try:
        with redirect_stdout(printed):
            yield
    finally:
        with paged_output(command) as output:
            output.write(printed.getvalue())
            output.finish()


@contextmanager
def paged_output(command: str, display: Display | None = None) -> Iterator[PagedOutput]:
    """Yield a file whose text a pager shows if it exceeds the screen; wait for the pager at the end.

    Args:
        command: what the shell runs as the pager.
        display: what must leave the terminal to the pager.
    """
    output = PagedOutput(command, display)
    try:
        yield output
    finally:
        output.close()


def _restricted() -> dict[str, str]:
    """Return what keeps less from running commands as another user than the one who uses it."""
    return {"LESSSECURE": "1"} if "SUDO_UID" in os.environ else {}


class PagedOutput:
    """A text file that starts the pager when it has more lines than the screen.

    Until then it holds the text, which ``finish`` writes to standard output.
    """

    def __init__(self, command: str, display: Display | None) -> None:
        self.encoding = sys.stdout.encoding
        self._command = command
        self._display = display
        self._held: list[str] = []
        self._held_lines = 0
        self._pager: subprocess.Popen[str] | None = None

    def write(self, text: str) -> int:
        """Take text.

        Raises:
            BrokenPipeError: the user has left the pager.
        """
        if self._pager is not None:
            self._send(text)
            return len(text)
        self._held.append(text)
        screen = shutil.get_terminal_size()
        lines = text.splitlines()
        self._held_lines += sum(max(1, -(-len(line) // screen.columns)) for line in lines)
        if self._held_lines >= screen.lines:
            self._start()
        return len(text)

    def flush(self) -> None:
        """Show what the pager has so far; held text stays held."""
        if self._pager is not None:
            self._send("")

    def finish(self) -> None:
        """Write held text to standard output, or end the input of the pager: nothing follows."""
        held = self._take()
        if self._pager is None:
            with self._display.aside() if self._display is not None else nullcontext():
                sys.stdout.write(held)
                sys.stdout.flush()
        elif self._pager.stdin is not None:
            # Everything is answered: a user who has left the pager by now interrupts nothing.
            with suppress(BrokenPipeError):
                self._pager.stdin.close()

    def close(self) -> None:
        """Wait until the user leaves the pager; Ctrl-C is for the pager alone meanwhile."""
        if self._pager is None:
            return
        before = signal.signal(signal.SIGINT, signal.SIG_IGN)
        try:
            if self._pager.stdin is not None:
                with suppress(BrokenPipeError):
                    self._pager.stdin.close()
            self._pager.wait()
        finally:
            signal.signal(signal.SIGINT, before)
            if self._display is not None:
                self._display.on_pager_end()

    def _start(self) -> None:
        if self._display is not None:
            self._display.on_pager_start()
        sys.stdout.flush()
        self._pager = subprocess.Popen(
            self._command,
            shell=True,
            stdin=subprocess.PIPE,
            env={"LESS": _LESS, **_restricted(), **os.environ},
            encoding=self.encoding,
            errors="backslashreplace",
        )
        self._send(self._take())

    def _send(self, text: str) -> None:
        assert self._pager is not None
        assert self._pager.stdin is not None
        self._pager.stdin.write(text)
        self._pager.stdin.flush()

    def _take(self) -> str:
        held, self._held = "".join(self._held), []
        return held
