"""Groups of options that several commands share, each of which becomes one argument."""

from __future__ import annotations

import functools
from contextlib import nullcontext
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar, cast

import click
from click.core import ParameterSource

from gscope.cli.commands.options import Lines, WholeText, option, option_group, quantity
from gscope.cli.commands.setting_options import origin_of, setting_option
from gscope.cli.completion import candidates
from gscope.cli.config.quantities import parse_count, parse_size
from gscope.cli.config.saving import save_request
from gscope.cli.config.setting_groups import OF_RUNS
from gscope.cli.config.settings import SETTINGS
from gscope.cli.session.request import WINDOW_PLANS, QueryRequest
from gscope.errors import UsageError
from gscope.records import dataclass

if TYPE_CHECKING:
    from collections.abc import Callable

    from gscope.cli.config.setting import Setting


F = TypeVar("F", bound="Callable[..., Any]")

_PARAMETERS = option(
    "--param",
    "parameters",
    heading="Queries",
    metavar="NAME=VALUE",
    multiple=True,
    shell_complete=candidates.parameters,
    type=Lines(),
    help="Set a query parameter declared in PARAM. May be repeated.",
)


def _expressions(text: str) -> Callable[[F], F]:
    """Return ``-e`` with a help ``text``."""
    return option(
        "-e",
        "--expression",
        "expressions",
        heading="Queries",
        metavar="GSQL",
        multiple=True,
        shell_complete=candidates.query_text,
        type=WholeText(),
        help=text,
    )


_EXPRESSIONS = _expressions("Query text. May be repeated; queries can read each other's results.")


def _queries(help_text: str) -> Callable[[F], F]:
    """Return ``-q``."""
    return option(
        "-q",
        "--query",
        "queries",
        heading="Queries",
        metavar="QUERY",
        multiple=True,
        shell_complete=candidates.query_sources,
        type=Lines(),
        help=help_text,
    )


_QUERIES = _queries(
    "A .gsql file or the name of a library query (see `gscope library`). The name of a query in the"
    " given files and texts selects its result, like --deliver. May be repeated."
)
_DELIVERED = option(
    "--deliver",
    "delivered",
    heading="Queries",
    metavar="NAME",
    multiple=True,
    shell_complete=candidates.results,
    type=Lines(),
    help="Deliver only the results of the named queries. May be repeated. Default: the results that"
    " no other query reads, and those of external queries.",
)
_WINDOW_PLAN = option(
    "--window-plan",
    heading="Queries",
    type=click.Choice(WINDOW_PLANS),
    default=WINDOW_PLANS[0],
    hidden=True,
    help="How windows are computed; the answers are the same. For experiments.",
)
_USER_CODE = option(
    "--udf",
    heading="Queries",
    metavar="FILE",
    multiple=True,
    shell_complete=candidates.files,
    type=Lines(),
    help="Python file that defines functions and aggregates for queries. May be repeated."
    " Default: the files of the configuration file.",
)


def _requested(
    queries: tuple[str, ...] = (),
    expressions: tuple[str, ...] = (),
    delivered: tuple[str, ...] = (),
    parameters: tuple[str, ...] = (),
    named: tuple[str, ...] = (),
    window_plan: str = WINDOW_PLANS[0],
) -> QueryRequest:
    """Return the request of a command; ``named`` are queries given as arguments."""
    return QueryRequest((*named, *queries), expressions, delivered, parameters, window_plan)


with_queries = option_group(
    "request", _requested, _QUERIES, _EXPRESSIONS, _PARAMETERS, _DELIVERED, _WINDOW_PLAN
)
"""``-q``, ``-e``, ``--param``, ``--deliver``, and an argument ``named``: what to run."""

with_texts = option_group(
    "request",
    _requested,
    _queries("A query file, a folder of them or a library query, like an argument."),
    _expressions("Query text. May be repeated."),
    _PARAMETERS,
)
"""``-q``, ``-e``, ``--param``, and an argument ``named``: what to check."""


@dataclass(frozen=True, slots=True)
class OutputRequest:
    """Where answers go, and what is reported on standard error.

    Attributes:
        folder: the folder for files of answers; None for standard output.
        has_timings: whether to report how long each phase took.
        is_quiet: whether to leave progress and the summary out.
        hides_progress: whether to show no progress line, even if standard error is a terminal.
    """

    folder: Path | None = None
    has_timings: bool = False
    is_quiet: bool = False
    hides_progress: bool = False


_CAPTURE_ENDINGS = (".pcap", ".pcapng", ".cap")


