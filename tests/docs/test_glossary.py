"""The glossary: each identifier that it cites is defined in the code, and each term has one row."""

from __future__ import annotations

import re
from collections import Counter
from pathlib import Path

ROOT = Path(__file__).parents[2]
ROOMS = ("queries", "capture", "engine", "cli")
GLOSSARY = ROOT / "docs" / "glossary.md"
_ROW = re.compile(r"^\| (?!term |---)(.*?) \| .*? \| (.*?) ?\| .*? \|$", re.MULTILINE)
_DEFINITION = re.compile(
    r"""^\s*(?:async\ )?(?:class|def)\s+(\w+)   # a class or a function
      | ^\s*(\w+)\s*(?::[^=\n]+)?=              # an attribute or a variable with a value
      | ^\s*(\w+):\s                            # an attribute or a parameter with a type""",
    re.MULTILINE | re.VERBOSE,
)


def rows() -> list[tuple[str, list[str]]]:
    """Return the terms of the glossary, each with the identifiers that it cites."""
    text = GLOSSARY.read_text(encoding="utf-8")
    return [(term, re.findall(r"`(\w+)`", cited)) for term, cited in _ROW.findall(text)]


def defined() -> set[str]:
    """Return every name that the code of the four rooms defines."""
    return {
        name
        for room in ROOMS
        for path in (ROOT / room).rglob("*.py")
        for names in _DEFINITION.findall(path.read_text(encoding="utf-8"))
        for name in names
        if name
    }


def test_rows_are_found() -> None:
    text = GLOSSARY.read_text(encoding="utf-8")
    tables = len(re.findall(r"^\| term ", text, re.MULTILINE))
    lines = len(re.findall(r"^\| ", text, re.MULTILINE))
    assert tables > 0
    assert len(rows()) == lines - tables


def test_cited_identifiers_are_defined() -> None:
    known = defined()
    missing = {term: [name for name in cited if name not in known] for term, cited in rows()}
    assert {term: names for term, names in missing.items() if names} == {}


def test_each_term_has_one_row() -> None:
    counts = Counter(term for term, _ in rows())
    assert [term for term, count in counts.items() if count > 1] == []
