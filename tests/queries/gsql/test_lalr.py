"""The parser against lark's, which makes its tables: same trees, same places where a text is refused."""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import Any

import lark
import pytest

from gscope.errors import GsqlSyntaxError
from gscope.queries.gsql.lalr import NotAllowedError, Parse
from gscope.queries.gsql.scanner import Scanner
from gscope.queries.gsql.tables import STARTS, Tables, load_tables

ROOT = Path(__file__).parents[3]
GRAMMAR = (ROOT / "queries" / "gsql" / "grammar.lark").read_text(encoding="utf-8")
TEXTS = sorted(
    [
        *(ROOT / "queries" / "library").rglob("*.gsql"),
        *(ROOT / "tests" / "queries").rglob("*.gsql"),
        *(ROOT / "tests" / "golden").rglob("*.gsql"),
    ]
)


class _Trees:
    """A builder whose values are the names of rules with their parts."""

    def __getattr__(self, name: str) -> Any:
        return lambda *parts: (name, *parts)


@cache
def _lark() -> lark.Lark:
    return lark.Lark(GRAMMAR, parser="lalr", lexer="basic", start=list(STARTS))


@cache
def _tables() -> Tables:
    return load_tables(None)


def _plain(tree: Any) -> Any:
    """Lark's tree as `_Trees` builds it."""
    if isinstance(tree, lark.Tree):
        return (str(tree.data), *(_plain(each) for each in tree.children))
    return tree


def _compare(text: str, start: str, *, compares_accepted: bool) -> bool:
    """Parse with both; return whether the text is complete and correct."""
    tables = _tables()
    ours, theirs = Parse(tables.parser, _Trees(), start), _lark().parse_interactive(start=start)
    try:
        for token in Scanner(text, "test", tables.terminals).tokens(ours.choices):
            assert ours.choices().keys() == theirs.choices().keys()  # type: ignore[no-untyped-call]
            if compares_accepted:
                assert ours.accepted() == theirs.accepts()  # type: ignore[no-untyped-call]
            try:
                ours.feed(token)
            except NotAllowedError:
                with pytest.raises(lark.UnexpectedToken):
                    theirs.feed_token(lark.Token(token.type, str(token)))
                return False
            theirs.feed_token(lark.Token(token.type, str(token)))
    except GsqlSyntaxError:
        return False
    try:
        tree = ours.finish()
    except NotAllowedError:
        with pytest.raises(lark.UnexpectedToken):
            theirs.feed_eof()  # type: ignore[no-untyped-call]
        return False
    assert tree == _plain(theirs.feed_token(lark.Token("$END", "")))
    return True


def test_texts_have_the_trees_of_lark() -> None:
    complete = [
        _compare(path.read_text(encoding="utf-8"), "file", compares_accepted=False)
        for path in TEXTS
    ]
    assert len(complete) > 300
    assert sum(complete) > 250


@pytest.mark.parametrize(
    ("start", "text"),
    [
        (
            "expression",
            "a + b * -c[1].d between 1 and 2 and not (x in (1, 2, 'y') or f(a, b) is null)",
        ),
        ("expression", "case when a then 1 else 2 end"),
        ("define_value", "- 4"),
        ("define_value", "'text'"),
        ("file", ""),
        ("file", ";;"),
        ("file", "QUERY a: SELECT b FROM c; PROTOCOL p (q) { x = y; z = 1 }"),
        (
            "file",
            "SELECT DISTINCT a.*, count(*) AS c FROM x.y AS y INNER JOIN z ON a = b GROUP BY a",
        ),
    ],
)
def test_the_same_terminals_are_accepted_at_each_place(start: str, text: str) -> None:
    _compare(text, start, compares_accepted=True)


@pytest.mark.parametrize("text", ["SELECT", "SELECT a FROM", "SELECT a b c FROM d", "FROM", "a ="])
def test_a_text_is_refused_at_the_same_token(text: str) -> None:
    for start in STARTS:
        assert not _compare(text, start, compares_accepted=True)


def test_repetitions_take_linear_time() -> None:
    assert _compare("SELECT a FROM b;" * 3000, "file", compares_accepted=False)
