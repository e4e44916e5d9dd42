"""The queries that ship with gscope, as files."""

from __future__ import annotations

from importlib import resources
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from importlib.resources.abc import Traversable

_PACKAGE = "gscope.queries.library"
_ENDING = ".gsql"


def library_files() -> dict[str, Traversable]:
    """Return every library file by its name: ``flow``, or ``published/flow`` if ``flow`` is taken.

    A query in a folder is also known by its bare name, unless a file outside the folder has it.
    """
    root = resources.files(_PACKAGE)
    files = {entry.name: entry for entry in _entries(root) if entry.name.endswith(_ENDING)}
    found = {name.removesuffix(_ENDING): file for name, file in files.items()}
    for folder in _entries(root):
        if folder.is_dir() and not folder.name.startswith("_"):
            for file in _entries(folder):
                if file.name.endswith(_ENDING):
                    name = file.name.removesuffix(_ENDING)
                    found.setdefault(name, file)
                    found[f"{folder.name}/{name}"] = file
    return found


def leading_comment(text: str) -> str:
    """Return the comment lines at the beginning of a query text, without their dashes."""
    lines = []
    for line in text.splitlines():
        if not line.startswith("--"):
            break
        lines.append(line.removeprefix("--").strip())
    return "\n".join(lines)


def _entries(folder: Traversable) -> list[Traversable]:
    return sorted(folder.iterdir(), key=lambda entry: entry.name)
