"""The queries that ship with gscope, as files.

A query's full name is that of its file, with the folder before it: ``flow``, ``published/flow``. A
query in a folder is also known by its bare name, unless a file outside the folder has that name:
``dup_ratio`` is ``published/dup_ratio``, but ``flow`` is ``flow``.
"""

from __future__ import annotations

from importlib import resources
from typing import TYPE_CHECKING

from gscope.queries.did_you_mean import closest

if TYPE_CHECKING:
    from importlib.resources.abc import Traversable

_PACKAGE = "gscope.queries.library"
_ENDING = ".gsql"


def library_files() -> dict[str, Traversable]:
    """Return every library file by each of its names."""
    full = full_names()
    found = dict(full)
    for name, file in full.items():
        found.setdefault(name.rpartition("/")[2], file)
    return found


def full_names() -> dict[str, Traversable]:
    """Return every library file by its full name; those outside folders come first."""
    root = resources.files(_PACKAGE)
    found = _queries(root, "")
    for folder in _entries(root):
        if folder.is_dir() and not folder.name.startswith("_"):
            found |= _queries(folder, f"{folder.name}/")
    return found


def closest_query(name: str) -> str | None:
    """Return the full name of the query that ``name`` resembles most; None if it resembles none."""
    by_bare_name: dict[str, str] = {}
    for full in full_names():
        by_bare_name.setdefault(full.rpartition("/")[2], full)
    close = closest(name.rpartition("/")[2], by_bare_name)
    return None if close is None else by_bare_name[close]


def _queries(folder: Traversable, prefix: str) -> dict[str, Traversable]:
    return {
        prefix + entry.name.removesuffix(_ENDING): entry
        for entry in _entries(folder)
        if entry.name.endswith(_ENDING)
    }


def _entries(folder: Traversable) -> list[Traversable]:
    return sorted(folder.iterdir(), key=lambda entry: entry.name)
