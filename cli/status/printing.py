"""Prints the view of a run."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

import click
from rich.console import Console, Group

if TYPE_CHECKING:
    from collections.abc import Iterable

    from rich.console import RenderableType

_PIPE_COLUMNS = 200
"""The width of tables that do not go to a terminal: wide enough to cut nothing."""


def print_view(parts: Iterable[RenderableType]) -> None:
    """Print in colours and in the width of a terminal; elsewhere plain, with nothing cut."""
    is_terminal = sys.stdout.isatty()
    console = Console(width=None if is_terminal else _PIPE_COLUMNS, highlight=False)
    with console.capture() as captured:
        console.print(Group(*parts))
    for line in captured.get().splitlines():
        click.echo(line.rstrip())
