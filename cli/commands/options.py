"""How options are declared: environment variables, headings in help, typed groups of arguments."""

from __future__ import annotations

import functools
import inspect
from dataclasses import fields, is_dataclass
from typing import TYPE_CHECKING, Any, TypeVar

import click

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

OTHER = "Other options"
HEADINGS = (
    "Queries",
    "Capture",
    "Sampling",
    "Output",
    "Other hosts",
    "Runs and monitoring",
    "Heartbeats and failures",
    "Memory, disk and cores",
    "Privileges",
    OTHER,
)
"""The headings of options in help, in their order there."""

F = TypeVar("F", bound="Callable[..., Any]")
T = TypeVar("T")


class HeadedOption(click.Option):
    """An option that help lists under ``heading``."""

    def __init__(self, *arguments: Any, heading: str = OTHER, **settings: Any) -> None:
        super().__init__(*arguments, **settings)
        self.heading = heading


class HeadedCommand(click.Command):
    """A command whose help lists options under headings; with one heading only, as click does."""

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the options, one section for each heading."""
        sections: dict[str, list[tuple[str, str]]] = {heading: [] for heading in HEADINGS}
        options = (each for each in self.get_params(ctx) if isinstance(each, click.Option))
        for each in options:
            if (record := each.get_help_record(ctx)) is not None:
                heading = each.heading if isinstance(each, HeadedOption) else OTHER
                sections[heading].append(record)
        used = {heading: records for heading, records in sections.items() if records}
        for heading, records in used.items():
            with formatter.section(heading if len(used) > 1 else "Options"):
                formatter.write_dl(records)


class Lines(click.types.StringParamType):
    """Text; several values in one environment variable stand on a line each."""

    name = "text"

    def split_envvar_value(self, rv: str) -> Sequence[str]:
        """Return one value for each line."""
        return [line for line in rv.splitlines() if line.strip()]


class WholeText(click.types.StringParamType):
    """Text that may have several lines; an environment variable holds one value."""

    name = "text"

    def split_envvar_value(self, rv: str) -> Sequence[str]:
        """Return the one value."""
        return [rv]


def quantity(
    parse: Callable[[str], T],
) -> Callable[[click.Context, click.Parameter, str | None], T | None]:
    """Return a ``callback`` that reads the text of an option with ``parse``.

    Args:
        parse: a function such as those of ``cli/config/quantities.py``; raises ValueError with a
            sentence.
    """

    def read(context: click.Context, parameter: click.Parameter, text: str | None) -> T | None:
        try:
            return None if text is None else parse(text)
        except ValueError as error:
            raise click.BadParameter(str(error), context, parameter) from error

    return read


def switch_off(
    context: click.Context,  # noqa: ARG001  # click's signature
    parameter: click.Parameter,  # noqa: ARG001
    is_given: bool,
) -> bool | None:
    """Return False for a flag ``--no-…`` that is given, None for one that is not."""
    return False if is_given else None


def option(*names: str, heading: str = OTHER, **settings: Any) -> Callable[[F], F]:
    """Return a click option with the environment variable ``GSCOPE_<LONG NAME>``."""
    long = next(name for name in names if name.startswith("--")).split("/")[0]
    settings.setdefault("envvar", "GSCOPE_" + long[2:].replace("-", "_").upper())
    return click.option(*names, cls=HeadedOption, show_envvar=True, heading=heading, **settings)


def _parameters(make: Callable[..., Any]) -> tuple[str, ...]:
    if is_dataclass(make):
        return tuple(each.name for each in fields(make) if each.init)
    return tuple(inspect.signature(make).parameters)


def option_group(
    argument: str, make: Callable[..., Any], *options: Callable[[Any], Any]
) -> Callable[[F], F]:
    """Return a decorator that adds ``options`` and gives the command one ``argument`` made of them.

    Args:
        argument: the command's parameter.
        make: a dataclass or a function with a parameter for each option and argument of the
            group; those that the command does not declare keep their defaults.
        options: decorators of click, in the order of help.
    """
    names = _parameters(make)

    def decorate(function: F) -> F:
        @functools.wraps(function)
        def command(**arguments: Any) -> Any:
            given = {name: arguments.pop(name) for name in names if name in arguments}
            return function(**arguments, **{argument: make(**given)})

        decorated: Any = command
        for each in reversed(options):
            decorated = each(decorated)
        result: F = decorated
        return result

    return decorate
