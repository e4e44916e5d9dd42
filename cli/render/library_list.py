"""The queries of the library as lines of text and as JSON."""

from __future__ import annotations

import itertools
from typing import TYPE_CHECKING, Any

from gscope.queries.library.description import GROUPS

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from gscope.queries.library.search import LibraryQuery


def list_lines(queries: Sequence[LibraryQuery]) -> Iterator[str]:
    """Yield a heading for each group, and a line for each query in it."""
    groups = itertools.groupby(queries, key=lambda query: query.description.group)
    for number, (group, members) in enumerate(groups):
        if number:
            yield ""
        yield GROUPS[group]
        listed = list(members)
        width = max(len(query.name) for query in listed)
        for query in listed:
            yield f"  {query.name:<{width}}  {query.description.summary}"


def as_json(query: LibraryQuery) -> dict[str, Any]:
    """Return what the library knows of a query."""
    about = query.description
    return {
        "name": query.name,
        "group": about.group,
        "summary": about.summary,
        "remarks": about.remarks,
        "columns": about.columns,
        "assumes": about.assumes,
        "example": about.example,
        "text": query.text,
    }
