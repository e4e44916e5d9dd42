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
"""How less runs unless $LESS is set: leave if all fits on the screen, pass on bold, keep the
screen.

It does not chop lines (-S): lines that are too long are wrapped, so that nothing is hidden."""

_UNREAD_CHARACTERS = 128 << 10
"""More than a pipe holds: if the pager has taken more than this, it has read some of it."""

_NOT_EXECUTABLE, _NOT_FOUND = 126, 127
"""Exit codes of a shell whose command cannot be executed or does not exist (POSIX)."""


class Display(Protocol):
    """What else uses the terminal: the progress of a run."""

    def aside(self) -> AbstractContextManager[None]:
        """Make space on the terminal while text is written."""

    def on_notice(self, text: str) -> None:
        """Print a sentence that the user must see."""

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
    """Yield a file whose text a pager shows if it exceeds the screen.

    Wait for the pager at the end.

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

    Until then it holds the text, which ``finish`` writes to standard output. If the pager cannot be
    started, all text goes to standard output, after a notice.
    """

    def __init__(self, command: str, display: Display | None) -> None:
        self.encoding = sys.stdout.encoding
        self._command = command
        self._display = display
        self._held: list[str] = []
        self._held_lines = 0
        self._pager: subprocess.Popen[str] | None = None
        # What the pager was sent, until it must have read some of it.
        self._sent: list[str] | None = []
        self._sent_characters = 0
        self._is_plain = False

    def write(self, text: str) -> int:
        """Take text.

        Raises:
            BrokenPipeError: the user has left the pager.
        """
        if self._pager is not None:
            self._send(text)
            return len(text)
        if self._is_plain:
            self._print(text)
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
            self._print(held)
        elif self._pager.stdin is not None:
            # Everything is answered: a user who has already left the pager interrupts nothing.
            with suppress(BrokenPipeError):
                self._pager.stdin.close()

    def close(self) -> None:
        """Wait until the user leaves the pager; Ctrl-C is for the pager alone meanwhile."""
        if self._pager is None:
            return
        self._wait(self._pager)
        if self._pager.returncode in (_NOT_EXECUTABLE, _NOT_FOUND) and self._sent is not None:
            self._print_instead(self._pager.returncode)
        elif self._display is not None:
            self._display.on_pager_end()

    def _wait(self, pager: subprocess.Popen[str]) -> None:
        before = signal.signal(signal.SIGINT, signal.SIG_IGN)
        try:
            if pager.stdin is not None:
                with suppress(BrokenPipeError):
                    pager.stdin.close()
            pager.wait()
        finally:
            signal.signal(signal.SIGINT, before)

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
        if self._sent is not None:
            self._sent.append(text)
            if self._sent_characters > _UNREAD_CHARACTERS:
                self._sent = None
            self._sent_characters += len(text)
        try:
            self._pager.stdin.write(text)
            self._pager.stdin.flush()
        except BrokenPipeError:
            if self._sent is None:
                raise
            self._wait(self._pager)
            if self._pager.returncode not in (_NOT_EXECUTABLE, _NOT_FOUND):
                raise
            self._print_instead(self._pager.returncode)

    def _print_instead(self, exit_code: int) -> None:
        """Write what the pager was sent, and what follows, to standard output."""
        sent, self._sent = "".join(self._sent or ()), None
        self._pager = None
        self._is_plain = True
        why = "does not exist" if exit_code == _NOT_FOUND else "cannot be executed"
        notice = f"the pager {self._command!r} {why}; the output follows without it"
        if self._display is not None:
            self._display.on_pager_end()
            self._display.on_notice(notice)
        else:
            sys.stderr.write(f"gscope: {notice}\n")
        self._print(sent)

    def _print(self, text: str) -> None:
        with self._display.aside() if self._display is not None else nullcontext():
            sys.stdout.write(text)
            sys.stdout.flush()

    def _take(self) -> str:
        held, self._held = "".join(self._held), []
        return held
