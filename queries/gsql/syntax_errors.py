"""Messages about unexpected tokens: what was expected, and a remedy where one is likely."""

from __future__ import annotations

from typing import TYPE_CHECKING

from gscope.queries.did_you_mean import DID_YOU_MEAN, closest
from gscope.queries.gsql.bpf_phrases import find_phrase, is_bpf_word
from gscope.queries.gsql.foreign_words import FOREIGN_WORDS
from gscope.queries.gsql.sample_errors import sample_remedy, using_sample
from gscope.queries.gsql.syntax_remedies import REMEDIES
from gscope.queries.gsql.unexpected_token import CLAUSES, COMPARISONS, END
from gscope.queries.gsql.window_errors import window_word
from gscope.records import dataclass

if TYPE_CHECKING:
    from collections.abc import Mapping

    from lark import Token

    from gscope.queries.gsql.unexpected_token import UnexpectedToken

_LITERALS = frozenset(
    [
        "INTEGER",
        "FLOAT",
        "STRING",
        "HEX",
        "IP_VAL",
        "IPV6_VAL",
        "TIMEVAL",
        "INTERVAL",
        "TRUE",
        "FALSE",
        "NULL",
    ]
)
_STARTS = _LITERALS | frozenset(
    [
        "NAME",
        "CASE",
        "NOT",
        "MINUS",
        "PLUS",
        "BANG",
        "TILDE",
        "LPAR",
        "PARAMETER",
        "DEFINITION",
        "PROPERTY",
        "SUPERAGGREGATE",
    ]
)
_OPERATORS = COMPARISONS | frozenset(
    [
        "IN",
        "BETWEEN",
        "LIKE",
        "ILIKE",
        "DOUBLE_COLON",
        "IS",
        "NOT",
        "OR",
        "AND",
        "VBAR",
        "AMPERSAND",
        "SHIFT_LEFT",
        "SHIFT_RIGHT",
        "CONCATENATE",
        "PLUS",
        "MINUS",
        "STAR",
        "SLASH",
        "PERCENT",
        "DIV",
    ]
)
_JOINS = frozenset(
    [
        "JOIN",
        "INNER",
        "INNER_JOIN",
        "OUTER",
        "OUTER_JOIN",
        "FULL",
        "FULL_OUTER_JOIN",
        "LEFT",
        "LEFT_OUTER_JOIN",
        "RIGHT",
        "RIGHT_OUTER_JOIN",
        "FILTER_JOIN",
        "WATCHLIST_JOIN",
    ]
)
_QUERIES = frozenset(["SELECT", "MERGE", "WATCHLIST", "WITH"])
_FIRST_WORDS = frozenset(["DEFINE", "PARAM", "PROTOCOL", "QUERY", "WITH", "WATCHLIST"])
_CALLS = frozenset({"DOT", "LPAR", "LSQB"})

_GROUPS: tuple[tuple[frozenset[str], frozenset[str], str], ...] = (
    # (signs, members, name): if all signs are expected, the message calls the members by the name
    (frozenset({"INTEGER", "NAME", "LPAR", "CASE"}), _STARTS, "an expression"),
    (frozenset({"INTEGER", "STRING"}), _LITERALS, "a literal"),
    (frozenset({"PLUS", "STAR"}), _OPERATORS | _CALLS, "an operator"),
    (frozenset({"AND"}), _OPERATORS, "AND or OR"),
    (frozenset({"NAME", "STRING"}), frozenset({"NAME", "STRING"}), "a name"),
    (frozenset({"JOIN"}), _JOINS, "a join"),
    (
        _QUERIES | {"PROTOCOL"},
        _QUERIES | _FIRST_WORDS | {"LPAR", "SEMICOLON"},
        "a query, such as SELECT … FROM …",
    ),
    (_QUERIES, _QUERIES | _FIRST_WORDS | {"LPAR"}, "SELECT, MERGE, WATCHLIST or WITH"),
    (frozenset({"WHERE", "HAVING"}), CLAUSES, "a clause such as WHERE or GROUP BY"),
)
_PLAIN = {
    "NAME": "a name",
    END: "the end of the text",
    "SUPERAGGREGATE": "a superaggregate",
    "PARAMETER": "a parameter such as $n",
    "DEFINITION": "a constant such as #N",
}
_MOST = 6


@dataclass(frozen=True, slots=True)
class SyntaxDiagnostic:
    """A message about a syntax error.

    Attributes:
        token: the token that the message marks.
        message: what is wrong.
        remedy: what to write instead, "" if unknown.
    """

    token: Token
    message: str
    remedy: str


