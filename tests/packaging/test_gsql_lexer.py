"""Colours of GSQL on the site: every word of the grammar, and every text in the project."""

from __future__ import annotations

import re
import sys

import pytest
from pygments.lexers import get_lexer_by_name
from pygments.token import Comment, Error, Keyword, Name, Number, String
from tests.docs.test_pages import PAGES
from tests.packaging.site_modules import site_module
from tests.support.requirements import ROOT

LEXER = site_module("gsql_lexer")
_GRAMMAR = (ROOT / "queries" / "gsql" / "grammar.lark").read_text(encoding="utf-8")


def tokens(text: str) -> list[tuple[object, str]]:
    return [pair for pair in LEXER.GsqlLexer().get_tokens(text) if pair[1].strip()]


def kind(text: str, word: str) -> object:
    return next(kind for kind, value in tokens(text) if value == word)


def test_keywords_are_the_quoted_words_of_the_grammar() -> None:
    rules = re.sub(r"//.*", "", _GRAMMAR)
    assert set(re.findall(r'"([A-Z_]+)"', rules)) == LEXER.KEYWORDS


@pytest.mark.parametrize("word", sorted(LEXER.KEYWORDS))
def test_a_word_of_the_grammar_in_capitals_is_a_keyword(word: str) -> None:
    assert kind(f"a {word} b", word) is Keyword


def test_words_that_are_not_reserved_are_names_in_small_letters() -> None:
    assert kind("select left from TCP where x", "left") is Name
    assert kind("select left from TCP where x", "select") is Keyword


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("'it''s'", String.Single),
        ("-- a note", Comment.Single),
        ("10.0.0.0/8", Number),
        ("2001:db8::11", Number),
        ("0xFf", Number.Hex),
        ("1.5e3", Number),
        ("$port", Name.Variable),
        ("#HOST#", Name.Variable),
    ],
)
def test_other_tokens(text: str, expected: object) -> None:
    assert tokens(text) == [(expected, text)]


def test_prefixed_literals_and_calls() -> None:
    assert kind("INTERVAL '2 sec'", "INTERVAL") is Keyword.Type
    assert kind("sum(len)", "sum") is Name.Function


def test_no_text_of_the_project_has_an_unknown_token() -> None:
    texts = [path.read_text(encoding="utf-8") for path in ROOT.glob("queries/library/**/*.gsql")]
    for page in PAGES:
        texts += re.findall(r"^```gsql\n(.*?)^```", page.read_text("utf-8"), re.M | re.S)
    assert len(texts) > 150
    unknown = [value for text in texts for kind, value in tokens(text) if kind is Error]
    assert unknown == []


def test_pygments_finds_this_lexer_and_not_the_one_of_another_language(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setitem(LEXER.lexers.LEXERS, "GSQLLexer", ("pygments.lexers.gsql", "", (), (), ()))
    monkeypatch.setitem(sys.modules, LEXER.__name__, LEXER)
    LEXER.register()
    assert isinstance(get_lexer_by_name("gsql"), LEXER.GsqlLexer)
