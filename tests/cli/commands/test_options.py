"""Options under headings, and groups of them as one argument."""

from __future__ import annotations

from dataclasses import dataclass

import click
import pytest
from click.testing import CliRunner

from gscope.cli.commands.options import (
    HEADINGS,
    OTHER,
    HeadedCommand,
    HeadedOption,
    option,
    option_group,
    switch_off,
)
from gscope.cli.main import cli


@dataclass(frozen=True, slots=True)
class Request:
    names: tuple[str, ...] = ()
    is_fast: bool | None = None
    count: int = 7


@click.command(cls=HeadedCommand)
@option_group(
    "request",
    Request,
    option("--name", "names", multiple=True, heading="Queries", help="A name."),
    option("--no-fast", "is_fast", is_flag=True, callback=switch_off, heading="Output"),
)
@option("--loud", is_flag=True, help="Shout.")
def command(request: Request, loud: bool) -> None:
    click.echo(f"{request} {loud}")


def test_a_group_becomes_one_argument_and_the_rest_stays() -> None:
    shown = CliRunner().invoke(command, ["--name", "a", "--name", "b", "--loud"]).output
    assert shown == "Request(names=('a', 'b'), is_fast=None, count=7) True\n"


@pytest.mark.parametrize("given", [(["--no-fast"], {}), ([], {"GSCOPE_NO_FAST": "1"})])
def test_a_switch_off_is_false_only_where_it_is_given(
    given: tuple[list[str], dict[str, str]],
) -> None:
    arguments, environment = given
    shown = CliRunner().invoke(command, arguments, env=environment).output
    assert "is_fast=False" in shown


def test_help_lists_options_under_their_headings_in_order() -> None:
    shown = CliRunner().invoke(command, ["--help"]).output
    lines = [line for line in shown.splitlines() if line.endswith(":") and line[0] != " "]
    assert lines == ["Queries:", "Output:", f"{OTHER}:"]


@pytest.mark.parametrize("name", ["run", "replay", "explain"])
def test_every_option_but_the_general_ones_has_a_heading(name: str) -> None:
    found = cli.get_command(click.Context(cli), name)
    assert found is not None
    headed = [each for each in found.params if isinstance(each, HeadedOption)]
    assert {each.heading for each in headed} <= set(HEADINGS)
    assert [each.name for each in headed if each.heading == OTHER] == ["config_path"]
