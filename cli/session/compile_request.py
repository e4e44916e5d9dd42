"""Compiling a request: query texts from files, the library and the command line."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import click

from gscope.capture.shedding.settings import SheddingMode
from gscope.cli.config.shedding import chosen_shedding
from gscope.errors import UsageError
from gscope.queries.compile import CompileContext, QueryText, compile_queries
from gscope.queries.did_you_mean import suggestion
from gscope.queries.library.files import closest_query, library_files
from gscope.queries.os_errors import os_reason
from gscope.queries.plan.lookups import with_lookups
from gscope.queries.plan.windows.window_plan import WindowPlan

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from gscope.cli.config.effective import Config
    from gscope.cli.session.request import QueryRequest
    from gscope.queries.catalog.user_functions.files import UserFile
    from gscope.queries.compile import Compiled

ENDING = ".gsql"


def compile_request(
    request: QueryRequest,
    interfaces: Sequence[str],
    config: Config,
    *,
    is_unbounded: bool = False,
    is_repeatable: bool = False,
    is_interleaved: bool = False,
    is_resumable: bool = False,
    hosts: Sequence[str] = (),
) -> Compiled:
    """Compile the queries of a request.

    Args:
        request: the queries.
        interfaces: names of the interfaces; () if they are unknown.
        config: the settings.
        is_unbounded: see ``CompileContext``.
        is_repeatable: see ``CompileContext``.
        is_interleaved: see ``CompileContext``.
        is_resumable: see ``CompileContext``.
        hosts: see ``CompileContext``.

    Raises:
        UsageError: a file or name is invalid.
        GsqlError: a query is invalid.
    """
    files = offer_user_code(config)
    lookups = offer_lookups(config)
    texts, delivered = gather_texts(request)
    shedding = chosen_shedding(config)
    context = CompileContext(
        interfaces=tuple(interfaces),
        interface_sets=interface_sets(config, interfaces),
        parameters=parse_parameters(request.parameters),
        only=delivered,
        is_unbounded=is_unbounded,
        is_repeatable=is_repeatable,
        is_interleaved=is_interleaved,
        is_resumable=is_resumable,
        window_plan=WindowPlan(request.window_plan),
        samples=shedding.is_on,
        follows_load=shedding.mode is SheddingMode.AUTO,
        partitions=config.partitions,
        hosts=tuple(hosts),
    )
    compiled = compile_queries(texts, context)
    program = replace(compiled.program, user_files=files)
    return replace(compiled, program=with_lookups(program, lookups))


def show_warnings(compiled: Compiled) -> None:
    """Report, on standard error, what can do nothing in the queries."""
    for warning in compiled.warnings:
        click.echo(f"warning: {warning}", err=True)


def offer_user_code(config: Config) -> tuple[UserFile, ...]:
    """Make the functions that files of user code declare available to queries of this process.

    Raises:
        UsageError: a file or a declaration in it is invalid.
    """
    if not config.udf:
        return ()
    from gscope.queries.analysis.typing.user_code import offer
    from gscope.queries.catalog.user_functions.files import read_user_file

    files = tuple(read_user_file(path) for path in dict.fromkeys(config.udf))
    offer(files)
    return files


def offer_lookups(config: Config) -> dict[str, str]:
    """Let queries of this process look values up; return the file of each lookup that has one."""
    from gscope.queries.analysis.typing.lookups import offer
    from gscope.queries.lookup_files import files_of

    files = files_of(config.lookups)
    offer(files)
    return files


def gather_texts(request: QueryRequest) -> tuple[list[QueryText], tuple[str, ...]]:
    """Return the query texts, and the names of the results to deliver; () for the default ones.

    Raises:
        UsageError: a file cannot be read, or a name is unknown.
    """
    library = library_files()
    texts: list[QueryText] = []
    names: list[str] = []
    for query in dict.fromkeys(request.queries):
        path = Path(query)
        if path.is_file() or query.endswith(ENDING) or ("/" in query and query not in library):
            texts.append(read_text(path))
        elif query in library:
            texts.append(QueryText(library[query].read_text(encoding="utf-8"), f"{query}{ENDING}"))
        else:
            names.append(query)
    expressions = tuple(request.expressions)
    for expression in expressions:
        _check_text(expression, "-e")
    for number, expression in enumerate(expressions, 1):
        texts.append(QueryText(expression, "query" if len(expressions) == 1 else f"query_{number}"))
    if names and not texts:
        close = closest_query(names[0])
        hint = f"did you mean {close!r}?" if close else "`gscope library` lists those"
        message = f"{names[0]!r} is neither a file nor a library query; {hint}"
        raise UsageError(message)
    texts += [QueryText(text, name) for name, text in request.added]
    delivered = (*request.delivered, *names)
    if delivered:
        delivered += tuple(name for name, _ in request.added)
    return texts, tuple(dict.fromkeys(delivered))


def read_text(path: Path) -> QueryText:
    """Return the text of the query file at ``path``.

    Raises:
        UsageError: the file cannot be read, or is not UTF-8 text.
    """
    try:
        return QueryText(path.read_text(encoding="utf-8"), str(path))
    except OSError as error:
        message = f"cannot read query file {path}: {os_reason(error)}"
        raise UsageError(message) from error
    except (UnicodeDecodeError, ValueError) as error:
        message = f"query file {path} is not UTF-8 text"
        raise UsageError(message) from error


def parse_parameters(given: Iterable[str]) -> dict[str, str]:
    """Return texts of the form ``NAME=VALUE`` as a mapping.

    Raises:
        UsageError: a text has no ``=``, or a name occurs twice.
    """
    values: dict[str, str] = {}
    for text in given:
        _check_text(text, "--param")
        name, equals, value = text.partition("=")
        if not equals or not name:
            message = f"invalid --param {text!r}: expected --param NAME=VALUE"
            raise UsageError(message)
        if name in values:
            message = f"--param gives {name} twice"
            raise UsageError(message)
        values[name] = value
    return values


def _check_text(text: str, option: str) -> None:
    """Refuse an argument with bytes that are not UTF-8, which Python keeps as surrogates.

    Raises:
        UsageError: the argument has such bytes.
    """
    try:
        text.encode()
    except UnicodeEncodeError as error:
        shown = ascii(text[max(0, error.start - 20) : error.start + 1])
        message = (
            f"invalid {option} at character {error.start + 1}: expected UTF-8 text, got {shown};"
            " for a byte in a payload compare to_hex(x), or use str_regex_match[x, '\\xff']"
        )
        raise UsageError(message) from error


def interface_sets(config: Config, interfaces: Sequence[str]) -> dict[str, tuple[str, ...]]:
    """Return the configured sets, restricted to ``interfaces``; empty sets are left out.

    Raises:
        UsageError: the configuration has interfaces, and a set has a member that is not one.
    """
    if not interfaces:
        return dict(config.sets)
    known = sorted({*config.interfaces, *interfaces})
    for name, members in config.sets.items() if config.interfaces else ():
        if strange := [member for member in members if member not in known]:
            hint = suggestion(strange[0], known, f"available: {', '.join(known)}", is_quoted=True)
            message = f"set {name} has an unknown interface {strange[0]!r}; {hint}"
            raise UsageError(message)
    present = {
        name: tuple(member for member in members if member in interfaces)
        for name, members in config.sets.items()
    }
    return {name: members for name, members in present.items() if members}
