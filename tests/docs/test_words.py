"""The language of what users read: help, messages, documents and library queries avoid some phrases.

Docstrings of functions and comments in code are not walked, but the help of commands is.
"""

from __future__ import annotations

import ast
import re
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from collections.abc import Iterator

ROOT = Path(__file__).parents[2]

TEXTS = (
    "README.md",
    "CONTRIBUTING.md",
    "docs/**/*.md",
    "docs/*.json",
    "benchmarks/*.md",
    "packaging/*",
    "queries/library/**/*.gsql",
)
"""Glob patterns of files that are checked as a whole."""

CODE = ("cli/**/*.py", "capture/**/*.py", "engine/**/*.py", "queries/**/*.py", "src/gscope/*.py")
"""Glob patterns of modules whose string literals are checked."""

REFUSED = {
    r"told|tells": "report, notify, log, say",
    r"so many": "N, or at most N",
    r"so long": "DURATION, or as long as",
    r"nobody(?<!user nobody)(?<!`nobody)": "no reader, no process",
    r"somebody|whoever|anybody": "name the user, process or reader",
    r"anew": "again",
    r"at hand": "current, available",
    r"by now": "so far",
    r"cannot be had": "is unavailable",
    r"what waits": "waiting rows, pending batches",
    r"he": "name the user, process or reader",
    r"not to be had": "unavailable",
}
"""Phrases that read as translated, with what to write instead."""

_REFUSED = {
    re.compile(rf"\b(?:{phrase})\b", re.IGNORECASE): remedy for phrase, remedy in REFUSED.items()
}
_UNSEEN = re.compile(r'""".*?"""|#[^\n]*', re.DOTALL)
"""Docstrings and comments: a module with a phrase in these alone need not be parsed."""

_ANY = re.compile(rf"\b(?:{'|'.join(REFUSED)})\b", re.IGNORECASE)


def refused(text: str) -> Iterator[str]:
    """Yield what is wrong with ``text``, and what to write instead."""
    if _ANY.search(text):
        for phrase, remedy in _REFUSED.items():
            for found in phrase.finditer(text):
                line = text.count("\n", 0, found.start()) + 1
                yield f"line {line}: {found[0]!r}; write {remedy}"


def user_visible(tree: ast.Module) -> Iterator[tuple[int, str]]:
    """Yield the string literals that hold prose, with their lines; of docstrings those of commands only."""
    docstrings = {
        id(node.value)
        for node in ast.walk(tree)
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)
    }
    commands = [
        node.body[0].value
        for node in ast.walk(tree)
        if isinstance(node, ast.FunctionDef)
        and isinstance(node.body[0], ast.Expr)
        and any("command" in ast.unparse(decorator) for decorator in node.decorator_list)
    ]
    docstrings -= {id(value) for value in commands}
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            is_prose = " " in node.value and id(node) not in docstrings
            if is_prose:
                yield node.lineno, node.value


def files(patterns: tuple[str, ...]) -> list[Path]:
    """Return the files that match ``patterns``."""
    return sorted({path for pattern in patterns for path in ROOT.glob(pattern)})


def test_documents_avoid_refused_phrases() -> None:
    wrong = [
        f"{path.relative_to(ROOT)} {message}"
        for path in files(TEXTS)
        for message in refused(path.read_text(encoding="utf-8"))
    ]
    assert wrong == []


def test_messages_and_help_avoid_refused_phrases() -> None:
    wrong = []
    for path in files(CODE):
        source = path.read_text(encoding="utf-8")
        if "@click.command" in source or _ANY.search(_UNSEEN.sub("", source)):
            for line, text in user_visible(ast.parse(source)):
                name = path.relative_to(ROOT)
                wrong += [f"{name}:{line} {message}" for message in refused(text)]
    assert wrong == []


def test_patterns_match_files() -> None:
    assert [pattern for pattern in TEXTS + CODE if not files((pattern,))] == []


@pytest.mark.parametrize(
    "text", ["Stop after so long", "the user is told", "runs as nobody", "by now there are two"]
)
def test_phrases_are_found(text: str) -> None:
    assert list(refused(text))


@pytest.mark.parametrize("text", ["else the user nobody", "the header is gone", "as `nobody`"])
def test_other_phrases_pass(text: str) -> None:
    assert not list(refused(text))


def test_help_of_commands_is_walked_and_docstrings_are_not() -> None:
    source = '''
@click.command()
def stop() -> None:
    """Stop after so long."""

def helper() -> None:
    """The user is told."""
    raise UsageError("nobody reads this")
'''
    texts = [text for _, text in user_visible(ast.parse(source))]
    assert texts == ["Stop after so long.", "nobody reads this"]
