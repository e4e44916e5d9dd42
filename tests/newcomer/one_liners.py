"""Reads the table of one-liners, and follows the hints that gscope gives."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

from gscope.errors import GsqlError
from gscope.queries.compile import CompileContext, QueryText, compile_queries

TABLE = Path(__file__).with_name("one_liners.sql")
CONTEXT = CompileContext(("net",))

_WRITE = re.compile(r"write (.+?)(?:; .*)?")


@dataclass(frozen=True, slots=True)
class OneLiner:
    """A query as people type it.

    Attributes:
        line: where it is in the table.
        text: the query.
        hints: how many hints must be followed until it answers.
        oracle: the same question to DuckDB.
        is_ordered: whether the order of rows is part of the answer.
    """

    line: int
    text: str
    hints: int
    oracle: str
    is_ordered: bool


def one_liners() -> list[OneLiner]:
    """Return all one-liners of the table."""
    found = []
    text, line, hints = "", 0, 0
    for number, written in enumerate(TABLE.read_text(encoding="utf-8").splitlines(), 1):
        mark, _, rest = written.partition(" ")
        if mark == ">":
            assert not text, f"line {line} has no oracle"
            text, line, hints = rest, number, 0
        elif mark == "!":
            hints += 1
        elif mark in {"=", "=>"}:
            found.append(OneLiner(line, text, hints, rest, mark == "=>"))
            text = ""
        else:
            assert not written or mark == "--", f"line {number}: {written}"
    return found


def refusal(text: str) -> GsqlError | None:
    """Return the error for a query at ``-e``, None if it compiles."""
    try:
        compile_queries([QueryText(text, "query")], CONTEXT)
    except GsqlError as error:
        return error
    return None


def followed(text: str) -> tuple[str, int]:
    """Return the query after following every hint literally, and how many there were.

    The text that the caret marks, with its arguments if it is the name of a function, is replaced
    by what the remedy says to write.
    """
    for count in range(4):
        error = refusal(text)
        if error is None:
            return text, count
        hint = _WRITE.fullmatch(error.remedy)
        if hint is None or error.position is None or error.position.line != 1:
            message = f"nothing to follow:\n{error.report()}"
            raise AssertionError(message)
        begin = error.position.column - 1
        end = _end_of_call(text, begin + error.position.length)
        text = text[:begin] + hint[1] + text[end:]
    message = f"the hints do not lead to an answer: {text}"
    raise AssertionError(message)


def _end_of_call(text: str, name_end: int) -> int:
    """Return the end of the brackets that open at ``name_end``; ``name_end`` if none does."""
    depth = 0
    for at in range(name_end, len(text)):
        depth += (text[at] == "(") - (text[at] == ")")
        if depth == 0:
            return at + (at > name_end)
    return name_end