def diagnose(unexpected: UnexpectedToken, spellings: Mapping[str, str]) -> SyntaxDiagnostic:
    """Return the message for an unexpected token; ``spellings`` is terminal → how it is written."""
    filtered = _filter_of_tcpdump(unexpected)
    if filtered is not None:
        return filtered
    using = using_sample((unexpected.token, *unexpected.before[-1:]), unexpected.text)
    if using is not None:
        remedy = sample_remedy(using, unexpected.expected, unexpected.before, unexpected.text)
        return SyntaxDiagnostic(using, f"unexpected {_shown(using)}", remedy)
    if unexpected.before and unexpected.before[-1].type == "NAME":
        # A misspelt keyword may have passed for a name, so that the word behind it fails.
        earlier = unexpected.before[-1]
        remedy = _about_word(earlier, unexpected.instead, spellings)
        if remedy and not _about_word(unexpected.token, unexpected.expected, spellings):
            return SyntaxDiagnostic(earlier, f"unexpected {_shown(earlier)}", remedy)
    found = "the end of the text" if unexpected.token.type == END else _shown(unexpected.token)
    message = f"expected {_described(unexpected.expected, spellings)}, got {found}"
    remedies = (rule(unexpected) for rule in REMEDIES)
    remedy = _about_word(unexpected.token, unexpected.expected, spellings)
    return SyntaxDiagnostic(
        unexpected.token, message, remedy or next((one for one in remedies if one), "")
    )


def _filter_of_tcpdump(unexpected: UnexpectedToken) -> SyntaxDiagnostic | None:
    """Return the message for ``host 10.0.0.1`` in a condition, None for anything else."""
    if "AND" not in unexpected.expected:
        return None
    first = None
    for token in reversed(unexpected.before[-2:]):
        if token.type != "NAME" or not is_bpf_word(token):
            break
        first = token
    phrase = find_phrase(unexpected.text, first.start_pos or 0) if first is not None else None
    if first is None or phrase is None:
        return None
    end = phrase.start + len(phrase.text)
    marked = type(first)("NAME", phrase.text, phrase.start, first.line, first.column, end_pos=end)
    remedy = f"write {phrase.condition}; the whole filter may also be an option: -f '{phrase.text}'"
    return SyntaxDiagnostic(marked, f"{phrase.text!r} is a filter of tcpdump", remedy)


def _shown(token: Token) -> str:
    text = str(token)
    if token.type == "STRING":
        return f"the text {text[:40]!r}"
    return text if len(text) <= 40 else text[:40] + "…"


def _described(expected: frozenset[str], spellings: Mapping[str, str]) -> str:
    left = set(expected) - {"CONSTANTS"}  # described by the ( it begins with
    words = []
    for signs, members, name in _GROUPS:
        if signs <= left:
            words.append(name)
            left -= members
    single = [
        _PLAIN.get(terminal) or _quoted(spellings.get(terminal, terminal)) for terminal in left
    ]
    # The most informative come first: names and words before punctuation, the end last.
    single.sort(key=lambda word: (word == _PLAIN[END], not word[0].isalpha(), word))
    words = [*(word for word in single if word in {"FROM", "SELECT"}), *words]
    words += [word for word in single if word not in words]
    if len(words) > _MOST:
        words = [*words[: _MOST - 1], "something else that may follow here"]
    return words[0] if len(words) == 1 else f"{', '.join(words[:-1])} or {words[-1]}"


def _quoted(spelling: str) -> str:
    return spelling if spelling[0].isalpha() else f"'{spelling}'"


def _about_word(token: Token, allowed: frozenset[str], spellings: Mapping[str, str]) -> str:
    """Return the remedy for a word of SQL that GSQL lacks, or one close to an allowed keyword."""
    if token.type != "NAME" or not 2 <= len(token) <= 20:
        return ""
    word = token.upper()
    of_window = window_word(word, allowed)
    if of_window:
        return of_window
    if word in FOREIGN_WORDS:
        return f"{word} is not part of GSQL: {FOREIGN_WORDS[word]}"
    if word in _FIRST_WORDS and "SEMICOLON" in allowed:
        return "queries are separated by ;"
    keywords = sorted(
        spellings[t] for t in allowed if spellings.get(t, "").replace("_", "").isalpha()
    )
    close = closest(word, keywords, cutoff=0.7)
    return f"{DID_YOU_MEAN}{close} instead of {token}?" if close not in (None, word) else ""
