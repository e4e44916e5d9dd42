"""Warnings on queries that compile, but of which a part can do nothing.

That is a comparison that holds for no packet, such as ``srcPort = 70000`` or ``protocol = 17`` of
TCP, and ORDER BY or LIMIT over epochs of one row.
"""

from __future__ import annotations

import re
from dataclasses import replace
from typing import TYPE_CHECKING

from gscope.errors import GsqlError, ResolveError
from gscope.queries.analysis.typing.constants import parse_network
from gscope.queries.catalog.field_names import either_field
from gscope.queries.catalog.field_values import CAPITALS, GREATEST, LOWER_CASE, ONLY
from gscope.queries.catalog.ip_protocols import PROTOCOL_NUMBERS
from gscope.queries.catalog.scalar.addresses import is_ipv4
from gscope.queries.expressions.expressions import Call, PacketField
from gscope.queries.expressions.types import GsqlType
from gscope.queries.gsql import nodes
from gscope.queries.gsql.expression_printer import print_expression
from gscope.queries.gsql.node import walk
from gscope.queries.gsql.nodes import BinaryOperator, LiteralKind
from gscope.queries.gsql.printer import print_body
from gscope.queries.plan.logical import Filter, GroupBy, Project, WindowGroupBy
from gscope.queries.plan.whole_input import written_keys

if TYPE_CHECKING:
    from collections.abc import Iterator

    from gscope.errors import Position
    from gscope.queries.analysis.names.scope import Source
    from gscope.queries.expressions.expressions import Expression
    from gscope.queries.plan.logical import Node

_SWAPPED = {
    BinaryOperator.LESS: BinaryOperator.GREATER,
    BinaryOperator.LESS_EQUAL: BinaryOperator.GREATER_EQUAL,
    BinaryOperator.GREATER: BinaryOperator.LESS,
    BinaryOperator.GREATER_EQUAL: BinaryOperator.LESS_EQUAL,
}
_CAPITAL, _SMALL = re.compile("[A-Z]"), re.compile("[a-z]")
_EQUALITIES = frozenset({BinaryOperator.EQUAL, BinaryOperator.NOT_EQUAL})


def warnings_on(
    body: nodes.Select, written: nodes.Select, source: Source, root: Node
) -> Iterator[GsqlError]:
    """Yield the warnings on a SELECT over one input, as errors that are only shown.

    Args:
        body: the SELECT, with the expressions of its aliases in their place.
        written: the SELECT as written.
        source: the input, open for look-up.
        root: its plan, without ORDER BY and LIMIT.
    """
    clauses = (*body.outputs, *body.group_by, body.where, body.having)
    for clause in clauses:
        for node in walk(clause) if clause is not None else ():
            yield from _on_condition(node, source)
    yield from _on_order(written, root)


def _on_condition(node: nodes.Node, source: Source) -> Iterator[GsqlError]:
    match node:
        case nodes.Binary(operator, left, right):
            if isinstance(left, nodes.LiteralSyntax):
                left, right, operator = right, left, _SWAPPED.get(operator, operator)
            if isinstance(right, nodes.LiteralSyntax):
                yield from _on_comparison(left, operator, right, source)
        case nodes.InList(operand, choices):
            for choice in choices[:100]:
                if isinstance(choice, nodes.LiteralSyntax):
                    yield from _on_comparison(operand, BinaryOperator.EQUAL, choice, source)
        case nodes.Like(operand, nodes.LiteralSyntax() as pattern):
            meaning = _meaning(operand, source)
            yield from _on_text(operand, meaning, pattern, is_pattern=True)


def _on_comparison(
    operand: nodes.Expression,
    operator: BinaryOperator,
    literal: nodes.LiteralSyntax,
    source: Source,
) -> Iterator[GsqlError]:
    meaning = _meaning(operand, source)
    if meaning is None:
        return
    if operator in _EQUALITIES:
        yield from _on_text(operand, meaning, literal, is_pattern=False)
    if not isinstance(meaning, PacketField):
        return
    if meaning.type is GsqlType.IP and operator in _EQUALITIES:
        yield from _on_address(operand, literal, source)
    if meaning.type is not GsqlType.INT:
        return
    number = _number(meaning.name, literal)
    if number is not None and not _is_possible(meaning.name, operator, number, source):
        yield _never(operand, operator, literal, _range_of(meaning.name, source))


def _meaning(operand: nodes.Expression, source: Source) -> Expression | None:
    """Return the field or call that an operand stands for; of ``port``, one of its fields."""
    match operand:
        case nodes.FunctionCall(name) if name.lower() in LOWER_CASE | CAPITALS:
            return Call(name.lower(), (), GsqlType.STRING, is_nullable=True)
        case nodes.Name(parts):
            pair = either_field(".".join(parts))
            try:
                found = source.resolve(operand)
            except ResolveError:
                if pair is None:
                    return None
                other = nodes.Name(tuple(pair[0].split(".")), position=operand.position)
                found = source.resolve(other)
            # A field of other packets is NULL by a CASE around it.
            guarded = isinstance(found, Call) and found.function == "case"
            return found.arguments[1] if isinstance(found, Call) and guarded else found
    return None