def _folder(_context: click.Context, _parameter: click.Parameter, path: Path | None) -> Path | None:
    """Return the folder for answers; refuse a capture file, which tcpdump's -w would write."""
    if path is not None and path.suffix in _CAPTURE_ENDINGS and not path.is_dir():
        message = (
            f"-w {path}: answers are rows, not packets; name a folder, and choose the format of its"
            " files with -o csv, ndjson, parquet or arrow"
        )
        raise UsageError(message)
    return path


def filter_option(help_text: str) -> Callable[[F], F]:
    """Return ``-f``: the packet filter, in the syntax of pcap-filter(7)."""
    return option(
        "-f", "--filter", "filter", heading="Capture", metavar="EXPRESSION", help=help_text
    )


def count_option(help_text: str) -> Callable[[F], F]:
    """Return ``-c``: the number of packets after which to stop; the command gets ``packets``."""
    return option(
        "-c",
        "--count",
        "packets",
        heading="Capture",
        metavar="N",
        callback=quantity(parse_count),
        help=help_text,
    )


_SAVING = (
    option(
        "--save-packets",
        "save_path",
        heading="Output",
        metavar="FILE",
        type=click.Path(dir_okay=False, path_type=Path),
        shell_complete=candidates.files,
        help="Save the packets behind the rows of the answers to FILE, a new pcapng file. The"
        " comment of a packet names its queries.",
    ),
    option(
        "--save-packets-of",
        "save_queries",
        heading="Output",
        metavar="QUERY",
        multiple=True,
        type=Lines(),
        shell_complete=candidates.results,
        help="Save only packets of QUERY. May be repeated. Default: all results.",
    ),
    option(
        "--save-packets-limit",
        "save_limit",
        heading="Output",
        metavar="SIZE",
        callback=quantity(parse_size),
        help="Save no more packets once FILE has reached SIZE; those left out are counted.",
    ),
)

with_saving = option_group("saving", save_request, *_SAVING)
"""``--save-packets`` and what belongs to it; the command gets ``saving``."""

with_live_saving = option_group(
    "saving",
    save_request,
    *_SAVING,
    option(
        "--packet-ring",
        heading="Output",
        metavar="SIZE",
        callback=quantity(parse_size),
        help="Keep up to SIZE of recent packets on disk until the groups are known whose packets"
        " --save-packets saves. Default: 256M.",
    ),
)
"""As ``with_saving``, for live interfaces."""

no_job_option = option(
    "--no-job",
    "has_no_job",
    heading="Other hosts",
    is_flag=True,
    help="Be a sensor: answer nothing here, start neither Spark nor Java, and serve the rows of the"
    " low-level queries to relays and runs on other hosts; see --listen.",
)
"""``--no-job``; the command gets ``has_no_job``."""

numeric_option = option(
    "-n",
    "--numeric",
    heading="Output",
    is_flag=True,
    expose_value=False,
    help="Do not resolve names, as in tcpdump; gscope never does, with or without -n.",
)
"""``-n``, which many type out of habit."""


pager_option = option(
    "--no-pager",
    "is_unpaged",
    heading="Output",
    is_flag=True,
    help="Print long tables and texts directly. By default, what exceeds the screen of a terminal"
    " is shown with $GSCOPE_PAGER, else $PAGER, else less.",
)
"""``--no-pager``; the command gets ``is_unpaged``."""


def with_pager(function: F) -> F:
    """Add ``--no-pager``, and show what the command prints with the pager if it is long."""

    @functools.wraps(function)
    def command(*arguments: Any, is_unpaged: bool, **named: Any) -> Any:
        from gscope.cli.render.pager import paged_stdout

        with nullcontext() if is_unpaged else paged_stdout():
            return function(*arguments, **named)

    paged: F = pager_option(cast("F", command))
    return paged


_QUIET = (
    option(
        "--no-progress",
        "hides_progress",
        heading="Output",
        is_flag=True,
        help="Show no progress line on standard error.",
    ),
    option(
        "--quiet",
        "is_quiet",
        heading="Output",
        is_flag=True,
        help="Suppress progress and summary on standard error.",
    ),
)


def with_output(files: str) -> Callable[[F], F]:
    """Return ``--write``, ``--timings`` and ``--quiet``; the command gets ``output``.

    Args:
        files: the help of ``--write``.
    """
    return option_group(
        "output",
        OutputRequest,
        option(
            "-w",
            "--write",
            "folder",
            heading="Output",
            metavar="DIR",
            shell_complete=candidates.folders,
            type=click.Path(file_okay=False, path_type=Path),
            callback=_folder,
            help=files,
        ),
        option(
            "--timings",
            "has_timings",
            heading="Output",
            is_flag=True,
            help="Report on standard error how long each phase took.",
        ),
        *_QUIET,
    )


