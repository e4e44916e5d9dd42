"""Which page of the site stands for which file of the project, and links between them.

Pages in ``docs/`` link to files elsewhere in the project. These become pages as well: documents as
they are, sources with their text. Knows nothing of MkDocs.
"""

from __future__ import annotations

import posixpath
import re
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

ROOT = Path(__file__).resolve().parents[2]
"""The folder of the project."""

DOCUMENTS = {
    "README.md": "index.md",
    "CHANGELOG.md": "changelog.md",
    "CONTRIBUTING.md": "contributing.md",
    "SECURITY.md": "security.md",
    "benchmarks/README.md": "benchmarks/README.md",
    "benchmarks/RESULTS.md": "benchmarks/results.md",
}
"""Documents outside ``docs/`` that are pages, by their path in the project."""

SOURCES = "source/"
"""The folder of the site with the pages of sources."""

_LINK = re.compile(
    r"^```.*?^```[ ]*$|`[^`]+`|(?<=\]\()(?P<path>[^)\s#:]+)(?P<anchor>#[^)\s]*)?(?=\))",
    re.MULTILINE | re.DOTALL,
)
"""A block of code, code, or the target of a link to a file."""


def slug(heading: str, separator: str = "-") -> str:
    """Return the anchor of a heading as repositories make it, which the documents link to."""
    return re.sub(r"[^\w -]", "", heading.strip().lower()).replace(" ", separator)


def page_of(path: str) -> str:
    """Return the page of a file or folder of the project, both as paths with slashes."""
    if path in DOCUMENTS:
        return DOCUMENTS[path]
    if path.startswith("docs/"):
        return path.removeprefix("docs/")
    return f"{SOURCES}{path}.md"


def file_of(page: str) -> str:
    """Return the file or folder of the project that a page of the site stands for."""
    for path, name in DOCUMENTS.items():
        if name == page:
            return path
    if page.startswith(SOURCES):
        return page.removeprefix(SOURCES).removesuffix(".md")
    return f"docs/{page}"


def documents() -> list[str]:
    """Return the pages that are not made of sources, sorted."""
    pages = {path.relative_to(ROOT).as_posix() for path in (ROOT / "docs").rglob("*.md")}
    return sorted(page_of(path) for path in pages | set(DOCUMENTS))


def read(page: str) -> str:
    """Return the text of a page that is not made of a source."""
    return (ROOT / file_of(page)).read_text(encoding="utf-8")


def linked_files(page: str, text: str) -> Iterator[str]:
    """Yield the files and folders of the project that a page links to."""
    for match in _LINK.finditer(text):
        if match["path"]:
            yield _target(page, match["path"])


def linked_sources() -> list[str]:
    """Return the files and folders that documents link to and that are not documents, sorted."""
    found = {path for page in documents() for path in linked_files(page, read(page))}
    return sorted(path for path in found if page_of(path).startswith(SOURCES))


def with_site_links(page: str, text: str) -> str:
    """Return the text of a page with links to pages of the site in place of files."""

    def replaced(match: re.Match[str]) -> str:
        if not match["path"]:
            return match[0]
        target = page_of(_target(page, match["path"]))
        folder = posixpath.dirname(page) or "."
        return posixpath.relpath(target, folder) + (match["anchor"] or "")

    return _LINK.sub(replaced, text)


def _target(page: str, link: str) -> str:
    """Return the path in the project that a link on a page leads to."""
    return posixpath.normpath(posixpath.join(posixpath.dirname(file_of(page)), link))
