"""Candidates for the last word of a query that is being typed."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from click.shell_completion import CompletionItem

if TYPE_CHECKING:
    from collections.abc import Iterator

_WORD = re.compile(r"[\w.]*$")
_BEFORE = re.compile(r"([\w.]+|\S)\s*$")
_READ = re.compile(r"\b(?:from|join)\s+(?:[\w-]+\.)?(\w+)", re.I)
_OPENS_INPUT = ("FROM", "JOIN")
_KEYWORDS = (
    *("SELECT", "FROM", "WHERE", "GROUP BY", "HAVING", "AS", "AND", "OR", "NOT", "IN", "BETWEEN"),
    *("LIKE", "IS NULL", "IS NOT NULL", "CASE", "WHEN", "THEN", "ELSE", "END", "DISTINCT"),
    *("MERGE", "INNER JOIN", "LEFT OUTER JOIN", "ON", "WITH"),
)


def words_for(query: str) -> list[CompletionItem[str]]:
    """Return ``query`` with each word that can complete it, cut at the cursor.

    Behind FROM and JOIN these are protocols, elsewhere fields, functions, aggregates and keywords.
    Fields are those of the protocols that the query reads, if it names any before the cursor. The
    label is the word.
    """
    last = _WORD.search(query)
    assert last is not None
    word, before = last[0], query[: last.start()]
    preceding = _BEFORE.search(before)
    if preceding is not None and preceding[1].upper() in _OPENS_INPUT:
        interface, dot, word = word.rpartition(".")
        before += interface + dot
        found = _protocols()
    else:
        found = _expressions(query, has_keywords=bool(word))
    return [
        CompletionItem(before + each, "open", help=text, label=each)
        for each, text in found
        if each.lower().startswith(word.lower()) and each.lower() != word.lower()
    ]


def _protocols() -> Iterator[tuple[str, str]]:
    from gscope.queries.catalog.protocols import PROTOCOLS

    for name, protocol in PROTOCOLS.items():
        yield name, protocol.description


def _expressions(query: str, *, has_keywords: bool) -> Iterator[tuple[str, str]]:
    from gscope.queries.catalog.aggregates import AGGREGATES
    from gscope.queries.catalog.functions import FUNCTIONS
    from gscope.queries.catalog.protocols import PROTOCOL_ALIASES, PROTOCOLS

    by_name = {name.lower(): protocol for name, protocol in PROTOCOLS.items()}
    by_name |= {alias.lower(): PROTOCOLS[name] for alias, name in PROTOCOL_ALIASES.items()}
    read = [by_name[name.lower()] for name in _READ.findall(query) if name.lower() in by_name]
    seen = set()
    for protocol in read or PROTOCOLS.values():
        for field in protocol.fields:
            if field.name not in seen:
                seen.add(field.name)
                yield field.name, field.description
    if has_keywords:
        for name in (*FUNCTIONS, *AGGREGATES):
            if name.isidentifier():
                yield f"{name}(", ""
        for keyword in _KEYWORDS:
            yield keyword, ""