with_quiet = option_group("output", OutputRequest, *_QUIET)
"""``--no-progress`` and ``--quiet``, for a command that writes no answers."""


def named_interfaces(
    parameter: str,
    meaning: str,
    callback: Callable[[click.Context, click.Parameter, Any], Any] | None = None,
) -> Callable[[F], F]:
    """Return ``-i`` with names of interfaces without devices, for a parameter of the command."""
    return option(
        "-i",
        "--interface",
        parameter,
        heading="Queries",
        metavar="NAME",
        multiple=True,
        shell_complete=candidates.interfaces,
        type=Lines(),
        callback=callback,
        help=meaning,
    )


def with_interfaces(function: F) -> F:
    """Add ``-i``: the names of interfaces that queries are compiled for."""
    return named_interfaces(
        "interfaces",
        "Name of an interface that FROM may refer to, also as `gscope run` takes it (NAME=DEVICE,"
        " udp://:2055); no packets are read. May be repeated."
        " Default: the interfaces of the configuration file, or any name if it has none.",
        _names_of,
    )(function)


def _names_of(
    _context: click.Context, _parameter: click.Parameter, given: tuple[str, ...]
) -> tuple[str, ...]:
    """Return the names of interfaces that are given as those of a run: $GSCOPE_INTERFACE is one."""
    if not given:
        return given
    from gscope.cli.config.capture_devices import interface_name

    return tuple(map(interface_name, given))


def with_config(
    *,
    without: tuple[str, ...] = (),
    instead: tuple[Setting, ...] = (),
    has_udf: bool = True,
) -> Callable[[F], F]:
    """Return all settings as options, ``--udf`` and ``--config``; the command gets ``config``.

    Args:
        without: keys of settings that mean nothing to the command.
        instead: settings that take other values from the command, with their help.
        has_udf: whether ``--udf`` means something to it.
    """
    assert {each.key for each in SETTINGS}.issuperset(without), without
    own = {setting.key: setting for setting in instead}
    chosen = tuple(own.get(each.key, each) for each in SETTINGS if each.key not in without)

    def decorate(function: F) -> F:
        @functools.wraps(function)
        def command(**arguments: Any) -> Any:
            from gscope.cli.config.effective import GivenSetting, load_config

            context = click.get_current_context()
            given: dict[str, GivenSetting] = {}
            for setting in chosen:
                value = arguments.pop(setting.attribute)
                if setting.kind.is_repeated:
                    value = "\n".join(value) or None
                if value is not None:
                    origin = origin_of(context, setting)
                    given[setting.key] = GivenSetting(str(value), origin)
            path = arguments.pop("config_path")
            config = load_config(given, path)
            for sentence in config.warnings:
                click.echo(f"gscope: {sentence}", err=True)
            if udf := arguments.pop("udf", None):
                config = replace(config, udf=udf)
            return function(**arguments, config=config)

        decorated: Any = command
        for setting in reversed(chosen):
            decorated = setting_option(setting)(decorated)
        if has_udf:
            decorated = _USER_CODE(decorated)
        named: F = option(
            "--config",
            "config_path",
            metavar="FILE",
            shell_complete=candidates.files,
            type=click.Path(dir_okay=False, path_type=Path),
            help="Configuration file. Default: $GSCOPE_CONFIG, else ./gscope.yaml,"
            " else ~/.config/gscope/gscope.yaml.",
        )(decorated)
        return named

    return decorate


def with_work_dir(function: F) -> F:
    """Add ``--work-dir`` and ``--config``: where to look for runs; the command gets ``config``."""
    others = ("lookups", *(key for key in OF_RUNS if key != "work_dir"))
    return with_config(without=others, has_udf=False)(function)


def run_name_option(
    help_text: str, complete: candidates.Completer = candidates.runs
) -> Callable[[F], F]:
    """Return ``--run``: the name of a run; the command gets ``name``."""
    return option(
        "--run",
        "name",
        heading="Runs and monitoring",
        metavar="NAME",
        shell_complete=complete,
        help=help_text,
    )


run_argument = click.argument(
    "named", metavar="[NAME]", required=False, shell_complete=candidates.runs
)
"""The name of a run as an argument; the command gets ``named``, and combines it with ``--run``."""


def run_name(named: str | None, name: str | None) -> str | None:
    """Return the name of a run from the argument ``named`` or from ``--run``; None without both.

    Raises:
        UsageError: the two differ.
    """
    source = click.get_current_context().get_parameter_source("name")
    if None not in (named, name) and named != name and source is ParameterSource.COMMANDLINE:
        message = f"{named!r} and --run {name} name different runs; give one name"
        raise UsageError(message)
    return named or name
