"""The tables of the GSQL parser, made from ``grammar.lark`` once and then cached.

The cache is in the user's cache folder. Making them takes a quarter of a second, loading them a
few milliseconds.
"""

from __future__ import annotations

import json
import os
from contextlib import suppress
from dataclasses import astuple
from functools import cache
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING

from gscope import __version__
from gscope.queries.gsql.lalr import ParseTables, Rule
from gscope.queries.ownership import fault_of_folder, is_trusted_file
from gscope.queries.user_cache import cache_folder, keep_text
from gscope.records import dataclass

if TYPE_CHECKING:
    from collections.abc import Mapping

STARTS = ("file", "expression", "define_value")
"""The rules with which a parse can begin."""

_FORMAT = 1
"""The version of the cached file."""

_GRAMMAR = Path(__file__).with_name("grammar.lark")


@dataclass(frozen=True, slots=True)
class Tables:
    """The tables of the parser, and its words.

    Attributes:
        parser: the LALR(1) tables, for tokens of `Scanner`.
        terminals: the terminal of each spelling (in capitals), for every keyword and symbol.
        spellings: the spelling of each terminal.
    """

    parser: ParseTables
    terminals: Mapping[str, str]
    spellings: Mapping[str, str]


@cache
def user_tables() -> Tables:
    """Return the tables, from the user's cache if they are there; loaded once in a process."""
    return load_tables(cache_folder())


def load_tables(directory: Path | None) -> Tables:
    """Return the tables from a cache directory, and write them there if they are missing.

    A directory that other users can write to or replace is not used: they could change what a query
    means. None means no cache.
    """
    grammar = _GRAMMAR.read_text(encoding="utf-8")
    if directory is None or not _is_usable(directory):
        return _made(grammar)
    key = sha256(f"{grammar}{__version__} {_FORMAT}".encode()).hexdigest()[:16]
    path = directory / f"gsql-{key}.json"
    if is_trusted_file(path):
        with suppress(OSError, ValueError, KeyError, TypeError):
            return _read(path.read_bytes())
    tables = _made(grammar)
    with suppress(OSError):
        keep_text(path, _written(tables))
    return tables


def _made(grammar: str) -> Tables:
    from gscope.queries.gsql.build_tables import build_tables

    return _tables(*build_tables(grammar, STARTS))


def _tables(parser: ParseTables, spellings: Mapping[str, str]) -> Tables:
    return Tables(parser, {spelling: name for name, spelling in spellings.items()}, spellings)


def _written(tables: Tables) -> str:
    parser = tables.parser
    rules = [astuple(each) for each in parser.rules]
    return json.dumps([parser.states, rules, parser.starts, parser.ends, tables.spellings])


def _read(content: bytes) -> Tables:
    states, rules, starts, ends, spellings = json.loads(content)
    return _tables(ParseTables(states, [_rule(*each) for each in rules], starts, ends), spellings)


def _rule(
    origin: str,
    size: int,
    action: str,
    parts: list[int | None],
    lists: list[int],
    passes_single: bool,
) -> Rule:
    return Rule(origin, size, action, tuple(parts), tuple(lists), passes_single)


def _is_usable(directory: Path) -> bool:
    return fault_of_folder(directory) is None and os.access(directory, os.W_OK)
