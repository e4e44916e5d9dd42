"""Commands in the documentation exist, and so do the files that it names."""

from __future__ import annotations

import itertools
import re
import shlex
from pathlib import Path

import click
import pytest

from gscope.cli.main import cli
from gscope.queries import lookup_files
from gscope.queries.analysis.typing import lookups
from gscope.queries.analysis.typing.user_code import offer, withdraw
from gscope.queries.catalog.user_functions.files import UserFile
from gscope.queries.compile import CompileContext, QueryText, compile_queries
from gscope.queries.library.files import library_files

ROOT = Path(__file__).parents[2]
PAGES = [
    ROOT / "README.md",
    ROOT / "CHANGELOG.md",
    ROOT / "SECURITY.md",
    ROOT / "CONTRIBUTING.md",
    *sorted((ROOT / "docs").rglob("*.md")),
    *ROOT.glob("benchmarks/*.md"),
]
_BLOCK = re.compile(r"^```\w*\n(.*?)^```", re.MULTILINE | re.DOTALL)
_LINK = re.compile(r"\]\(([^)#:]*)(?:#([^)]*))?\)")
_HEADING = re.compile(r"^#+ (.*)$", re.MULTILINE)
_PATH = re.compile(
    r"`((?:capture|cli|engine|queries|tests|benchmarks|docs)/[\w./-]*\w(?:/|\.\w+))`"
)

_MADE = {"benchmarks/out/"}
"""What pages name and only a run makes."""


def commands() -> list[str]:
    """Every `gscope …` in a code block.

    Prompts and continued lines are put together, comments cut off.
    """
    found = []
    for page in PAGES:
        for block in _BLOCK.findall(page.read_text(encoding="utf-8")):
            text = re.sub(r"(?: \\)?\n\s{8,}| \\\n\s+", " ", block)
            for line in text.splitlines():
                command = line.strip().removeprefix("$ ").rpartition("| ")[2]
                if command.startswith("gscope "):
                    found.append(command)
    return found


def user_files() -> dict[str, str]:
    """The Python files that pages show, by the name in their first line."""
    return {
        name: block
        for page in PAGES
        for block in _BLOCK.findall(page.read_text(encoding="utf-8"))
        for name in re.findall(r"\A# (\w+\.py)\n", block)
    }


@pytest.mark.parametrize("command", sorted(set(commands())))
def test_a_documented_command_can_be_typed(command: str) -> None:
    words = shlex.split(command, comments=True)
    # With the settings of the group, or the subcommand would keep a help option without -h for
    # other tests.
    context = click.Context(cli, info_name="gscope", **cli.context_settings)
    subcommand = cli.get_command(context, words[1])
    assert subcommand is not None, f"there is no command {words[1]!r}"
    subcommand.make_parser(context).parse_args(words[2:])
    texts = [after for before, after in itertools.pairwise(words) if before == "-e"]
    files = [after for before, after in itertools.pairwise(words) if before == "--udf"]
    try:
        offer([UserFile(name, user_files()[name]) for name in files])
        lookups.offer(lookup_files.LOOKUP_NAMES if "--lookup" in words else ())
        if texts:
            named = [after for before, after in itertools.pairwise(words) if before == "-q"]
            queries = [QueryText(text, "-e") for text in texts]
            queries += [read_library(name) for name in named if name in library_files()]
            # The interfaces of other hosts are unknown here.
            interfaces = () if "--host" in words else ("main1",)
            compile_queries(queries, CompileContext(interfaces))
    finally:
        lookups.offer(())
        withdraw()


def read_library(name: str) -> QueryText:
    return QueryText(library_files()[name].read_text(encoding="utf-8"), f"{name}.gsql")


def test_commands_are_found() -> None:
    assert len(commands()) >= 5


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_links_and_files_that_a_page_names_are_there(page: Path) -> None:
    text = page.read_text(encoding="utf-8")
    missing = [link for link, _ in _LINK.findall(text) if not (page.parent / link).exists()]
    named = [path for path in _PATH.findall(text) if path not in _MADE]
    missing += [path for path in named if not (ROOT / path).exists()]
    assert not missing


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_headings_that_a_page_links_to_are_there(page: Path) -> None:
    for link, anchor in _LINK.findall(page.read_text(encoding="utf-8")):
        if anchor:
            target = page.parent / link if link else page
            assert anchor in anchors(target.read_text(encoding="utf-8")), f"{link}#{anchor}"


def anchors(text: str) -> set[str]:
    """What links call the headings of a page: small letters, hyphens for spaces, no other signs."""
    headings = _HEADING.findall(_BLOCK.sub("", text))
    return {re.sub(r"[^\w -]", "", heading.lower()).replace(" ", "-") for heading in headings}


def test_readme_lists_all_documents() -> None:
    links = {link for link, _ in _LINK.findall((ROOT / "README.md").read_text(encoding="utf-8"))}
    assert [
        page.name for page in (ROOT / "docs").glob("*.md") if f"docs/{page.name}" not in links
    ] == []


def test_gsql_lists_all_its_chapters() -> None:
    text = (ROOT / "docs" / "gsql.md").read_text(encoding="utf-8")
    links = {link for link, _ in _LINK.findall(text)}
    assert [
        p.name for p in (ROOT / "docs" / "gsql").glob("*.md") if f"gsql/{p.name}" not in links
    ] == []


def test_readme_names_the_two_commands_of_a_newcomer() -> None:
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    targets = re.findall(r"^(\w+):", (ROOT / "Makefile").read_text(encoding="utf-8"), re.MULTILINE)
    for target in ("demo", "test"):
        assert f"make {target}" in text
        assert target in targets
