"""``gscope explain``: shows how queries are compiled, stage by stage."""

from __future__ import annotations

import json
from contextlib import nullcontext
from typing import TYPE_CHECKING, Any

import click
from click.core import ParameterSource

from gscope.cli.commands.misplaced import refuse_misplaced
from gscope.cli.commands.option_groups import (
    pager_option,
    run_name_option,
    with_config,
    with_interfaces,
    with_queries,
)
from gscope.cli.commands.options import HeadedCommand, option
from gscope.cli.completion import candidates
from gscope.cli.config.setting_groups import OF_RUNS

if TYPE_CHECKING:
    from collections.abc import Iterator

    from gscope.cli.config.effective import Config
    from gscope.cli.session.request import QueryRequest

_RELEVANT = ("shedding.", "partitions", "work_dir")
_OF_RUNS = tuple(key for key in OF_RUNS if not key.startswith(_RELEVANT))
"""Settings that do not affect the explanation."""

_WITH_RUN = frozenset(("name", "is_watch", "is_json", "is_unpaged", "work_dir", "config_path"))
"""Parameters that can be combined with ``--run``."""


@click.command(
    cls=HeadedCommand, short_help="Show how queries are compiled, or how a run executes them."
)
@click.argument("named", nargs=-1, metavar="FILE|NAME...", shell_complete=candidates.query_sources)
@with_queries
@with_interfaces
@option(
    "--hosts",
    heading="Output",
    metavar="N",
    type=click.IntRange(min=1),
    help="Also show how the queries divide among N hosts, and what one of them receives to answer.",
)
@option(
    "--partition-set",
    heading="Output",
    metavar="GSQL,...",
    shell_complete=candidates.query_text,
    help="With --hosts: what packets are divided by, such as 'srcIP & 0xFFFFFF00, destIP' or"
    " '{srcIP, destIP}' for both directions alike. Default: the set of least cost.",
)
@option(
    "--statistics",
    heading="Output",
    metavar="RUN|FILE",
    shell_complete=candidates.files,
    help="With --hosts: count rows as a run of the same queries did: its name, or a file with the"
    " output of `gscope status --json`. Default: assumed shares of rows.",
)
@option(
    "--lfta",
    "shows_kernel",
    heading="Output",
    is_flag=True,
    help="Also show the source of the generated kernel.",
)
@option(
    "--spark",
    "shows_spark",
    heading="Output",
    is_flag=True,
    help="Also show the Spark SQL of each HFTA.",
)
@option(
    "--dot",
    "is_dot",
    heading="Output",
    is_flag=True,
    help="Print the split as a graph for Graphviz (dot -Tsvg).",
)
@option(
    "--json", "is_json", heading="Output", is_flag=True, help="Print everything as one JSON object."
)
@run_name_option(
    "Show the plan of run NAME with what each node reads, gives, costs and holds. A replay that was"
    " started with --run NAME keeps its figures when it has ended.",
    candidates.counted_runs,
)
@option(
    "--watch",
    "is_watch",
    heading="Runs and monitoring",
    is_flag=True,
    help="With --run: refresh until q, Ctrl-C or the end of the run.",
)
@pager_option
@with_config(without=_OF_RUNS)
@click.pass_context
def explain(
    context: click.Context,
    request: QueryRequest,
    interfaces: tuple[str, ...],
    hosts: int | None,
    partition_set: str | None,
    statistics: str | None,
    shows_kernel: bool,
    shows_spark: bool,
    is_dot: bool,
    is_json: bool,
    name: str | None,
    is_watch: bool,
    is_unpaged: bool,
    config: Config,
) -> int:
    """Explain query files, library queries by name, or texts, compiled together.

    Shows each query as parsed, its logical plan, the plan after each rewrite, the split into LFTAs
    (in the capture daemon) and HFTAs (on Spark), the predicates of the prefilter, the ordering of
    columns, and what bounds the state.

    With --run, shows how a run executes its queries: a tree from each result down to the packets.
    Rates are those of the last minute; other figures count since the start of the run.

    \b
    IN/S, OUT/S  rows a second that a node reads and gives; of an
                 interface: packets, and those that the LFTA takes
    IN, OUT      the same since the start
    OUT/IN       rows given for each row read, without rows that wait
    EVICTED      groups evicted from a full table; OF OUT, their share
                 of the rows given
    COST         CPU time of Python tasks for each row read; of an
                 interface: time for each packet, all LFTAs together;
                 SQL if Spark SQL did a part, whose CPU time is unknown
    CPU          share of one core
    STATE        rows held; of a table: how full it is
    ROWS, BYTES  the same as numbers, and their size
    LOST         rows that were late, or shed for lack of disk space
    LAG          time since the watermark; of an interface: the longest
                 time from a packet's timestamp to its processing
    -            not counted, or not by the version that began the run

    Exit codes: 0 success, 1 no active run, 2 invalid query or usage error.
    """  # noqa: D301  # \b is click's mark for text that is not to be wrapped
    is_asked = context.get_parameter_source("name") is ParameterSource.COMMANDLINE
    if name is not None and (is_asked or not (request.queries or request.expressions)):
        _refuse_others(context)
        from gscope.cli.commands.explained_run import explain_run

        return explain_run(config, name, is_watch=is_watch, is_json=is_json)
    if is_watch:
        message = "--watch applies only with --run"
        raise click.UsageError(message)
    if hosts is None and (partition_set is not None or statistics is not None):
        message = "--partition-set and --statistics apply only with --hosts"
        raise click.UsageError(message)
    if is_dot and (is_json or shows_kernel or shows_spark):
        message = "--dot cannot be combined with --json, --lfta or --spark"
        raise click.UsageError(message)
    from gscope.cli.render.pager import paged_stdout

    with nullcontext() if is_unpaged else paged_stdout():
        _explain_queries(
            request,
            interfaces,
            config,
            hosts=hosts,
            partition_set=partition_set,
            statistics=statistics,
            shows_kernel=shows_kernel,
            shows_spark=shows_spark,
            is_dot=is_dot,
            is_json=is_json,
        )
    return 0


