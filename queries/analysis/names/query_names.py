"""What DEFINE says of a query as a whole: its name, visibility, and file for packets."""

from __future__ import annotations

import re
from pathlib import PurePath
from typing import TYPE_CHECKING

from gscope.errors import ResolveError

if TYPE_CHECKING:
    from collections.abc import Container

    from gscope.queries.gsql import nodes

# Names of queries become names of files and columns of reports.
_QUERY_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_-]{0,99}")
_VISIBILITY = {"external": True, "internal": False}
_SAVED_PACKETS = "save_packets"


def named_queries(file: nodes.File) -> list[tuple[str, nodes.Query]]:
    """Return the queries of a file with their names.

    Queries without a name take that of the file, numbered if there are several.
    """
    stem = re.sub(r"[^A-Za-z0-9_]+", "_", PurePath(file.source).stem).strip("_") or "query"
    stem = f"q{stem}" if stem[0].isdigit() else stem
    taken = {query.name for query in file.queries if query.name is not None}
    unnamed = sum(query.name is None for query in file.queries)
    number = 0
    named = []
    for query in file.queries:
        name = query.name
        while name is None:
            number += 1
            candidate = stem if unnamed == 1 and number == 1 else f"{stem}_{number}"
            name = None if candidate in taken else candidate
        named.append((name, query))
    return named


def check_name(
    name: str, query: nodes.Query, protocols: Container[str], taken: Container[str]
) -> None:
    """Refuse a name that a query cannot have.

    Raises:
        ResolveError: the name is invalid, or a protocol or another query has it.
    """
    remedy = "give it another with query_name '…';"
    if not _QUERY_NAME.fullmatch(name):
        message = f"{name[:100]!r} cannot be the name of a query"
        remedy = "use up to 100 letters, digits, _ and -, a letter or _ first"
    elif name in protocols:
        message = f"a query cannot have the name of the protocol {name}"
    elif name in taken:
        message = f"two queries are called {name}"
    else:
        return
    raise ResolveError(message, position=query.position, remedy=remedy)


def is_external(query: nodes.Query) -> bool:
    """Return whether the result is delivered even if other queries read it: its ``visibility``.

    Raises:
        ResolveError: ``visibility`` is neither external nor internal.
    """
    for entry in query.define:
        if entry.name.lower() == "visibility":
            value = str(entry.value.value).lower()
            if value not in _VISIBILITY:
                message = (
                    f"invalid visibility: expected external or internal, got {entry.value.value!r}"
                )
                remedy = "write visibility 'external';"
                raise ResolveError(message, position=entry.position, remedy=remedy)
            return _VISIBILITY[value]
    return False


def saved_packets_file(query: nodes.Query) -> str | None:
    """Return the file that ``save_packets`` in DEFINE names; None without the entry.

    Raises:
        ResolveError: it is not the name of a file.
    """
    for entry in query.define:
        if entry.name.lower() == _SAVED_PACKETS:
            name = entry.value.value
            if not isinstance(name, str) or not name or "\0" in name:
                message = f"invalid save_packets: expected the name of a file, got {name!r}"
                remedy = "write save_packets 'hits.pcapng';"
                raise ResolveError(message, position=entry.position, remedy=remedy)
            return name
    return None
