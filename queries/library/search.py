"""Find library queries by the words of their names, descriptions and columns."""

from __future__ import annotations

import re
from functools import cached_property
from typing import TYPE_CHECKING

from gscope.queries.did_you_mean import closest
from gscope.queries.library.description import GROUPS, describe
from gscope.queries.library.files import closest_query, full_names
from gscope.records import dataclass

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from gscope.queries.library.description import Description

_WORD = re.compile(r"[a-z0-9]+")


@dataclass(frozen=True)
class LibraryQuery:
    """A query of the library.

    Attributes:
        name: its full name.
        text: the file.
    """

    name: str
    text: str

    @cached_property
    def description(self) -> Description:
        """What its comment says."""
        return describe(self.text)

    @cached_property
    def words(self) -> frozenset[str]:
        """The words by which it is found, in small letters; of ``slow_dns`` the parts as well."""
        about = self.description
        columns = (f"{name} {meaning}" for name, meaning in about.columns.items())
        heading = GROUPS.get(about.group, "")
        prose = (self.name, about.group, heading, about.summary, about.remarks, about.assumes)
        text = " ".join([*prose, *columns]).lower()
        return frozenset([*_WORD.findall(text), *text.split()])


def library_queries() -> list[LibraryQuery]:
    """Return every query of the library, by group, then by name."""
    found = [LibraryQuery(name, f.read_text(encoding="utf-8")) for name, f in full_names().items()]
    groups = list(GROUPS)
    return sorted(found, key=lambda query: (groups.index(query.description.group), query.name))


def search(queries: Iterable[LibraryQuery], words: Iterable[str]) -> list[LibraryQuery]:
    """Return the queries that each of ``words`` finds.

    A word finds a query if one of the query's words begins with it; a plural also finds the
    singular.
    """
    wanted = [word.lower() for word in words]
    return [query for query in queries if all(_is_found(query, word) for word in wanted)]


def resembling(queries: Sequence[LibraryQuery], word: str) -> str | None:
    """Return the name of a query, or a word that finds some, that ``word`` resembles.

    None if none.
    """
    vocabulary = sorted({known for query in queries for known in query.words if len(known) > 3})
    return closest_query(word) or closest(word.lower(), vocabulary)


def _is_found(query: LibraryQuery, word: str) -> bool:
    singular = word.removesuffix("s") if len(word) > 3 else word
    return any(known.startswith((word, singular)) for known in query.words)