def _refuse_others(context: click.Context) -> None:
    """Refuse what ``--run`` cannot be combined with.

    Raises:
        UsageError: the command line has queries, or an option of theirs.
    """
    for parameter in context.command.get_params(context):
        source = context.get_parameter_source(parameter.name or "")
        if source is ParameterSource.COMMANDLINE and parameter.name not in _WITH_RUN:
            is_option = isinstance(parameter, click.Option)
            what = parameter.opts[0] if is_option else "a query"
            message = (
                f"--run shows the queries of a run: it cannot be combined with {what}, only with"
                " --watch, --json, --work-dir and --config"
            )
            raise click.UsageError(message)


def _explain_queries(
    request: QueryRequest,
    interfaces: tuple[str, ...],
    config: Config,
    *,
    hosts: int | None,
    partition_set: str | None,
    statistics: str | None,
    shows_kernel: bool,
    shows_spark: bool,
    is_dot: bool,
    is_json: bool,
) -> None:
    """Print every stage of the compilation of queries."""
    from gscope.cli.render.explain import as_text, explain_compiled, spark_texts
    from gscope.cli.session.compile_request import compile_request, show_warnings

    refuse_misplaced(request.queries, "a query file", filter_option=None, takes_names=True)
    request.ensure_some(how="")
    compiled = compile_request(request, interfaces or tuple(config.interfaces), config)
    show_warnings(compiled)
    explanation = explain_compiled(compiled)
    if hosts is not None:
        from gscope.cli.commands.partitioning import explained_partitioning

        explanation["partitioning"] = explained_partitioning(
            compiled, hosts, partition_set, statistics, config
        )
    if is_dot:
        from gscope.cli.render.dot import as_dot
        from gscope.cli.render.explain import ANY

        click.echo("\n".join(as_dot(compiled.program, explanation, ANY)))
        return
    if shows_kernel:
        from gscope.capture.lfta.codegen.generate import generate

        explanation["kernel"] = generate(compiled.program.lftas).source
    if shows_spark:
        explanation["spark"] = spark_texts(compiled.program)
    if is_json:
        click.echo(json.dumps(explanation, indent=2))
        return
    for line in as_text(explanation):
        click.echo(line)
    for line in _sources(explanation):
        click.echo(line)


def _sources(explanation: dict[str, Any]) -> Iterator[str]:
    for query, text in explanation.get("spark", {}).items():
        yield f"\nSpark SQL of {query}\n  {text}"
    if "kernel" in explanation:
        yield f"\nKernel\n{explanation['kernel'].rstrip()}"
