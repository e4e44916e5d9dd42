"""PROTOCOL definitions of query files → protocols over built-in fields."""

from __future__ import annotations

from typing import TYPE_CHECKING

from gscope.errors import GsqlError, ResolveError, TypeMismatchError
from gscope.queries.analysis.names.scope import open_packets
from gscope.queries.analysis.typing.constants import apply
from gscope.queries.analysis.typing.declarations import undeclared
from gscope.queries.analysis.typing.parameters import Substitutes
from gscope.queries.analysis.typing.typer import Typer
from gscope.queries.catalog.application_protocols import APPLICATION_PROTOCOLS
from gscope.queries.catalog.ordering.temporal import ordering_of
from gscope.queries.catalog.protocols import (
    PROTOCOL_ALIASES,
    PROTOCOLS,
    Protocol,
    ProtocolField,
)
from gscope.queries.did_you_mean import did_you_mean
from gscope.queries.expressions.expressions import Call

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from gscope.errors import Position
    from gscope.queries.expressions.expressions import Expression
    from gscope.queries.gsql import nodes

# A field is substituted for its name, so a few lines could define a huge expression.
_MAX_PARTS = 250
_MAX_DEPTH = 50


def known_protocols(files: Sequence[nodes.File]) -> dict[str, Protocol]:
    """Return every protocol that queries may name: built-in ones, aliases, those of ``files``.

    Raises:
        GsqlError: a definition is wrong.
    """
    aliases = {alias: PROTOCOLS[target] for alias, target in PROTOCOL_ALIASES.items()}
    protocols = {**PROTOCOLS, **aliases}
    waiting: dict[str, tuple[nodes.ProtocolDefinition, nodes.File]] = {}
    for file in files:
        for definition in file.protocols:
            if definition.name in protocols or definition.name in waiting:
                message = f"there is a protocol {definition.name} already"
                error = ResolveError(
                    message, position=definition.position, remedy="give it another name"
                )
                raise error.located(file.text, file.source)
            waiting[definition.name] = definition, file
    protocols |= {n: p for n, p in APPLICATION_PROTOCOLS.items() if n not in waiting}
    while waiting:
        ready = [name for name, (d, _) in waiting.items() if d.parent in protocols]
        if not ready:
            raise _no_parent(waiting, protocols)
        for name in ready:
            definition, file = waiting.pop(name)
            try:
                protocols[name] = _define(definition, protocols[definition.parent])
            except GsqlError as error:
                raise error.located(file.text, file.source) from None
    return protocols


def _no_parent(
    waiting: Mapping[str, tuple[nodes.ProtocolDefinition, nodes.File]],
    protocols: Mapping[str, Protocol],
) -> GsqlError:
    orphan = next((d for d, _ in waiting.values() if d.parent not in waiting), None)
    definition, file = waiting[orphan.name] if orphan else next(iter(waiting.values()))
    if orphan:
        message = f"unknown protocol {orphan.parent}"
        remedy = did_you_mean(orphan.parent, [*protocols, *waiting], "available protocols")
    else:
        message = f"the protocol {definition.name} inherits from itself"
        remedy = "let one of the protocols inherit from a built-in one"
    error = ResolveError(message, position=definition.position, remedy=remedy)
    return error.located(file.text, file.source)


def _define(definition: nodes.ProtocolDefinition, parent: Protocol) -> Protocol:
    fields = list(parent.fields)
    for entry in definition.fields:
        if any(f.name == entry.name for f in fields):
            message = f"{definition.name} has a field {entry.name} already"
            raise ResolveError(
                message, position=entry.position, remedy="give the field another name"
            )
        so_far = _with(parent, definition.name, fields, parent.membership)
        expression = _typer(so_far).type(entry.expression)
        _check_size(expression, entry.name, entry.position)
        fields.append(
            ProtocolField(
                entry.name, expression, ordering_of(expression), f"defined in {definition.name}"
            )
        )
    membership = parent.membership
    if definition.where is not None:
        typer = _typer(_with(parent, definition.name, fields, parent.membership))
        own = undeclared(typer.condition(definition.where, "in WHERE"))
        membership = own if membership is None else apply("and", membership, own)
        _check_size(membership, definition.name, definition.where.position)
    return _with(parent, definition.name, fields, membership)


def _check_size(expression: Expression, name: str, position: Position) -> None:
    waiting = [(expression, 1)]
    parts = 0
    while waiting:
        part, depth = waiting.pop()
        parts += 1
        if parts > _MAX_PARTS or depth > _MAX_DEPTH:
            message = f"{name} grows too large: written out in built-in fields, it is too long"
            raise TypeMismatchError(message, position=position, remedy="build on fewer fields")
        if isinstance(part, Call):
            waiting += [(argument, depth + 1) for argument in part.arguments]


def _with(
    parent: Protocol, name: str, fields: Sequence[ProtocolField], membership: Expression | None
) -> Protocol:
    return Protocol(
        name, parent.name, tuple(fields), membership, f"a kind of {parent.name}", parent.inner
    )


def _typer(protocol: Protocol) -> Typer:
    source = open_packets(protocol, (), (protocol.name,))
    return Typer(source.resolve, Substitutes(None, {}), _no_aggregate)


def _no_aggregate(node: nodes.FunctionCall) -> Expression:
    message = f"aggregate {node.name} is not allowed in a protocol, which describes single packets"
    raise TypeMismatchError(message, position=node.position)
