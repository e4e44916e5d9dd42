"""The three shells: their scripts, what these send, and the form in which they take candidates.

A script sends the command line up to the cursor and receives a candidate a line: its kind, a tab,
the text, a tab, a description. Kinds are ``plain``, ``open`` (no space behind it), ``file`` and
``dir``: for these two the shell completes the path that follows the text.
"""

from __future__ import annotations

import os
from importlib import resources
from typing import ClassVar

from click.shell_completion import (
    CompletionItem,
    ShellComplete,
    add_completion_class,
    split_arg_string,
)

from gscope.cli.completion.open_word import OpenWord, last_word
from gscope.records import dataclass

VARIABLE = "_GSCOPE_COMPLETE"
_LISTING = ("37", "63")
"""``COMP_TYPE`` of bash when candidates are listed, not inserted."""


def script(shell: str) -> str:
    """Return the script that defines completion in ``shell``."""
    folder = resources.files("gscope.cli.completion") / "scripts"
    return (folder / f"gscope.{shell}").read_text(encoding="utf-8")


@dataclass(frozen=True, slots=True)
class Typed:
    """What was typed: the words before the one at the cursor, and that word."""

    words: tuple[str, ...]
    open_word: OpenWord


def typed(line: str, command: str) -> Typed:
    """Return the words of ``line``, a command line up to the cursor, behind ``command``."""
    word = last_word(line)
    words = split_arg_string(line[: len(line) - len(word.raw)])
    first = next((place for place, each in enumerate(words) if each == command), 0)
    return Typed(tuple(words[first + 1 :]), word)


class LineComplete(ShellComplete):
    """Completion from a command line up to the cursor, in ``COMP_LINE``."""

    name: ClassVar[str]

    def source(self) -> str:
        """Return the shell's script."""
        return script(self.name)

    def complete(self) -> str:
        """Return the candidates, one a line."""
        entered = typed(os.environ.get("COMP_LINE", ""), os.environ.get("COMP_COMMAND", ""))
        text = entered.open_word.text
        kept = ""
        # An option that is typed together with its value: --output=csv.
        if text.startswith("--") and "=" in text:
            kept = text[: text.index("=") + 1]
        self.ctx_args = {**self.ctx_args, "obj": entered.words}
        found = self.get_completions(list(entered.words), text)
        lines = [self._line(item, kept, entered.open_word) for item in found]
        return "\n".join(line for line in self.offered(lines, entered.open_word) if line)

    def _line(self, item: CompletionItem[str], kept: str, word: OpenWord) -> str:
        if item.type in ("file", "dir"):
            return f"{item.type}\t{kept}{item.before or ''}\t"
        value = f"{kept}{item.value}"
        if "\n" in value or "\t" in value:
            return ""
        shown = self.shown(value, str(item.label or ""), word)
        return f"{item.type}\t{shown}\t{' '.join((item.help or '').split())}"

    def shown(self, value: str, label: str, word: OpenWord) -> str:  # noqa: ARG002
        """Return the text of a candidate that replaces the whole word by ``value``.

        Args:
            value: the new word.
            label: what to show in a list of candidates; "" for ``value``.
            word: the word so far.
        """
        return value

    def offered(self, lines: list[str], word: OpenWord) -> list[str]:  # noqa: ARG002
        """Return the lines to print."""
        return lines


class BashLineComplete(LineComplete):
    """Completion for bash, which replaces only what follows a quote or a break character."""

    name = "bash"

    def shown(self, value: str, label: str, word: OpenWord) -> str:
        """Return what follows the part of the word that bash leaves as it is."""
        if label and os.environ.get("COMP_TYPE") in _LISTING:
            return label
        return value[word.kept(os.environ.get("COMP_BREAKS", "")) :]

    def offered(self, lines: list[str], word: OpenWord) -> list[str]:
        """Return two lines where bash would close an open quote behind the only one."""
        if len(lines) == 1 and lines[0].startswith("open\t") and word.quote is not None:
            kind, value, _ = lines[0].split("\t")
            return [*lines, f"{kind}\t{value} \t"]
        return lines


class ZshLineComplete(LineComplete):
    """Completion for zsh."""

    name = "zsh"


class FishLineComplete(LineComplete):
    """Completion for fish."""

    name = "fish"


for _shell in (BashLineComplete, ZshLineComplete, FishLineComplete):
    add_completion_class(_shell)
