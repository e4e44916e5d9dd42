"""``gscope check``: validates queries without running them."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from gscope.cli.commands.misplaced import refuse_misplaced
from gscope.cli.commands.option_groups import with_config, with_interfaces, with_texts
from gscope.cli.commands.options import HeadedCommand, option
from gscope.cli.completion import candidates
from gscope.cli.config.setting_groups import OF_RUNS
from gscope.cli.session.request import QueryRequest
from gscope.errors import GscopeError, GsqlError, ResolveError, UsageError

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from gscope.cli.config.effective import Config
    from gscope.queries.compile import QueryText
    from gscope.queries.gsql.nodes import File, Query, WatchlistQuery

EXIT_WRONG = 2

ONCE = "answers once, at the end of a replay or of a run with --duration or -c; rejected otherwise"


@click.command(cls=HeadedCommand, short_help="Check queries without running them.")
@click.argument(
    "named", nargs=-1, metavar="FILE|DIR|NAME...", shell_complete=candidates.query_sources
)
@with_texts
@option(
    "--together",
    heading="Queries",
    is_flag=True,
    help="Check all queries as one set, so that they can read each other's results.",
)
@with_interfaces
@with_config(without=OF_RUNS)
def check(
    request: QueryRequest,
    together: bool,
    interfaces: tuple[str, ...],
    config: Config,
) -> int:
    """Check query files, folders of query files, library queries by name, or texts.

    Prints a line for each valid query, and each error with its position. Any interface name is
    valid unless interfaces are given with -i or in the configuration file. Marks queries that run
    on finite input only. Checks files of user code (--udf) even without a query.

    Exit codes: 0 all queries are valid, 2 some are invalid.
    """
    from gscope.cli.session.compile_request import (
        gather_texts,
        offer_lookups,
        offer_user_code,
        parse_parameters,
        read_text,
    )

    refuse_misplaced(request.queries, "a query file", filter_option=None, takes_names=True)
    files = offer_user_code(config)
    offer_lookups(config)
    values = parse_parameters(request.parameters)
    texts: list[QueryText] = []
    wrong: list[str] = []
    names = []
    for query in request.queries:
        if Path(query).is_dir():
            texts += [read_text(path) for path in _query_files(Path(query))]
        else:
            names.append(query)
    if not request.queries and not request.expressions and not files:
        message = "nothing to check: name a file or folder, or give a query with -e"
        raise UsageError(message)
    named, unknown = gather_texts(QueryRequest(names, request.expressions))
    texts += named
    if unknown:
        message = f"{unknown[0]!r} is neither a file nor a library query"
        raise UsageError(message)
    known = interfaces or tuple(config.interfaces)
    for line in _check_user_code(wrong):
        click.echo(line)
    parsed = _parsed(texts, wrong)
    _check_parameters(values, parsed)
    if together and len(parsed) == len(texts):
        groups = [parsed]
    else:
        groups = [] if together else [[each] for each in parsed]
    for group in groups:
        for line in _check(group, known, config, values, wrong):
            click.echo(line)
    for report in wrong:
        click.echo(report, err=True)
    return EXIT_WRONG if wrong else 0


def _query_files(folder: Path) -> list[Path]:
    found = sorted(path for path in folder.rglob("*.gsql") if path.is_file())
    if not found:
        message = f"no .gsql file in {folder}"
        raise UsageError(message)
    return found


def _check_user_code(wrong: list[str]) -> Iterator[str]:
    """Yield a line for each valid file of user code; compile what LFTAs are to run."""
    from gscope.queries.catalog.user_functions.install import by_file

    for file, made in by_file().items():
        before = len(wrong)
        safe = [code.facts.name for code in made if getattr(code.facts, "is_lfta_safe", False)]
        for name in safe:
            from gscope.capture.lfta.user_kernels import check_user_kernel

            try:
                check_user_kernel(name)
            except GscopeError as error:
                _add(wrong, error)
        if len(wrong) == before:
            yield f"ok  {file.path}: {', '.join(code.facts.name for code in made)}"


def _parsed(texts: Sequence[QueryText], wrong: list[str]) -> list[tuple[QueryText, File]]:
    """Return the texts that are GSQL; append reports of the others to ``wrong``."""
    from gscope.queries.gsql.parser import parse

    parsed = []
    for text in texts:
        try:
            parsed.append((text, parse(text.text, text.source)))
        except GscopeError as error:
            _add(wrong, error)
    return parsed


def _declared(parsed: Sequence[tuple[QueryText, File]]) -> set[str]:
    """Return the names of the parameters that queries declare."""
    return {entry.name for _, file in parsed for query in file.queries for entry in query.params}


def _check_parameters(values: dict[str, str], parsed: Sequence[tuple[QueryText, File]]) -> None:
    """Refuse a value that no text declares; each text gets the values that it declares."""
    strange = [name for name in values if name not in _declared(parsed)]
    if strange and parsed:
        message = f"no query declares a parameter {strange[0]}"
        raise UsageError(message)


def _check(
    group: Sequence[tuple[QueryText, File]],
    interfaces: tuple[str, ...],
    config: Config,
    parameters: dict[str, str],
    wrong: list[str],
) -> Iterator[str]:
    """Yield a line for each valid query; append reports of invalid ones to ``wrong``."""
    from gscope.capture.lfta.codegen.generate import generate
    from gscope.cli.session.compile_request import show_warnings
    from gscope.queries.analysis.names.query_names import named_queries
    from gscope.queries.compile import CompileContext, compile_queries
    from gscope.queries.gsql.nodes import WatchlistQuery
    from gscope.queries.plan.explain.show_plans import show_schema
    from gscope.queries.plan.row_order import visible
    from gscope.queries.plan.whole_input import answers_at_the_end

    texts = [text for text, _ in group]
    declared = _declared(group)
    values = {name: value for name, value in parameters.items() if name in declared}
    for _, file in group:
        if not file.queries:
            if file.protocols:
                yield f"ok  {file.source}: no query"
            else:
                reason = "the text contains no query"
                _add(wrong, ResolveError(reason, source=file.source))
        for name, query in named_queries(file):
            if isinstance(query.body, WatchlistQuery):
                yield from _check_watchlist(name, query, query.body, file, wrong)
                continue
            context = CompileContext(interfaces, config.sets, values, (name,))
            try:
                compiled = compile_queries(texts, context)
                program = compiled.program
                generate(program.lftas)
            except GscopeError as error:
                _add(wrong, error)
            else:
                show_warnings(compiled)
                once = "; " + ONCE if answers_at_the_end(program, name) else ""
                columns = show_schema(visible(program.schema(name)))
                yield f"ok  {file.source}: {name} ({columns}){once}"


def _check_watchlist(
    name: str, query: Query, body: WatchlistQuery, file: File, wrong: list[str]
) -> Iterator[str]:
    """Yield a line for a valid table; whether its file is readable is checked when a query runs."""
    from gscope.queries.analysis.names.watchlists import define_watchlist
    from gscope.queries.plan.explain.show_plans import show_schema

    try:
        table = define_watchlist(name, query, body, file.source)
    except GscopeError as error:
        located = error.located(file.text, file.source) if isinstance(error, GsqlError) else error
        _add(wrong, located)
    else:
        yield f"ok  {file.source}: {name} ({show_schema(table.schema)})"


def _add(wrong: list[str], error: GscopeError) -> None:
    """Append an error, once if it concerns several queries."""
    report = str(error)
    if report not in wrong:
        wrong.append(report)
