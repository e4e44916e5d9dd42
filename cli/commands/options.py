"""Options that several commands share. Help shows the environment variable of each."""

from __future__ import annotations

import functools
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click
from click.core import ParameterSource

from gscope.cli.config.settings import SETTINGS

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from gscope.cli.config.settings import Setting

OF_RUNS = tuple(setting.key for setting in SETTINGS)
"""Settings that mean something only to commands that run queries."""

F = TypeVar("F", bound="Callable[..., Any]")
T = TypeVar("T")


class Lines(click.types.StringParamType):
    """Text; several values in one environment variable stand on a line each."""

    name = "text"

    def split_envvar_value(self, rv: str) -> Sequence[str]:
        """One value a line."""
        return [line for line in rv.splitlines() if line.strip()]


class WholeText(click.types.StringParamType):
    """Text that may have several lines; an environment variable holds one value."""

    name = "text"

    def split_envvar_value(self, rv: str) -> Sequence[str]:
        """One value."""
        return [rv]


def quantity(
    parse: Callable[[str], T],
) -> Callable[[click.Context, click.Parameter, str | None], T | None]:
    """Reads the text of an option by one of ``cli/config/quantities.py`` or the like; for its ``callback``."""

    def read(context: click.Context, parameter: click.Parameter, text: str | None) -> T | None:
        try:
            return None if text is None else parse(text)
        except ValueError as error:
            raise click.BadParameter(str(error), context, parameter) from error

    return read


def option(*names: str, **settings: Any) -> Callable[[F], F]:
    """A click option with the environment twin ``GSCOPE_<LONG NAME>``."""
    long = next(name for name in names if name.startswith("--")).split("/")[0]
    settings.setdefault("envvar", "GSCOPE_" + long[2:].replace("-", "_").upper())
    return click.option(*names, show_envvar=True, **settings)


def with_queries(function: F) -> F:
    """``-q``, ``-e``, ``--param``: which queries, with which values."""
    for each in (
        option(
            "--param",
            "parameters",
            metavar="NAME=VALUE",
            multiple=True,
            type=Lines(),
            help="Set a query parameter declared in PARAM. May be repeated.",
        ),
        option(
            "-e",
            "--expression",
            "expressions",
            metavar="GSQL",
            multiple=True,
            type=WholeText(),
            help="Query text. May be repeated; queries can read each other's results.",
        ),
        option(
            "-q",
            "--query",
            "queries",
            metavar="QUERY",
            multiple=True,
            type=Lines(),
            help="A .gsql file or the name of a library query (see `gscope library`). The name of a query"
            " inside the given files and texts selects its result, as --deliver does. May be repeated.",
        ),
    ):
        function = each(function)
    return function


def with_texts(function: F) -> F:
    """``-e``, ``--param``: query texts, with which values."""
    parameters = option(
        "--param",
        "parameters",
        metavar="NAME=VALUE",
        multiple=True,
        type=Lines(),
        help="Set a query parameter declared in PARAM. May be repeated.",
    )
    expressions = option(
        "-e",
        "--expression",
        "expressions",
        metavar="GSQL",
        multiple=True,
        type=WholeText(),
        help="Query text. May be repeated.",
    )
    return expressions(parameters(function))


def with_output(files: str) -> Callable[[F], F]:
    """``--write``, ``--timings``, ``--quiet``: where answers go, and what else is reported.

    Args:
        files: the help of ``--write``.
    """
    folder = option(
        "-w",
        "--write",
        "folder",
        metavar="DIR",
        type=click.Path(file_okay=False, path_type=Path),
        help=files,
    )
    timings = option(
        "--timings", is_flag=True, help="Report on standard error how long each phase took."
    )
    quiet = option("--quiet", is_flag=True, help="Suppress progress and summary on standard error.")
    return lambda function: folder(timings(quiet(function)))


def with_deliver(function: F) -> F:
    """``--deliver``: which results."""
    return option(
        "--deliver",
        "delivered",
        metavar="NAME",
        multiple=True,
        type=Lines(),
        help="Deliver only the results of the named queries. May be repeated. By default deliver results that"
        " no other query reads, and those of external queries.",
    )(function)


def with_interfaces(function: F) -> F:
    """``-i``: interfaces that queries are compiled for."""
    return option(
        "-i",
        "--interface",
        "interfaces",
        metavar="NAME",
        multiple=True,
        type=Lines(),
        help="Interface that queries may name. May be repeated. By default those of the configuration file.",
    )(function)


def with_config(*, without: tuple[str, ...] = (), has_udf: bool = True) -> Callable[[F], F]:
    """All settings as options, ``--udf`` and ``--config``; the command gets one argument ``config``.

    Args:
        without: settings that mean nothing to the command.
        has_udf: whether ``--udf`` means something to it.
    """
    chosen = tuple(setting for setting in SETTINGS if setting.key not in without)

    def decorate(function: F) -> F:
        @functools.wraps(function)
        def command(**arguments: Any) -> Any:
            from gscope.cli.config.effective import Given, load_config

            context = click.get_current_context()
            given: dict[str, Given] = {}
            for setting in chosen:
                value = arguments.pop(setting.attribute)
                if value is not None:
                    origin = _origin(context, setting)
                    given[setting.key] = Given(str(value), origin)
            path = arguments.pop("config_path")
            config = load_config(given, path)
            if udf := arguments.pop("udf", None):
                config = replace(config, udf=udf)
            return function(**arguments, config=config)

        decorated: Any = command
        for setting in reversed(chosen):
            decorated = _setting_option(setting)(decorated)
        if has_udf:
            decorated = option(
                "--udf",
                metavar="FILE",
                multiple=True,
                type=Lines(),
                help="Python file that defines functions and aggregates for queries. May be repeated. By default"
                " those of the configuration file.",
            )(decorated)
        named: F = option(
            "--config",
            "config_path",
            metavar="FILE",
            type=click.Path(dir_okay=False, path_type=Path),
            help="Configuration file. Default: ./gscope.yaml, else ~/.config/gscope/gscope.yaml.",
        )(decorated)
        return named

    return decorate


def with_work_dir(function: F) -> F:
    """``--work-dir`` and ``--config``: where to look for runs; the command gets ``config``."""
    others = tuple(key for key in OF_RUNS if key != "work_dir")
    return with_config(without=others, has_udf=False)(function)


def with_run_name(help_text: str) -> Callable[[F], F]:
    """``--run``: the name of a run; the command gets ``name``."""
    return option("--run", "name", metavar="NAME", help=help_text)


def _setting_option(setting: Setting) -> Callable[[F], F]:
    text = setting.meaning[0].upper() + setting.meaning[1:] + "."
    if setting.default is not None and setting.kind.metavar:
        text += f" Default: {setting.default_text}."
    if not setting.kind.metavar:
        name = setting.long
        return option(
            f"{name}/--no-{name[2:]}", setting.attribute, default=None, help=text, is_flag=True
        )
    names = [name for name in (setting.short, setting.long) if name]
    return option(*names, setting.attribute, metavar=setting.kind.metavar, help=text)


def _origin(context: click.Context, setting: Setting) -> str:
    if context.get_parameter_source(setting.attribute) is ParameterSource.ENVIRONMENT:
        return f"${setting.variable}"
    return setting.long
