"""Where query texts come from: files, the library, the command line."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from gscope.errors import UsageError
from gscope.queries.compile import CompileContext, QueryText, compile_queries
from gscope.queries.did_you_mean import suggestion
from gscope.queries.library.files import library_files
from gscope.queries.os_errors import os_reason

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
) -> Compiled:
    """Compile what is asked for over ``interfaces``; () if they are not known.

    Args:
        request: the queries.
        interfaces: by name.
        config: everything else.
        is_unbounded: see ``CompileContext``.
        is_repeatable: the same.
        is_interleaved: the same.

    Raises:
        UsageError: a file or name is wrong.
        GsqlError: a query is wrong.
    """
    files = offer_user_code(config)
    texts, delivered = gather_texts(request)
    context = CompileContext(
        interfaces=tuple(interfaces),
        interface_sets=_sets(config, interfaces),
        parameters=parse_parameters(request.parameters),
        only=delivered,
        is_unbounded=is_unbounded,
        is_repeatable=is_repeatable,
        is_interleaved=is_interleaved,
    )
    compiled = compile_queries(texts, context)
    return replace(compiled, program=replace(compiled.program, user_files=files))


def offer_user_code(config: Config) -> tuple[UserFile, ...]:
    """Let queries of this process call what the files of user code declare.

    Raises:
        UsageError: a file is wrong, or what it declares is.
    """
    if not config.udf:
        return ()
    from gscope.queries.analysis.typing.user_code import offer
    from gscope.queries.catalog.user_functions.files import read_user_file

    files = tuple(read_user_file(path) for path in dict.fromkeys(config.udf))
    offer(files)
    return files


def gather_texts(request: QueryRequest) -> tuple[list[QueryText], tuple[str, ...]]:
    """The texts, and the names of the results to deliver (() for the usual ones).

    Raises:
        UsageError: a file cannot be read, or a name means nothing.
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
        hint = suggestion(names[0], library, "`gscope library` lists those", is_quoted=True)
        message = f"{names[0]!r} is neither a file nor a library query; {hint}"
        raise UsageError(message)
    return texts, tuple(dict.fromkeys((*request.delivered, *names)))


def read_text(path: Path) -> QueryText:
    """The query file at ``path``.

    Raises:
        UsageError: it cannot be read or is no text.
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
    """``NAME=VALUE`` texts as a mapping.

    Raises:
        UsageError: one has no ``=``, or a name is given twice.
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
        UsageError: there are such bytes.
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


def _sets(config: Config, interfaces: Sequence[str]) -> dict[str, tuple[str, ...]]:
    """The configured sets, of the interfaces that take part; a set of none of them is left out.

    Raises:
        UsageError: the configuration has interfaces, but not all that a set of it is made of.
    """
    if not interfaces:
        return dict(config.sets)
    known = sorted({*config.interfaces, *interfaces})
    for name, members in config.sets.items() if config.interfaces else ():
        if strange := [member for member in members if member not in known]:
            hint = suggestion(strange[0], known, f"there are {', '.join(known)}", is_quoted=True)
            message = f"set {name} has an unknown interface {strange[0]!r}; {hint}"
            raise UsageError(message)
    present = {
        name: tuple(member for member in members if member in interfaces)
        for name, members in config.sets.items()
    }
    return {name: members for name, members in present.items() if members}
