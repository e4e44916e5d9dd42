"""Library queries that query texts name as ``folder/query``."""

from __future__ import annotations

import re
from importlib import resources
from typing import TYPE_CHECKING

from gscope.errors import ResolveError
from gscope.queries.did_you_mean import did_you_mean
from gscope.queries.gsql.parser import parse

if TYPE_CHECKING:
    from importlib.resources.abc import Traversable

    from gscope.queries.gsql import nodes

_PACKAGE = "gscope.queries.library"
_ENDING = ".gsql"
_PLAIN = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_-]*")


def load_library_file(reference: nodes.NamedInput) -> nodes.File:
    """Return the library file ``folder/query.gsql``, parsed.

    Raises:
        ResolveError: there is no such file.
        GsqlSyntaxError: it does not parse.
    """
    folders = (reference.library or "").split("/")
    place: Traversable = resources.files(_PACKAGE)
    for folder in folders:
        # Names come from query texts: none may lead out of the library's folder.
        place = place / folder if _PLAIN.fullmatch(folder) else place / "-"
    file = place / f"{reference.name}{_ENDING}"
    if not _PLAIN.fullmatch(reference.name) or not place.is_dir() or not file.is_file():
        message = f"the library has no query {reference.library}/{reference.name}"
        names = _names(place) if place.is_dir() else _folders()
        kind = "it has" if place.is_dir() else "its folders are"
        raise ResolveError(
            message, position=reference.position, remedy=did_you_mean(reference.name, names, kind)
        )
    return parse(file.read_text(encoding="utf-8"), f"{reference.library}/{reference.name}{_ENDING}")


def _names(place: Traversable) -> list[str]:
    return [e.name.removesuffix(_ENDING) for e in place.iterdir() if e.name.endswith(_ENDING)]


def _folders() -> list[str]:
    return [
        entry.name
        for entry in resources.files(_PACKAGE).iterdir()
        if entry.is_dir() and not entry.name.startswith("_")
    ]
