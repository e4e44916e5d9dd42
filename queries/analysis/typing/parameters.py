"""Values of ``$x`` and ``#X``: parameters of the run, and entries of DEFINE."""

from __future__ import annotations

from typing import TYPE_CHECKING

from gscope.errors import GsqlSyntaxError, ResolveError, TypeMismatchError
from gscope.queries.analysis.typing import operators
from gscope.queries.analysis.typing.constants import from_literal
from gscope.queries.analysis.typing.conversions import convert
from gscope.queries.did_you_mean import did_you_mean
from gscope.queries.expressions.expressions import Expression, Literal
from gscope.queries.expressions.types import GsqlType
from gscope.queries.gsql import nodes
from gscope.queries.gsql.parser import definition_literal, parse_expression
from gscope.records import dataclass

if TYPE_CHECKING:
    from collections.abc import Mapping

TYPE_NAMES: dict[str, GsqlType] = {
    **dict.fromkeys(("BOOL",), GsqlType.BOOL),
    **dict.fromkeys(("INT", "UINT", "USHORT", "LLONG", "ULLONG"), GsqlType.INT),
    "FLOAT": GsqlType.FLOAT,
    "STRING": GsqlType.STRING,
    **dict.fromkeys(("IP", "IPV6"), GsqlType.IP),
    "MAC": GsqlType.MAC,
    **dict.fromkeys(("TIMESTAMP", "TIMEVAL"), GsqlType.TIMESTAMP),
    "INTERVAL": GsqlType.INTERVAL,
}
"""Types by the names that queries use, in capitals."""


@dataclass(frozen=True, slots=True)
class Substitutes:
    """The DEFINE and PARAM blocks of a query, and the values of its parameters.

    Attributes:
        query: the query with the blocks; None where there are none, as in a protocol.
        values: the text given for each parameter.
    """

    query: nodes.Query | None
    values: Mapping[str, str]

    def definition(self, node: nodes.Definition) -> Literal:
        """Return the constant that ``#NAME`` stands for.

        Raises:
            ResolveError: DEFINE has no such entry.
        """
        entries = {e.name: e for e in self.query.define} if self.query else {}
        if node.name not in entries:
            message = f"DEFINE has no entry {node.name}"
            remedy = did_you_mean(node.name, entries) or f"add DEFINE {{ {node.name} value; }}"
            raise ResolveError(message, position=node.position, remedy=remedy)
        return from_literal(definition_literal(entries[node.name]))

    def parameter(self, node: nodes.ParameterReference) -> Literal:
        """Return the value given for ``$name``.

        Raises:
            ResolveError: the parameter is not declared, or no value is given.
            TypeMismatchError: the value is not of the declared type.
        """
        entries = {e.name: e for e in self.query.params} if self.query else {}
        if node.name not in entries:
            message = f"PARAM does not declare {node.name}"
            remedy = did_you_mean(node.name, entries) or f"add PARAM {{ {node.name} INT; }}"
            raise ResolveError(message, position=node.position, remedy=remedy)
        target = _declared_type(entries[node.name])
        if node.name not in self.values:
            message = f"the parameter {node.name} has no value"
            raise ResolveError(
                message, position=node.position, remedy=f"give it one: --param {node.name}=…"
            )
        return _read(self.values[node.name], target, node)

    def constant(self, extent: nodes.Extent) -> Literal:
        """Return the value of a length in a query: a literal, a parameter or a definition."""
        match extent:
            case nodes.LiteralSyntax():
                return from_literal(extent)
            case nodes.ParameterReference():
                return self.parameter(extent)
            case nodes.Definition():
                return self.definition(extent)


def _declared_type(entry: nodes.ParamEntry) -> GsqlType:
    found = TYPE_NAMES.get(entry.type_name.upper())
    if found is None:
        message = f"unknown type {entry.type_name}"
        remedy = did_you_mean(entry.type_name, TYPE_NAMES, "available types")
        raise ResolveError(message, position=entry.position, remedy=remedy)
    return found


def _read(text: str, target: GsqlType, node: nodes.ParameterReference) -> Literal:
    if target is GsqlType.STRING:
        return Literal(text.encode(), target)
    spelled = f"INTERVAL '{text}'" if target is GsqlType.INTERVAL else text
    value = _constant(spelled) or _constant(text) or Literal(text.encode(), GsqlType.STRING)
    try:
        converted = convert(value, target, node.position)
    except TypeMismatchError:
        converted = value
    if not isinstance(converted, Literal) or converted.type is not target:
        message = (
            f"invalid value of the parameter {node.name}: expected {target.value}, got {text!r}"
        )
        raise TypeMismatchError(message, position=node.position)
    return converted


def _constant(text: str) -> Expression | None:
    """Return the number, address or time that ``text`` spells, signed or not; else None."""
    try:
        node = parse_expression(text)
    except GsqlSyntaxError:
        return None
    try:
        if isinstance(node, nodes.Unary) and isinstance(node.operand, nodes.LiteralSyntax):
            return operators.unary(node.operator, from_literal(node.operand), node.position)
        return from_literal(node) if isinstance(node, nodes.LiteralSyntax) else None
    except TypeMismatchError:
        return None
