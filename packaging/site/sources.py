"""Pages of the site for files and folders of the project that are not documents."""

from __future__ import annotations

from typing import TYPE_CHECKING

from links import ROOT

if TYPE_CHECKING:
    from pathlib import Path

MAX_LINES = 300
"""The most lines of a file that its page shows."""

_LANGUAGES = {".gsql": "gsql", ".py": "python", ".yaml": "yaml", ".json": "json", ".sh": "sh"}


def source_page(path: str) -> str:
    """Return the page of a file, or of the files in a folder, as Markdown."""
    return _front_matter(path) + _text(path)


def _front_matter(path: str) -> str:
    """Return what keeps rows of test cases out of the search; queries of the library are in it."""
    return "" if path.startswith("queries/") else "---\nsearch:\n  exclude: true\n---\n\n"


def _text(path: str) -> str:
    place = ROOT / path
    if place.is_file():
        return f"# {place.name}\n\n`{path}`\n\n{_block(place)}"
    files = [each for each in sorted(place.iterdir()) if each.is_file()]
    shown = "\n".join(f"## {each.name}\n\n{_block(each)}" for each in files)
    return f"# {place.name}\n\n`{path}/`\n\n{shown}"


def _block(path: Path) -> str:
    lines = path.read_text(encoding="utf-8", errors="replace").splitlines()
    shown = "\n".join(lines[:MAX_LINES])
    rest = len(lines) - MAX_LINES
    more = f"\n\n{rest:,} more lines are in the file.\n" if rest > 0 else "\n"
    return f"````{_LANGUAGES.get(path.suffix, 'text')}\n{shown}\n````{more}"
