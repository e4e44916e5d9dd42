"""Library queries that query texts name as ``folder/query``."""

from __future__ import annotations

import re
from importlib import resources
from typing import TYPE_CHECKING

from gscope.errors import ResolveError
from gscope.queries.did_you_mean import DID_YOU_MEAN, closest, did_you_mean
from gscope.queries.gsql.parser import parse
from gscope.queries.library.files import full_names, library_files

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
        raise _unknown(reference, place)
    return parse(file.read_text(encoding="utf-8"), f"{reference.library}/{reference.name}{_ENDING}")


def library_remedy(name: str) -> str | None:
    """Return how a query text reads the library query ``name``; None if there is none."""
    file = library_files().get(name)
    if file is None:
        return None
    if name in full_names():
        return f"{name} is a library query: add -q {name}, and other queries of the run can read it"
    full = next(full for full in full_names() if full.endswith(f"/{name}"))
    return f"write {full}; that is the library's query"


def _unknown(reference: nodes.NamedInput, place: Traversable) -> ResolveError:
    full = f"{reference.library}/{reference.name}"
    if place.is_dir():
        close = closest(reference.name, _names(place))
        listed = f"`gscope library {reference.library}` lists those of this folder"
        remedy = listed if close is None else f"{DID_YOU_MEAN}{reference.library}/{close}?"
    else:
        remedy = did_you_mean(reference.library or "", _folders(), "available folders")
    message = f"the library has no query {full}"
    return ResolveError(message, position=reference.position, remedy=remedy)


def _names(place: Traversable) -> list[str]:
    return [e.name.removesuffix(_ENDING) for e in place.iterdir() if e.name.endswith(_ENDING)]


def _folders() -> list[str]:
    return [
        entry.name
        for entry in resources.files(_PACKAGE).iterdir()
        if entry.is_dir() and not entry.name.startswith("_")
    ]
