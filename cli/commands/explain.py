"""``gscope explain``: shows how queries are compiled, stage by stage."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import click

from gscope.cli.commands.misplaced import refuse_misplaced
from gscope.cli.commands.option_groups import (
    OF_RUNS,
    with_config,
    with_interfaces,
    with_pager,
    with_texts_to_deliver,
)
from gscope.cli.commands.options import HeadedCommand, option
from gscope.cli.completion import candidates

if TYPE_CHECKING:
    from collections.abc import Iterator

    from gscope.cli.config.effective import Config
    from gscope.cli.session.request import QueryRequest

_OF_RUNS = tuple(key for key in OF_RUNS if not key.startswith(("shedding.", "partitions")))
"""Settings that do not affect the explanation."""


@click.command(cls=HeadedCommand, short_help="Show how queries are compiled, stage by stage.")
@click.argument(
    "queries", nargs=-1, metavar="FILE|NAME...", shell_complete=candidates.query_sources
)
@with_texts_to_deliver
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
@with_pager
@with_config(without=_OF_RUNS)
def explain(
    request: QueryRequest,
    interfaces: tuple[str, ...],
    hosts: int | None,
    partition_set: str | None,
    statistics: str | None,
    shows_kernel: bool,
    shows_spark: bool,
    is_dot: bool,
    is_json: bool,
    config: Config,
) -> None:
    """Explain query files, library queries by name, or texts, compiled together.

    Shows each query as parsed, its logical plan, the plan after each rewrite, the split into LFTAs
    (in the capture daemon) and HFTAs (on Spark), the predicates of the prefilter, the ordering of
    columns, and what bounds the state.
    """
    if hosts is None and (partition_set is not None or statistics is not None):
        message = "--partition-set and --statistics apply only with --hosts"
        raise click.UsageError(message)
    if is_dot and (is_json or shows_kernel or shows_spark):
        message = "--dot cannot be combined with --json, --lfta or --spark"
        raise click.UsageError(message)
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