def _number(field: str, literal: nodes.LiteralSyntax) -> int | None:
    if literal.kind is LiteralKind.INTEGER:
        return int(literal.value or 0)
    if literal.kind is LiteralKind.STRING and field == "protocol":
        return PROTOCOL_NUMBERS.get(str(literal.value).strip().lower())
    return None


def _values_of(field: str, source: Source) -> frozenset[int]:
    """Return the few values that a field has in packets of the input; empty for many."""
    protocol = source.protocol.name if source.protocol is not None else ""
    return ONLY.get(protocol, {}).get(field, frozenset())


def _is_possible(field: str, operator: BinaryOperator, number: int, source: Source) -> bool:
    values = _values_of(field, source)
    greatest = GREATEST.get(field)
    if values:
        least, most = min(values), max(values)
    elif greatest is not None:
        least, most = 0, greatest
    else:
        return True
    match operator:
        case BinaryOperator.EQUAL:
            return number in values if values else least <= number <= most
        case BinaryOperator.NOT_EQUAL:
            return values != {number}
        case BinaryOperator.LESS:
            return least < number
        case BinaryOperator.LESS_EQUAL:
            return least <= number
        case BinaryOperator.GREATER:
            return most > number
        case BinaryOperator.GREATER_EQUAL:
            return most >= number
    return True


def _range_of(field: str, source: Source) -> str:
    values = _values_of(field, source)
    if values:
        shown = " or ".join(map(str, sorted(values)))
        return f"{field} of {source.what} is always {shown}"
    return f"{field} is at least 0 and at most {GREATEST[field]}"


def _on_address(
    operand: nodes.Expression, literal: nodes.LiteralSyntax, source: Source
) -> Iterator[GsqlError]:
    protocol = source.protocol.name if source.protocol is not None else ""
    address = parse_network(str(literal.value))
    if protocol not in {"IPV4", "IPV6"} or address is None:
        return
    if is_ipv4(address[0]) != (protocol == "IPV4"):
        other = "IPV6" if protocol == "IPV4" else "IPV4"
        reason = (
            f"addresses of {protocol} are never those of {other}; write FROM {other} or FROM IP"
        )
        yield _never(operand, BinaryOperator.EQUAL, literal, reason)


def _on_text(
    operand: nodes.Expression,
    meaning: Expression | None,
    literal: nodes.LiteralSyntax,
    *,
    is_pattern: bool,
) -> Iterator[GsqlError]:
    if not isinstance(meaning, Call) or literal.kind is not LiteralKind.STRING:
        return
    text = str(literal.value)
    if meaning.function in LOWER_CASE and (_CAPITAL.search(text) or text.endswith(".")):
        better = text.lower().rstrip(".")
        reason = f"write '{better}'; these names are in lower case, without a dot at the end"
    elif meaning.function in CAPITALS and _SMALL.search(text):
        reason = f"write '{text.upper()}'; methods are in capital letters"
    else:
        return
    word = "LIKE" if is_pattern else "="
    shown = f"{print_expression(operand)} {word} '{text}'"
    yield GsqlError(f"{shown} is never true", position=literal.position, remedy=reason)


def _never(
    operand: nodes.Expression,
    operator: BinaryOperator,
    literal: nodes.LiteralSyntax,
    reason: str,
) -> GsqlError:
    shown = f"{print_expression(operand)} {operator.value} {print_expression(literal)}"
    return GsqlError(f"{shown} is never true", position=literal.position, remedy=reason)


def _on_order(written: nodes.Select, root: Node) -> Iterator[GsqlError]:
    """Yield a warning if ORDER BY or LIMIT see one row at a time, because the epoch is the key."""
    place = _order_position(written)
    node = root
    while isinstance(node, Project | Filter):
        node = node.input
    if place is None:
        return
    if isinstance(node, WindowGroupBy) and not node.keys:
        epoch, epochs = "window", "windows"
    elif isinstance(node, GroupBy) and _is_keyed_by_epoch(node):
        epoch, epochs = f"epoch {node.epoch}", "epochs"
    else:
        return
    inner = print_body(replace(written, order_by=(), limit=None))
    clauses = print_body(written)[len(inner) :].strip()
    clauses = " ".join(clauses.split())
    message = f"each {epoch} has one row, so ORDER BY and LIMIT leave all rows as they are"
    whole = f"SELECT * FROM ({' '.join(inner.split())}) AS {epochs} {clauses}"
    yield GsqlError(message, position=place, remedy=f"to order all {epochs} write {whole}")


def _is_keyed_by_epoch(group: GroupBy) -> bool:
    keys = written_keys(group.keys, group.epoch)
    return [key.name for key in keys] == [group.epoch]


def _order_position(written: nodes.Select) -> Position | None:
    if written.limit is not None:
        return written.limit.position
    terms = written.order_by
    return terms[0].position if any(term.is_descending for term in terms) else None
