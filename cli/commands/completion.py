"""``gscope completion``: completes words in a shell.

They are commands, options, files, queries, devices and runs.
"""

from __future__ import annotations

import os
from pathlib import PurePath

import click

from gscope.cli.completion.shell_names import SHELLS
from gscope.errors import UsageError

_INSTALL = "install"


@click.command(short_help="Install completion for bash, zsh or fish.")
@click.argument("what", metavar="install|bash|zsh|fish", type=click.Choice((_INSTALL, *SHELLS)))
@click.argument("shell", metavar="[SHELL]", required=False, type=click.Choice(SHELLS))
def completion(what: str, shell: str | None) -> None:
    """Install completion with the Tab key, or print the script that defines it.

    Completes commands, options, files, library queries, devices, runs, formats, parameters, and
    within -e protocols, fields and functions. `install` writes the script where SHELL (default:
    yours, from $SHELL) finds it, and reports what it wrote; a new shell then has completion. With
    the name of a shell instead, prints the script.

    \b
      gscope completion install
      gscope completion install zsh
      gscope completion bash > /etc/bash_completion.d/gscope      # for all users
    """  # noqa: D301  # \b is click's mark for text that is not to be wrapped
    if what != _INSTALL:
        if shell is not None:
            message = (
                f"unexpected {shell!r} after {what}; `gscope completion {what}` prints the script"
            )
            raise UsageError(message)
        from gscope.cli.completion.shells import script

        click.echo(script(what), nl=False)
        return
    from gscope.cli.completion.install import install

    chosen = shell or _own_shell()
    for sentence in install(chosen):
        click.echo(sentence)
    click.echo(f"Start a new {chosen} to use it.")


def _own_shell() -> str:
    """Return the shell that the user works with.

    Raises:
        UsageError: it is unknown, or gscope has no completion for it.
    """
    name = PurePath(os.environ.get("SHELL", "")).name
    if name not in SHELLS:
        what = f"no completion for your shell, {name}" if name else "SHELL is not set"
        message = f"{what}; name one: gscope completion install {'|'.join(SHELLS)}"
        raise UsageError(message)
    return name
