"""``gscope help``: the same texts as ``gscope -h`` and ``gscope COMMAND -h``."""

from __future__ import annotations

import click

from gscope.cli.commands.option_groups import with_pager
from gscope.cli.completion import candidates


@click.command(name="help", short_help="Describe gscope or one of its commands.")
@click.argument("command", required=False, shell_complete=candidates.commands)
@with_pager
@click.pass_context
def show_help(context: click.Context, command: str | None) -> None:
    """List the commands, or describe COMMAND as `gscope COMMAND -h` does.

    \b
      gscope help
      gscope help run
    """  # noqa: D301  # \b is click's mark for text that is not to be wrapped
    top = context.parent
    assert top is not None
    assert isinstance(top.command, click.Group)
    if command is None:
        click.echo(top.get_help())
        return
    name, found, _ = top.command.resolve_command(top, [command])
    assert found is not None
    with click.Context(found, info_name=name, parent=top) as described:
        click.echo(described.get_help())
