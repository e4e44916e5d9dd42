"""``gscope schema``: lists protocols and functions, and shows fields and result columns."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import click

from gscope.cli.commands.option_groups import with_config, with_interfaces, with_pager
from gscope.cli.commands.options import option
from gscope.cli.completion import candidates
from gscope.cli.config.setting_groups import OF_RUNS

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from gscope.cli.config.effective import Config
    from gscope.queries.catalog.protocols import Protocol
    from gscope.queries.expressions.schema import ColumnSchema
    from gscope.queries.expressions.types import Ordering


@click.command(short_help="Show the fields of protocols and the columns of queries.")
@click.argument(
    "names",
    nargs=-1,
    metavar="PROTOCOL|FILE|NAME...",
    shell_complete=candidates.protocols_and_queries,
)
@option("--json", "is_json", is_flag=True, help="Print JSON.")
@option("--functions", "is_functions", is_flag=True, help="List functions and aggregates.")
@with_interfaces
@with_pager
@with_config(without=OF_RUNS)
def schema(
    names: tuple[str, ...],
    is_json: bool,
    is_functions: bool,
    interfaces: tuple[str, ...],
    config: Config,
) -> None:
    """Show the fields of protocols, or the columns of queries (files, or library queries by name).

    Without arguments, lists the protocols.
    """
    if is_functions:
        _list_functions(config, is_json=is_json)
        return
    from gscope.queries.catalog.application_protocols import APPLICATION_PROTOCOLS
    from gscope.queries.catalog.protocols import PROTOCOL_ALIASES, PROTOCOL_SYNONYMS, PROTOCOLS

    known = {**PROTOCOLS, **APPLICATION_PROTOCOLS}
    if not names:
        _list(known, is_json=is_json)
        return
    aliases = {**PROTOCOL_ALIASES, **PROTOCOL_SYNONYMS}
    protocols = {
        **{name.lower(): protocol for name, protocol in known.items()},
        **{alias.lower(): known[name] for alias, name in aliases.items()},
    }
    found: dict[str, list[dict[str, Any]]] = {}
    for name in names:
        if name.lower() in protocols:
            protocol = protocols[name.lower()]
            found[protocol.name] = list(_fields(protocol))
        else:
            found.update(_query_columns(name, interfaces or tuple(config.interfaces), config))
    if is_json:
        click.echo(json.dumps(found, indent=2))
        return
    for number, (name, columns) in enumerate(found.items()):
        click.echo(("\n" if number else "") + name)
        for line in _aligned(columns):
            click.echo(line)


def _list(protocols: dict[str, Protocol], *, is_json: bool) -> None:
    if is_json:
        described = {p.name: {"extends": p.parent, "is": p.description} for p in protocols.values()}
        click.echo(json.dumps(described, indent=2))
        return
    for protocol in protocols.values():
        parent = f" ({protocol.parent})" if protocol.parent else ""
        click.echo(f"{protocol.name + parent:<14} {protocol.description}")
    click.echo("\n`gscope schema TCP` shows the fields of TCP.")


def _list_functions(config: Config, *, is_json: bool) -> None:
    from gscope.cli.render.function_list import described_functions, function_lines
    from gscope.cli.session.compile_request import offer_user_code

    offer_user_code(config)

    if is_json:
        click.echo(json.dumps(described_functions(), indent=2))
        return
    for line in function_lines():
        click.echo(line)


def _fields(protocol: Protocol) -> Iterator[dict[str, Any]]:
    for field in (*protocol.fields, *protocol.inner):
        yield {
            "name": field.name,
            "type": field.expression.type.value,
            "ordering": _ordering(field.ordering),
            "nullable": field.expression.is_nullable,
            "description": field.description,
        }


def _query_columns(
    name: str, interfaces: Sequence[str], config: Config
) -> dict[str, list[dict[str, Any]]]:
    from gscope.cli.session.compile_request import compile_request
    from gscope.cli.session.request import QueryRequest
    from gscope.errors import UsageError
    from gscope.queries.plan.row_order import visible

    try:
        program = compile_request(QueryRequest([name]), interfaces, config).program
    except UsageError as error:
        message = (
            f"{name!r} is neither a protocol nor a file nor a library query; `gscope schema` "
            "lists the protocols"
        )
        raise UsageError(message) from error
    return {
        query: [_column(column) for column in visible(columns).columns]
        for query, columns in program.schemas
    }


def _column(column: ColumnSchema) -> dict[str, Any]:
    return {
        "name": column.name,
        "type": column.type.value,
        "ordering": _ordering(column.ordering),
        "nullable": column.is_nullable,
        "description": "",
    }


def _ordering(ordering: Ordering) -> str:
    if not ordering.is_temporal:
        return ""
    band = f" within {ordering.band}" if ordering.band else ""
    return ordering.direction.value + band


def _aligned(columns: list[dict[str, Any]]) -> Iterator[str]:
    rows = [
        (c["name"], c["type"], c["ordering"], "NULL" if c["nullable"] else "", c["description"])
        for c in columns
    ]
    widths = [max(len(row[place]) for row in rows) for place in range(4)]
    for row in rows:
        cells = [cell.ljust(width) for cell, width in zip(row[:4], widths, strict=True) if width]
        yield f"  {'  '.join([*cells, row[4]])}".rstrip()
