"""``gscope library``: the queries that ship with gscope."""

from __future__ import annotations

import difflib

import click

from gscope.cli.library_files import leading_comment, library_files
from gscope.errors import UsageError


@click.command(short_help="List or show the queries that ship with gscope.")
@click.argument("names", nargs=-1, metavar="[NAME...]")
def library(names: tuple[str, ...]) -> None:
    """List the library's queries with what their answers show, or print those named.

    \b
      gscope library top_talkers
      gscope replay trace.pcap -q top_talkers
    """  # noqa: D301  # \b is click's mark for text that is not to be wrapped
    files = library_files()
    if not names:
        listed = {name: file for name, file in files.items() if "/" not in name}
        width = max(map(len, listed))
        for name, file in listed.items():
            first = leading_comment(file.read_text(encoding="utf-8")).partition("\n")[0]
            click.echo(f"{name:<{width}}  {first}")
        return
    for name in names:
        if name not in files:
            close = difflib.get_close_matches(name, files, 1)
            hint = f"did you mean {close[0]}?" if close else "`gscope library` lists them"
            message = f"the library has no query {name!r}; {hint}"
            raise UsageError(message)
        click.echo(files[name].read_text(encoding="utf-8"), nl=False)
