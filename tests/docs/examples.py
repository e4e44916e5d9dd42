"""The examples of the language reference: what they ask, and what the pages say comes of it.

A block ``gsql`` is a query file. The block behind it says what comes of it: ``csv`` its answer over
the traffic of ``tests/docs/traffic.py``, ``error`` the message and the remedy with which it is
refused, ``explain`` lines of what ``gscope explain`` shows. Without such a block it is only
compiled. A table with the heading ``| expression | value |`` shows expressions over one packet.
``--param name=value`` in a comment of the query gives its parameter a value.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable

ROOT = Path(__file__).parents[2]
PAGES = [ROOT / "docs" / "gsql.md", *sorted((ROOT / "docs" / "gsql").glob("*.md"))]
ONE_PACKET = "up.TCP WHERE srcPort = 40000 AND SYN = 1"
"""What the expressions of tables are computed over."""

_BLOCK = re.compile(r"^```(\w+)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
_TABLE = re.compile(r"^\| expression \| value \|\n\|.*\n((?:\|.*\n)+)", re.MULTILINE)
_ROW = re.compile(r"^\| `(.*)` \| (.*) \|$")
_PARAMETER = re.compile(r"--param (\w+)=(\S+)")
_FILE = re.compile(r"^```text\n(# (\w+\.csv)\n.*?)^```$", re.MULTILINE | re.DOTALL)
_OUTCOMES = ("csv", "error", "explain")


@dataclass(frozen=True, slots=True)
class Example:
    """One query file, and what is said of it.

    Attributes:
        place: page and line.
        outcome: ``csv``, ``error``, ``explain``, or "" if it is only to compile.
        shown: the text of the outcome.
        span: where that text is in the page.
    """

    place: str
    query: str
    outcome: str
    shown: str
    span: tuple[int, int]

    @property
    def name(self) -> str:
        """What its text is called."""
        return re.sub(r"\W+", "_", self.place)

    @property
    def parameters(self) -> dict[str, str]:
        """Values for its PARAM entries."""
        return dict(_PARAMETER.findall(self.query))


@dataclass(frozen=True, slots=True)
class ValueTable:
    """A table of expressions and their values; ``spans`` are those of the values in the page."""

    place: str
    expressions: tuple[str, ...]
    values: tuple[str, ...]
    spans: tuple[tuple[int, int], ...]


def examples(page: Path) -> list[Example]:
    """The examples of a page, in order."""
    text = page.read_text(encoding="utf-8")
    found = []
    blocks = list(_BLOCK.finditer(text))
    for block, after in zip(blocks, [*blocks[1:], None], strict=True):
        if block[1] != "gsql":
            continue
        outcome, shown, span = "", "", (0, 0)
        if after is not None and after[1] in _OUTCOMES:
            outcome, shown, span = after[1], after[2], after.span(2)
        found.append(Example(_place(page, text, block.start()), block[2], outcome, shown, span))
    return found


def value_tables(page: Path) -> list[ValueTable]:
    """The tables of expressions of a page, in order."""
    text = page.read_text(encoding="utf-8")
    found = []
    for table in _TABLE.finditer(text):
        expressions, values, spans = [], [], []
        at = table.start(1)
        for line in table[1].splitlines(keepends=True):
            row = _ROW.match(line.rstrip("\n"))
            if row is None:
                message = (
                    f"{_place(page, text, at)}: this is not a row of expression and value: {line!r}"
                )
                raise ValueError(message)
            expressions.append(row[1].replace(r"\|", "|"))
            values.append(row[2].replace("`", ""))
            spans.append((at + row.start(2), at + row.end(2)))
            at += len(line)
        found.append(
            ValueTable(
                _place(page, text, table.start()), tuple(expressions), tuple(values), tuple(spans)
            )
        )
    return found


def values_query(tables: Iterable[ValueTable]) -> str:
    """One query for all expressions of ``tables``; its columns are ``time`` and theirs."""
    expressions = [expression for table in tables for expression in table.expressions]
    columns = ", ".join(f"{e} AS e{number}" for number, e in enumerate(expressions))
    return f"SELECT time, {columns} FROM {ONE_PACKET}"


def write_files(folder: Path) -> None:
    """The files that pages show, named in their first lines, in ``folder``."""
    for page in PAGES:
        for text, name in _FILE.findall(page.read_text(encoding="utf-8")):
            (folder / name).write_text(text, encoding="utf-8")


def _place(page: Path, text: str, at: int) -> str:
    return f"{page.relative_to(ROOT)}:{text.count(chr(10), 0, at) + 1}"
