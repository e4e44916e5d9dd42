"""``gscope library``: the queries that ship with gscope."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import click

from gscope.cli.commands.option_groups import with_pager
from gscope.cli.commands.options import option
from gscope.cli.completion import candidates
from gscope.cli.render.library_list import as_json, list_lines
from gscope.errors import UsageError
from gscope.queries.library.search import library_queries, resembling, search

if TYPE_CHECKING:
    from collections.abc import Sequence

    from gscope.queries.library.search import LibraryQuery

_PUBLISHED = "published"


@click.command(short_help="List, search or print the queries that ship with gscope.")
@click.argument(
    "words", nargs=-1, metavar="[NAME|WORD...]", shell_complete=candidates.library_queries
)
@option(
    "--search",
    "searched",
    multiple=True,
    metavar="WORD",
    help="List the queries with WORD in name, description or columns, even if WORD is the name of"
    " a query.",
)
@option("--json", "is_json", is_flag=True, help="Print names, descriptions and texts as JSON.")
@with_pager
def library(words: tuple[str, ...], searched: tuple[str, ...], *, is_json: bool) -> None:
    """List the library queries by purpose, search them, or print the named ones.

    A printed query begins with a comment that explains its columns. Words that are not names of
    queries are searched for. Queries in published/ are those of research papers, as printed: a
    name without published/ denotes one of these only if the library has no other of that name.

    \b
      gscope library                     # the list
      gscope library dns                 # queries about DNS
      gscope library top_talkers         # print one
      gscope library published           # list the published queries
      gscope replay trace.pcap -q top_talkers
    """  # noqa: D301  # \b is click's mark for text that is not to be wrapped
    queries = library_queries()
    named = [] if searched else _named(queries, words)
    wanted = (*words, *searched)
    found = named or (_found(queries, wanted) if wanted else queries)
    if is_json:
        click.echo(json.dumps([as_json(query) for query in found], indent=2))
    elif named:
        _print(queries, named)
    elif wanted:
        _echo_lines(found)
    else:
        _echo_lines([q for q in queries if q.description.group != _PUBLISHED])
        _echo_more(sum(q.description.group == _PUBLISHED for q in queries))


def _named(queries: Sequence[LibraryQuery], names: Sequence[str]) -> list[LibraryQuery]:
    """Return the queries of these names; [] unless each is the name of one."""
    known = {query.name.rpartition("/")[2]: query for query in queries if "/" in query.name}
    known |= {query.name: query for query in queries}
    return [known[name] for name in names] if all(name in known for name in names) else []


def _found(queries: Sequence[LibraryQuery], words: Sequence[str]) -> list[LibraryQuery]:
    """Return the queries that ``words`` find.

    Raises:
        UsageError: there are none.
    """
    found = search(queries, words)
    if found:
        return found
    unknown = next((word for word in words if not search(queries, [word])), None)
    if unknown is None:
        message = f"the library has no query with all of the words {', '.join(map(repr, words))}"
        raise UsageError(message)
    close = resembling(queries, unknown)
    hint = "`gscope library` lists them" if close is None else f"did you mean {close}?"
    message = f"the library has no query {unknown!r}, and none with this word; {hint}"
    raise UsageError(message)


def _print(queries: Sequence[LibraryQuery], named: Sequence[LibraryQuery]) -> None:
    full = {query.name for query in queries}
    for query in named:
        click.echo(query.text, nl=False)
        if f"{_PUBLISHED}/{query.name}" in full:
            note = f"gscope: the query that the papers call {query.name} is"
            click.echo(f"{note} {_PUBLISHED}/{query.name}", err=True)


def _echo_lines(queries: Sequence[LibraryQuery]) -> None:
    for line in list_lines(queries):
        click.echo(line)


def _echo_more(published: int) -> None:
    click.echo(
        "\n`gscope library NAME` prints a query and what its columns mean, and"
        "\n`gscope library WORD` searches. `gscope library published` lists the"
        f"\n{published} queries of research papers."
    )
