"""``gscope library``: the queries that ship with gscope."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import click

from gscope.errors import UsageError
from gscope.queries.did_you_mean import suggestion
from gscope.queries.library.files import leading_comment, library_files

if TYPE_CHECKING:
    from collections.abc import Mapping
    from importlib.resources.abc import Traversable

_END_OF_SENTENCE = re.compile(r"(?<=\.) ")


@click.command(short_help="List or print the queries that ship with gscope.")
@click.argument("names", nargs=-1, metavar="[NAME...]")
def library(names: tuple[str, ...]) -> None:
    """List the library queries and what their answers show, or print the named ones.

    \b
      gscope library top_talkers
      gscope replay trace.pcap -q top_talkers
    """  # noqa: D301  # \b is click's mark for text that is not to be wrapped
    files = library_files()
    if not names:
        listed = _listed(files)
        width = max(map(len, listed))
        for name, file in listed.items():
            click.echo(f"{name:<{width}}  {_first_sentence(file)}")
        return
    for name in names:
        if name not in files:
            hint = suggestion(name, files, "`gscope library` lists them")
            message = f"the library has no query {name!r}; {hint}"
            raise UsageError(message)
        click.echo(files[name].read_text(encoding="utf-8"), nl=False)


def _listed(files: Mapping[str, Traversable]) -> dict[str, Traversable]:
    """Return each file once, by its bare name unless another file has that name."""
    return {
        name: file
        for name, file in files.items()
        if "/" not in name or files[name.rpartition("/")[2]] is not file
    }


def _first_sentence(file: Traversable) -> str:
    comment = leading_comment(file.read_text(encoding="utf-8")).replace("\n", " ")
    return _END_OF_SENTENCE.split(comment, maxsplit=1)[0]
