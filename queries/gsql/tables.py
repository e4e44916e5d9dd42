"""The tables of the GSQL parser, built by lark from ``grammar.lark`` once and then cached.

The cache is in the user's cache folder. Building takes a quarter of a second, loading a hundredth.
"""

from __future__ import annotations

import os
import sys
from functools import cache
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING

import lark
from lark import Lark

from gscope.queries.gsql.builder import Builder
from gscope.queries.ownership import fault_of_folder, is_trusted_file
from gscope.queries.user_cache import cache_folder
from gscope.records import dataclass

if TYPE_CHECKING:
    from collections.abc import Mapping

STARTS = ["file", "expression", "define_value"]
"""The rules with which a parse can begin."""

_GRAMMAR = Path(__file__).with_name("grammar.lark")


@dataclass(frozen=True, slots=True)
class Tables:
    """A parser and its words.

    Attributes:
        lark: the LALR(1) parser, which reads tokens of `Scanner`.
        terminals: the terminal of each spelling (in capitals), for every keyword and symbol.
        spellings: the spelling of each terminal.
    """

    lark: Lark
    terminals: Mapping[str, str]
    spellings: Mapping[str, str]


@cache
def user_tables() -> Tables:
    """Return the tables, from the user's cache if they are there; loaded once in a process."""
    return load_tables(cache_folder())


def load_tables(directory: Path | None) -> Tables:
    """Return the tables from a cache directory, and write them there if they are missing.

    The cache is a pickle: a user who can write it can run code here. A directory that other users
    can write to or replace is not used; None means no cache.
    """
    grammar = _GRAMMAR.read_text(encoding="utf-8")
    parser = (
        _compile(grammar, None)
        if directory is None or not _is_usable(directory)
        else _cached(grammar, directory)
    )
    spellings = {terminal.name: terminal.pattern.value for terminal in parser.terminals}
    return Tables(parser, {spelling: name for name, spelling in spellings.items()}, spellings)


def _cached(grammar: str, directory: Path) -> Lark:
    key = sha256(f"{grammar}{lark.__version__}{sys.version}".encode()).hexdigest()[:16]
    path = directory / f"gsql-{key}.pickle"
    if is_trusted_file(path):
        return _compile(grammar, path)  # lark builds again what it cannot load
    building = directory / f"gsql-{key}.{os.getpid()}"
    parser = _compile(grammar, building)
    try:
        building.replace(path)  # whole or not at all, for processes that start at the same time
    except OSError:
        building.unlink(missing_ok=True)
    return parser


def _compile(grammar: str, cached: Path | None) -> Lark:
    return Lark(
        grammar,
        parser="lalr",
        lexer="basic",
        start=STARTS,
        transformer=Builder(),
        cache=_CacheFile(cached) if cached else False,
    )


class _CacheFile(str):
    """The path of lark's cache, which lark opens.

    lark also hashes its options as texts, and refuses a cache of another hash: one that was written
    under another name. So the text of this option is the same for all names.
    """

    __slots__ = ()

    def __str__(self) -> str:
        return "tables"


def _is_usable(directory: Path) -> bool:
    return fault_of_folder(directory) is None and os.access(directory, os.W_OK)
