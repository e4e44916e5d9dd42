"""Keys and clicks, from the bytes that a terminal sends."""

from __future__ import annotations

import re

from gscope.records import dataclass

ESCAPE = "escape"
_SEQUENCES = {
    "A": "up",
    "B": "down",
    "C": "right",
    "D": "left",
    "H": "home",
    "F": "end",
    "Z": "back-tab",
    "P": "help",
    "1~": "home",
    "7~": "home",
    "4~": "end",
    "8~": "end",
    "5~": "page-up",
    "6~": "page-down",
    "3~": "delete",
    "11~": "help",
}
_CONTROLS = {
    "\r": "enter",
    "\n": "enter",
    "\t": "tab",
    "\x7f": "backspace",
    "\b": "backspace",
    "\x03": "interrupt",
    "\x04": "quit",
    "\x0c": "redraw",
    "\x15": "erase-line",
    "\x1c": "interrupt",
}
_SEQUENCE = re.compile(r"\x1b(?:\[|O)(<?[0-9;]*)([A-Za-z~])", re.DOTALL)
_BEGINNING = re.compile(r"\x1b(?:[\[O]<?[0-9;]*)?")
_LEFT, _WHEEL_UP, _WHEEL_DOWN = 0, 64, 65


@dataclass(frozen=True, slots=True)
class Key:
    """A key that was pressed.

    Attributes:
        name: its name, or the character that it types.
        is_character: whether it types a character.
    """

    name: str
    is_character: bool = False


@dataclass(frozen=True, slots=True)
class Click:
    """A button of the mouse, or its wheel.

    Attributes:
        button: ``left``, ``wheel-up`` or ``wheel-down``.
        column: the cell from the left, from 0.
        line: the line from the top, from 0.
    """

    button: str
    column: int
    line: int


Event = Key | Click


class KeyReader:
    """Turns bytes into keys; what is incomplete waits for the bytes that follow."""

    def __init__(self) -> None:
        self._rest = b""

    @property
    def waits(self) -> bool:
        """Whether a sequence has begun that the next bytes may complete."""
        return bool(self._rest)

    def read(self, data: bytes) -> list[Event]:
        """Return the keys that ``data`` completes; no data: nothing follows."""
        is_last = not data
        text, self._rest = _decoded(self._rest + data, is_last=is_last)
        events: list[Event] = []
        at = 0
        while at < len(text):
            if text[at] != "\x1b":
                events.append(_key(text[at]))
                at += 1
            elif (found := _SEQUENCE.match(text, at)) is not None:
                events += _of_sequence(found[1], found[2])
                at = found.end()
            elif not is_last and (begun := _BEGINNING.match(text, at)) and begun.end() == len(text):
                self._rest = text[at:].encode() + self._rest
                break
            else:
                events.append(Key(ESCAPE))
                at += 1
        return events


def _decoded(data: bytes, *, is_last: bool) -> tuple[str, bytes]:
    """Return the characters of ``data``, and the bytes of one that is incomplete."""
    for missing in range(4):
        try:
            whole = data[: len(data) - missing]
            text = whole.decode()
        except UnicodeDecodeError:
            continue
        return (text, b"") if is_last else (text, data[len(whole) :])
    return data.decode(errors="ignore"), b""


def _key(character: str) -> Key:
    if (name := _CONTROLS.get(character)) is not None:
        return Key(name)
    return Key(character, is_character=character.isprintable())


def _of_sequence(numbers: str, letter: str) -> list[Event]:
    if numbers.startswith("<"):
        return _click(numbers[1:], letter)
    name = _SEQUENCES.get(letter if letter != "~" else f"{numbers.split(';')[0]}~")
    return [] if name is None else [Key(name)]


def _click(numbers: str, letter: str) -> list[Event]:
    """Return a click in the SGR encoding, in which the release of a button ends in ``m``."""
    parts = numbers.split(";")
    if letter != "M" or len(parts) != 3 or not all(parts):
        return []
    button, column, line = (int(part) for part in parts)
    names = {_LEFT: "left", _WHEEL_UP: "wheel-up", _WHEEL_DOWN: "wheel-down"}
    name = names.get(button)
    return [] if name is None else [Click(name, column - 1, line - 1)]
