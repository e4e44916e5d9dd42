"""``gscope man``: manual pages, made from the help."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import click

from gscope.cli.commands.options import option
from gscope.cli.completion import candidates
from gscope.errors import GscopeError, UsageError
from gscope.queries.os_errors import os_reason


@click.command(short_help="Show or install the manual pages.")
@click.argument("command", required=False, shell_complete=candidates.commands)
@option(
    "--write",
    "folder",
    metavar="DIR",
    type=click.Path(file_okay=False, path_type=Path),
    shell_complete=candidates.folders,
    help="Write all pages to DIR, such as /usr/local/share/man/man1, instead of showing one.",
)
@click.pass_context
def man(context: click.Context, command: str | None, folder: Path | None) -> None:
    """Show the manual page of gscope or of COMMAND; in a pipe, print its source.

    The wheel installs the pages, so that `man gscope-run` finds them where man looks for the pages
    of programs in your PATH.

    \b
      gscope man run
      gscope man --write /usr/local/share/man/man1
    """  # noqa: D301  # \b is click's mark for text that is not to be wrapped
    from gscope.cli.manual.pages import SECTION, page, page_names

    top = context.find_root()
    assert isinstance(top.command, click.Group)
    if folder is not None:
        if command is not None:
            message = f"--write writes all pages; leave {command!r} out"
            raise UsageError(message)
        for name, of in page_names(top.command).items():
            _write(folder / f"{name}.{SECTION}", page(top.command, of))
        click.echo(f"wrote {len(page_names(top.command))} pages to {folder}")
        return
    if command is not None:
        top.command.resolve_command(top, [command])
    _show(page(top.command, command))


def _write(path: Path, text: str) -> None:
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="ascii")
    except OSError as error:
        message = f"cannot write {path}: {os_reason(error)}"
        raise GscopeError(message) from error


def _show(text: str) -> None:
    """Show a page with man; print its source where there is no terminal, or no man."""
    viewer = shutil.which("man")
    if viewer is None or not sys.stdout.isatty():
        click.echo(text, nl=False)
        return
    subprocess.run([viewer, "--local-file", "-"], input=text, text=True, check=False)
