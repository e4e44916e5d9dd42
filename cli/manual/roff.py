"""Text as roff with the macros of man(7)."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

_CODE = re.compile(r"`([^`]+)`")
_ESCAPES = {"\\": r"\e", "-": r"\-", "'": r"\(aq", "`": r"\(ga", "^": r"\(ha", "~": r"\(ti"}


def escaped(text: str) -> str:
    """Return ``text`` as roff: every character as itself, also to be copied from the page."""
    return "".join(
        _ESCAPES.get(character)
        or (character if character.isascii() else f"\\[u{ord(character):04X}]")
        for character in text
    )


def line(text: str) -> str:
    """Return one line of text, in which roff sees no request; what is in backquotes is bold."""
    parts = _CODE.split(" ".join(text.split()))
    shown = "".join(
        rf"\fB{escaped(part)}\fR" if number % 2 else escaped(part)
        for number, part in enumerate(parts)
    )
    return shown if not shown.startswith(".") else rf"\&{shown}"


def macro(name: str, *arguments: str) -> str:
    """Return a call of a macro; arguments with spaces are quoted."""
    return " ".join(
        [f".{name}", *(f'"{each}"' if " " in each or not each else each for each in arguments)]
    )


def blocks(text: str) -> Iterator[tuple[bool, str]]:
    r"""Yield the paragraphs of a help text, and whether each is laid out already (``\b``)."""
    for block in re.split(r"\n\s*\n", text.strip("\n")):
        is_fixed = block.lstrip().startswith("\b")
        yield is_fixed, block.replace("\b", "").strip("\n")


def example(lines: Iterable[str]) -> Iterator[str]:
    """Yield lines that are shown as they are, with the indentation that they share removed."""
    kept = list(lines)
    indent = min((len(each) - len(each.lstrip()) for each in kept if each.strip()), default=0)
    yield from (macro("PP"), macro("RS", "4"), macro("nf"))
    for each in kept:
        text = escaped(each[indent:].rstrip())
        yield rf"\&{text}" if not text or text.startswith(".") else text
    yield from (macro("fi"), macro("RE"))
