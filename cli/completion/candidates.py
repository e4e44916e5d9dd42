"""Candidates for the values of options and arguments, as functions that click calls.

Commands import this module at each start, so it imports whatever it needs inside its functions.
Completion changes nothing and reports no errors: what cannot be read has no candidates.
"""

from __future__ import annotations

import functools
import os
import re
from contextlib import suppress
from typing import TYPE_CHECKING

from click import Group
from click.shell_completion import CompletionItem

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping
    from pathlib import Path

    import click

    Items = list[CompletionItem[str]]
    Completer = Callable[[click.Context, click.Parameter, str], Items]

_BLOCK = re.compile(r"\bparam\s*\{([^}]*)\}", re.I)
_NAMED = re.compile(r"\bquery_name\s*(?:=\s*)?'?(\w+)", re.I)
_LARGEST_QUERY = 1 << 20


def _quiet(complete: Callable[[click.Context, str], Items]) -> Completer:
    """Return a completer that has no candidates where ``complete`` fails."""

    @functools.wraps(complete)
    def quiet(context: click.Context, _parameter: click.Parameter, incomplete: str) -> Items:
        from gscope.errors import GscopeError

        try:
            return complete(context, incomplete)
        except (OSError, ValueError, GscopeError):
            return []

    return quiet


def _starting(
    candidates: Iterable[str] | Mapping[str, str], incomplete: str, kind: str = "plain"
) -> Items:
    """Return those of ``candidates`` that begin with ``incomplete``; a mapping describes them."""
    described = candidates if isinstance(candidates, dict) else dict.fromkeys(candidates, "")
    return [
        CompletionItem(value, kind, help=text)
        for value, text in described.items()
        if value.startswith(incomplete)
    ]


def _paths(before: str = "", kind: str = "file") -> Items:
    """Return what makes the shell complete a path behind the text ``before``."""
    return [CompletionItem("", kind, before=before)]


@_quiet
def files(_context: click.Context, _incomplete: str) -> Items:
    """Complete a file."""
    return _paths()


@_quiet
def folders(_context: click.Context, _incomplete: str) -> Items:
    """Complete a folder."""
    return _paths(kind="dir")


@_quiet
def captures(_context: click.Context, incomplete: str) -> Items:
    """Complete ``FILE`` or ``NAME=FILE``."""
    name, equals, _ = incomplete.partition("=")
    return _paths(name + equals if equals else "")


@_quiet
def lookups(_context: click.Context, incomplete: str) -> Items:
    """Complete ``NAME=FILE`` with the name of a lookup, then a file."""
    from gscope.queries.lookup_files import LOOKUP_NAMES

    name, equals, _ = incomplete.partition("=")
    if equals:
        return _paths(name + equals)
    return _starting([f"{each}=" for each in LOOKUP_NAMES], incomplete, "open")


@_quiet
def query_sources(_context: click.Context, incomplete: str) -> Items:
    """Complete a library query or a file."""
    return [*_library(incomplete), *_paths()]


@_quiet
def report_inputs(_context: click.Context, incomplete: str) -> Items:
    """Complete a library query, a file or folder, or ``NAME=FILE``."""
    name, equals, _ = incomplete.partition("=")
    return _paths(name + equals) if equals else [*_library(incomplete), *_paths()]


@_quiet
def library_queries(_context: click.Context, incomplete: str) -> Items:
    """Complete a library query."""
    return _library(incomplete)


@_quiet
def protocols_and_queries(_context: click.Context, incomplete: str) -> Items:
    """Complete a protocol in either case, a library query or a file."""
    from gscope.queries.catalog.protocols import PROTOCOLS

    protocols = {name: protocol.description for name, protocol in PROTOCOLS.items()}
    if incomplete.islower():
        protocols = {name.lower(): text for name, text in protocols.items()}
    return [*_starting(protocols, incomplete), *_library(incomplete), *_paths()]


@_quiet
def devices(context: click.Context, incomplete: str) -> Items:
    """Complete ``DEVICE``, ``NAME=DEVICE`` or the name of a configured interface."""
    import socket

    from gscope.capture.sources.af_packet.device import ANY
    from gscope.capture.sources.udp.address import SCHEME

    found = [*(name for _, name in socket.if_nameindex()), ANY, SCHEME]
    name, equals, _ = incomplete.partition("=")
    if equals:
        return _starting([f"{name}={each}" for each in found], incomplete)
    return _starting(dict.fromkeys([*found, *_configured(context)]), incomplete)


@_quiet
def interfaces(context: click.Context, incomplete: str) -> Items:
    """Complete the name of an interface: of a capture on the command line, or a configured one."""
    from gscope.cli.config.capture_files import interfaces_of

    given = (*_given(context, "read"), *_given(context, "captures"))
    return _starting([*(interfaces_of(given) if given else ()), *_configured(context)], incomplete)


