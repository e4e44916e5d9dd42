"""A small terminal: the cells that the sequences of the view leave, and their styles."""

from __future__ import annotations

import os
import re
import unicodedata

_TOKEN = re.compile(r"\x1b\[(\??)([0-9;]*)([A-Za-z])|[^\x1b]|\x1b")


_END = b"\x07"


def written(master: int, slave: int) -> bytes:
    """Return all that has been written to a terminal so far: the kernel passes it on later."""
    os.write(slave, _END)
    data = b""
    while not data.endswith(_END):
        data += os.read(master, 65_536)
    return data.removesuffix(_END)


class Emulator:
    """Cells that text and sequences change.

    Attributes:
        modes: the private modes that are set.
        written: the number of characters that were shown.
        codes: all SGR codes that were used.
    """

    def __init__(self, columns: int, lines: int) -> None:
        self._columns = columns
        self._cells = [[" "] * columns for _ in range(lines)]
        self._at = (0, 0)
        self._rest = ""
        self.modes: set[str] = set()
        self.codes: set[str] = set()
        self.written = 0

    @property
    def lines(self) -> list[str]:
        return ["".join(cells).rstrip() for cells in self._cells]

    @property
    def text(self) -> str:
        return "\n".join(self.lines)

    def feed(self, text: str) -> None:
        text, self._rest = self._rest + text, ""
        if (found := re.search(r"\x1b(\[[0-9;?]*)?$", text)) is not None:
            text, self._rest = text[: found.start()], text[found.start() :]
        for token in _TOKEN.finditer(text):
            private, numbers, letter = token[1], token[2], token[3]
            if letter is None:
                self._put(token[0])
            elif private:
                (self.modes.add if letter == "h" else self.modes.discard)(numbers)
            elif letter == "H":
                line, column = (int(number) for number in (numbers or "1;1").split(";"))
                self._at = (line - 1, column - 1)
            elif letter == "m":
                self.codes.update(filter(None, numbers.split(";")))
            elif letter == "J":
                assert numbers == "2"
                self._cells = [[" "] * self._columns for _ in self._cells]
            elif letter == "K":
                line, column = self._at
                self._cells[line][column:] = [" "] * (self._columns - column)
            else:
                raise AssertionError(token[0])

    def _put(self, character: str) -> None:
        line, column = self._at
        if character == "\r":
            self._at = (line, 0)
            return
        if character == "\n":
            self._at = (min(line + 1, len(self._cells) - 1), column)
            return
        assert character.isprintable(), repr(character)
        width = 2 if unicodedata.east_asian_width(character) in "WF" else 1
        assert column + width <= self._columns, f"beyond the line: {character!r}"
        self._cells[line][column] = character
        if width == 2:
            self._cells[line][column + 1] = ""
        self._at = (line, column + width)
        self.written += 1
