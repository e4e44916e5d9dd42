"""The site of the documentation: all pages have a place, all links lead to pages."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from functools import cache
from typing import TYPE_CHECKING, Any

import pytest
import yaml
from tests.docs.test_pages import anchors
from tests.packaging.site_modules import site_module
from tests.support.requirements import ROOT, needs_module

from gscope.queries.catalog.functions import FUNCTIONS
from gscope.queries.gsql.tables import user_tables

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

LINKS = site_module("links")
LISTED_BY_OTHERS = re.compile(r"decisions/0\d+-.*\.md")
"""Pages that need no place in the navigation, because the page of decisions lists them."""


@cache
def config() -> dict[str, Any]:
    made: dict[str, Any] = yaml.safe_load((ROOT / "mkdocs.yml").read_text(encoding="utf-8"))
    return made


def in_nav(entry: object) -> Iterator[str]:
    """Yield the pages of the navigation, in order."""
    if isinstance(entry, str):
        yield entry
    else:
        for each in entry.values() if isinstance(entry, dict) else entry:  # type: ignore[attr-defined]
            yield from in_nav(each)


def test_every_document_has_a_place_in_the_navigation() -> None:
    placed = set(in_nav(config()["nav"]))
    missing = [
        LINKS.file_of(page)
        for page in LINKS.documents()
        if page not in placed and not LISTED_BY_OTHERS.fullmatch(page)
    ]
    assert not missing, f"add to a section of `nav` in mkdocs.yml: {', '.join(missing)}"


def test_the_navigation_has_each_page_once_and_no_page_that_is_gone() -> None:
    placed = list(in_nav(config()["nav"]))
    gone = set(placed) - set(LINKS.documents())
    assert not gone, f"remove from `nav` in mkdocs.yml: {', '.join(sorted(gone))}"
    assert len(placed) == len(set(placed))


def test_readers_come_from_the_language_to_the_decisions() -> None:
    sections = [next(iter(section)) for section in config()["nav"]]
    order = ["Start", "Language", "Cookbook", "Library", "Operations", "Decisions"]
    assert [section for section in sections if section in order] == order


@pytest.mark.parametrize(
    ("page", "link", "expected"),
    [
        ("index.md", "docs/cookbook.md", "cookbook.md"),
        ("index.md", "docs/operations.md#sensors", "operations.md#sensors"),
        ("gsql/files.md", "../../CONTRIBUTING.md", "../contributing.md"),
        ("decisions/README.md", "0002-two-planes.md", "0002-two-planes.md"),
        ("benchmarks/README.md", "RESULTS.md", "results.md"),
        ("changelog.md", "docs/gsql/windows.md", "gsql/windows.md"),
        (
            "library.md",
            "../queries/library/vlans.gsql",
            "source/queries/library/vlans.gsql.md",
        ),
        ("library.md", "../tests/golden/jitter", "source/tests/golden/jitter.md"),
    ],
)
def test_links_between_files_become_links_between_pages(
    page: str, link: str, expected: str
) -> None:
    assert LINKS.with_site_links(page, f"see [it]({link}).") == f"see [it]({expected})."


@pytest.mark.parametrize(
    "text", ["[a](https://x.org/y.md)", "[b](#here)", "`[c](../d.md)`", "```\n[e](../f.md)\n```"]
)
def test_other_links_and_code_stay_as_they_are(text: str) -> None:
    assert LINKS.with_site_links("library.md", text) == text


def test_every_link_leads_to_a_page_or_a_file() -> None:
    pages = set(LINKS.documents())
    wrong = [
        f"{page}: {path}"
        for page in pages
        for path in LINKS.linked_files(page, LINKS.read(page))
        if LINKS.page_of(path) not in pages and not (ROOT / path).exists()
    ]
    assert wrong == []


def test_sources_that_documents_link_to_are_found() -> None:
    assert "queries/library/syn_flood.gsql" in LINKS.linked_sources()
    assert "LICENSE" in LINKS.linked_sources()


def test_headings_have_the_anchors_that_documents_link_to() -> None:
    for page in LINKS.documents():
        for anchor in re.findall(r"^#+ (.*)$", LINKS.read(page), re.MULTILINE)[:5]:
            assert LINKS.slug(anchor) in anchors(f"# {anchor}\n")


@pytest.mark.long
@needs_module("mkdocs")
@needs_module("material")
def test_the_site_builds_without_a_warning_and_its_search_knows_the_language(
    tmp_path: Path,
) -> None:
    build = [sys.executable, "-m", "mkdocs", "build", "--strict", "--site-dir", str(tmp_path)]
    done = subprocess.run(build, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    index = json.loads((tmp_path / "search" / "search_index.json").read_text(encoding="utf-8"))
    separator = re.compile(index["config"]["separator"])
    by_word: dict[str, set[str]] = {}
    for entry in index["docs"]:
        for word in separator.split(re.sub(r"<[^>]*>", " ", f"{entry['title']} {entry['text']}")):
            by_word.setdefault(word.lower(), set()).add(entry["location"].partition("#")[0])
    written = " ".join(path.read_text(encoding="utf-8") for path in ROOT.glob("docs/gsql/*.md"))
    words = (set(user_tables().terminals) | set(FUNCTIONS)) & set(re.findall(r"\w+", written))
    assert len(words) > 100
    lacking = [
        word
        for word in words
        if not any(page.startswith("gsql/") for page in by_word.get(word.lower(), ()))
    ]
    assert lacking == []
    assert "stopWordFilter" not in index["config"]["pipeline"]
    assert "source/queries/library/syn_flood.gsql/" in by_word["syn_flood"]
    joins = (tmp_path / "gsql" / "joins" / "index.html").read_text(encoding="utf-8")
    assert '<span class="k">MERGE</span>' in joins