@_quiet
def hosts(context: click.Context, incomplete: str) -> Items:
    """Complete the name of a host of the configuration file."""
    from gscope.cli.config.effective import load_config

    found = load_config({}, context.params.get("config_path")).hosts
    return _starting({name: str(host.address) for name, host in found.items()}, incomplete)


@_quiet
def runs(context: click.Context, incomplete: str) -> Items:
    """Complete the name of a run, active or not."""
    return _runs_in(_work_dir(context), incomplete)


@_quiet
def counted_runs(context: click.Context, incomplete: str) -> Items:
    """Complete the name of a run, or of one that has ended and left its counters."""
    from gscope.cli.rundir.records import ENDED_FOLDER

    work_dir = _work_dir(context)
    found = [*_runs_in(work_dir, incomplete), *_runs_in(work_dir / ENDED_FOLDER, incomplete)]
    return list({str(item.value): item for item in reversed(found)}.values())


def _runs_in(folder: Path, incomplete: str) -> Items:
    from gscope.cli.rundir.records import find_runs

    found = find_runs(folder)
    return _starting(
        {run.name: f"{run.standing}: {' '.join(run.command)}" for run in found}, incomplete
    )


@_quiet
def parameters(context: click.Context, incomplete: str) -> Items:
    """Complete ``NAME=`` with the parameters that the given queries declare."""
    entries = (
        entry.split()
        for text in _query_texts(context)
        for block in _BLOCK.findall(text)
        for entry in block.split(";")
    )
    declared = {f"{words[0]}=": " ".join(words[1:]) for words in entries if words}
    return _starting(declared, incomplete, "open")


@_quiet
def results(context: click.Context, incomplete: str) -> Items:
    """Complete the name of a query in the given files and texts."""
    names = (name for text in _query_texts(context) for name in _NAMED.findall(text))
    return _starting(dict.fromkeys(names), incomplete)


@_quiet
def users(_context: click.Context, incomplete: str) -> Items:
    """Complete a user of this machine."""
    import pwd

    return _starting(sorted(user.pw_name for user in pwd.getpwall()), incomplete)


@_quiet
def commands(context: click.Context, incomplete: str) -> Items:
    """Complete the name of a command."""
    top = context.find_root()
    assert isinstance(top.command, Group)
    return _starting(top.command.list_commands(top), incomplete)


@_quiet
def query_text(_context: click.Context, incomplete: str) -> Items:
    """Complete the last word of a query: a protocol, a field, a function or a keyword."""
    from gscope.cli.completion.query_words import words_for

    return words_for(incomplete)


def words(*values: str) -> Completer:
    """Return a completer for a fixed list of ``values``."""

    @_quiet
    def complete(_context: click.Context, incomplete: str) -> Items:
        return _starting(values, incomplete)

    return complete


def _library(incomplete: str) -> Items:
    from gscope.queries.library.description import describe
    from gscope.queries.library.files import full_names

    # Published queries by their full names, so that flow is always the library's own.
    found = {
        name: describe(file.read_text(encoding="utf-8")).summary
        for name, file in full_names().items()
        if name.startswith(incomplete)
    }
    return _starting(found, incomplete)


def _query_texts(context: click.Context) -> Iterator[str]:
    """Yield the texts of the queries that the command line names so far."""
    from pathlib import Path

    from gscope.queries.library.files import library_files

    yield from _given(context, "expressions")
    named = (*_given(context, "named"), *_given(context, "queries"))
    library = library_files() if named else {}
    for name in named:
        if name in library and not Path(name).is_file():
            yield library[name].read_text(encoding="utf-8")
            continue
        with suppress(OSError), Path(name).open(encoding="utf-8", errors="replace") as file:
            yield file.read(_LARGEST_QUERY)


def _given(context: click.Context, name: str) -> tuple[str, ...]:
    """Return what the command line gives for a parameter so far.

    ``context`` lacks the arguments where the last word is an option whose value is being completed.
    """
    words = list(context.obj or ())
    if context.info_name in words:
        words = words[words.index(context.info_name) + 1 :]
    options, _, _ = context.command.make_parser(context).parse_args([*words, ""])
    value = options.get(name)
    return tuple(str(each) for each in value if each) if isinstance(value, (tuple, list)) else ()


def _configured(context: click.Context) -> tuple[str, ...]:
    from gscope.cli.config.effective import load_config

    return tuple(load_config({}, context.params.get("config_path")).interfaces)


def _work_dir(context: click.Context) -> Path:
    from gscope.cli.config.effective import GivenSetting, load_config

    given = context.params.get("work_dir") or os.environ.get("GSCOPE_WORK_DIR")
    settings = {"work_dir": GivenSetting(str(given), "--work-dir")} if given else {}
    return load_config(settings, context.params.get("config_path")).work_dir
