"""The language of the project: help, messages, documents and docstrings avoid some phrases.

Tests are not walked.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from collections.abc import Iterator

ROOT = Path(__file__).parents[2]

TEXTS = (
    "README.md",
    "CHANGELOG.md",
    "SECURITY.md",
    "CONTRIBUTING.md",
    "docs/**/*.md",
    "docs/*.json",
    "benchmarks/*.md",
    "packaging/**/*",
    "queries/library/**/*.gsql",
)
"""Glob patterns of files that are checked as a whole."""

CODE = ("cli/**/*.py", "capture/**/*.py", "engine/**/*.py", "queries/**/*.py", "src/gscope/*.py")
"""Glob patterns of modules that are checked with their docstrings and comments."""

REFUSED = {
    r"told|tells": "report, notify, log, say",
    r"so many": "N, or at most N",
    r"so long": "DURATION, or as long as",
    r"nobody(?<!user nobody)(?<![`\"]nobody)": "no reader, no process",
    r"somebody|whoever|anybody": "name the user, process or reader",
    r"anew": "again",
    r"at hand": "current, available",
    r"by now": "so far",
    r"cannot be had": "is unavailable",
    r"what waits": "waiting rows, pending batches",
    r"he": "name the user, process or reader",
    r"not to be had": "unavailable",
    r"tells? apart": "distinguish",
    r"(?<!there )(?:is|are) no (?!longer|more|larger)[a-z]+": "is not a",
}
"""Phrases that read as translated, with what to write instead."""

_REFUSED = {
    re.compile(rf"\b(?:{phrase})\b", re.IGNORECASE): remedy for phrase, remedy in REFUSED.items()
}
_ANY = re.compile(rf"\b(?:{'|'.join(REFUSED)})\b", re.IGNORECASE)


def refused(text: str) -> Iterator[str]:
    """Yield what is wrong with ``text``, and what to write instead."""
    if _ANY.search(text):
        for phrase, remedy in _REFUSED.items():
            for found in phrase.finditer(text):
                line = text.count("\n", 0, found.start()) + 1
                yield f"line {line}: {found[0]!r}; write {remedy}"


def files(patterns: tuple[str, ...]) -> list[Path]:
    """Return the files that match ``patterns``."""
    found = {path for pattern in patterns for path in ROOT.glob(pattern) if path.is_file()}
    return sorted(path for path in found if path.suffix != ".pyc")


def test_documents_and_code_avoid_refused_phrases() -> None:
    wrong = [
        f"{path.relative_to(ROOT)} {message}"
        for path in files(TEXTS + CODE)
        for message in refused(path.read_text(encoding="utf-8"))
    ]
    assert wrong == []


def test_patterns_match_files() -> None:
    assert [pattern for pattern in TEXTS + CODE if not files((pattern,))] == []


@pytest.mark.parametrize(
    "text",
    [
        "Stop after so long",
        "the user is told",
        "runs as nobody",
        "by now there are two",
        "a key is no term",
    ],
)
def test_phrases_are_found(text: str) -> None:
    assert list(refused(text))


@pytest.mark.parametrize(
    "text", ["else the user nobody", "the header is gone", "as `nobody`", "There is no such file"]
)
def test_other_phrases_pass(text: str) -> None:
    assert not list(refused(text))
