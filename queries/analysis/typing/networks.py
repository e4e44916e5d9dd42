"""Networks: ``in_net`` and ``prefix``, constant or not, and networks among the choices of IN."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from gscope.errors import TypeMismatchError
from gscope.queries.analysis.typing.constants import apply, parse_network, text_of
from gscope.queries.analysis.typing.conversions import as_string, convert
from gscope.queries.catalog.scalar.addresses import is_ipv4
from gscope.queries.expressions.expressions import Expression, Literal
from gscope.queries.expressions.types import GsqlType

if TYPE_CHECKING:
    from collections.abc import Sequence

    from gscope.errors import Position
    from gscope.queries.gsql import nodes

_OCTETS = re.compile(r"([0-9]{1,3}(?:\.[0-9]{1,3}){0,2})\.%")
_INT, _STRING, _IP = GsqlType.INT, GsqlType.STRING, GsqlType.IP
_V4_OFFSET = 96

MOST_NETWORKS = 256
"""Networks in one list of IN: each of them is a test of its own."""


def in_network(arguments: tuple[Expression, ...], node: nodes.FunctionCall) -> Expression:
    """Return ``in_net[ip, network]`` or ``in_net[ip, network, length]``.

    Raises:
        TypeMismatchError: an argument is neither a network nor a column that can be one.
    """
    address = convert(arguments[0], _IP, _position(node, 0), f"as argument 1 of {node.name}")
    network, position = arguments[1], _position(node, 1)
    if not isinstance(network, Literal):
        return _in_varying(address, arguments, node)
    base, bits = _network(network, node, position)
    if len(arguments) < 3:
        return apply("in_net", address, Literal(base, _IP), Literal(bits, _INT))
    if not isinstance(arguments[2], Literal):
        return _in_varying(address, (address, Literal(base, _IP), arguments[2]), node)
    bits = _prefix_length(arguments[2], base, node)
    return apply("in_net", address, Literal(base, _IP), Literal(bits, _INT))


def prefix(arguments: tuple[Expression, ...], node: nodes.FunctionCall) -> Expression:
    """Return ``prefix(ip, n4, n6)`` where a length is not a constant."""
    converted = [
        convert(argument, kind, _position(node, n), f"as argument {n + 1} of {node.name}")
        for n, (argument, kind) in enumerate(zip(arguments, (_IP, _INT, _INT), strict=True))
    ]
    return apply("prefix_of", *converted)


def split_networks(
    operand: Expression, choices: Sequence[Expression], position: Position
) -> tuple[list[Expression], list[Expression]]:
    """Return the choices of IN that are addresses, and tests for those that are networks.

    Raises:
        TypeMismatchError: a text with a slash is not a network, or there are too many.
    """
    if operand.type is not _IP:
        return list(choices), []
    addresses: list[Expression] = []
    tests: list[Expression] = []
    for choice in choices:
        if not _is_network(choice):
            addresses.append(choice)
            continue
        parsed = parse_network(text_of(choice)) if isinstance(choice, Literal) else None
        if parsed is None:
            message = f"invalid network {text_of(choice)!r}" if isinstance(choice, Literal) else ""
            remedy = "write an address and a length, such as '10.0.0.0/8' or '2001:db8::/32'"
            raise TypeMismatchError(message, position=position, remedy=remedy)
        base, bits = parsed
        tests.append(apply("in_net", operand, Literal(base, _IP), Literal(bits, _INT)))
    if len(tests) > MOST_NETWORKS:
        message = f"a list can have at most {MOST_NETWORKS} networks, this one has {len(tests)}"
        remedy = "group by prefix(ip, 24) and list addresses, or split the list over two conditions"
        raise TypeMismatchError(message, position=position, remedy=remedy)
    return addresses, tests


def like_address(address: Expression, pattern: Literal, position: Position) -> Expression:
    """Return ``address LIKE pattern``, which compares the text of the address.

    A pattern of whole bytes, such as ``10.1.%``, is a network of IPv4, which needs no text.
    """
    octets = _OCTETS.fullmatch(text_of(pattern))
    if octets:
        numbers = octets[1].split(".")
        network = ".".join([*numbers, *["0"] * (4 - len(numbers))])
        parsed = parse_network(f"{network}/{8 * len(numbers)}")
        if parsed is not None and all(number == str(int(number)) for number in numbers):
            base, bits = parsed
            return apply("in_net", address, Literal(base, _IP), Literal(bits, _INT))
    return apply("like", as_string(address, position), pattern)


def _in_varying(
    address: Expression, arguments: tuple[Expression, ...], node: nodes.FunctionCall
) -> Expression:
    """Return the test of a network that is not constant; without a length it is one address."""
    where = f"as argument 2 of {node.name}"
    network = convert(arguments[1], _IP, _position(node, 1), where)
    if len(arguments) < 3:
        return apply("eq", address, network)
    length = convert(arguments[2], _INT, _position(node, 2), f"as argument 3 of {node.name}")
    return apply("in_subnet", address, network, length)


def _network(network: Literal, node: nodes.FunctionCall, position: Position) -> tuple[int, int]:
    if network.type is _STRING:
        parsed = parse_network(text_of(network))
    else:
        parsed = (network.value, 128) if isinstance(network.value, int) else None
    if parsed is None or network.type not in (_STRING, _IP):
        shown = text_of(network) if network.type is _STRING else network.value
        message = f"invalid network {shown!r}"
        remedy = f"write {node.name}[{_shown(node)}, '10.0.0.0/8']"
        raise TypeMismatchError(message, position=position, remedy=remedy)
    return parsed


def _prefix_length(length: Literal, base: int, node: nodes.FunctionCall) -> int:
    largest, offset = (32, _V4_OFFSET) if is_ipv4(base) else (128, 0)
    value = length.value if length.type is _INT else None
    if not isinstance(value, int) or not 0 <= value <= largest:
        message = f"argument 3 of {node.name} must be a number from 0 to {largest}"
        raise TypeMismatchError(message, position=_position(node, 2))
    return offset + value


def _is_network(choice: Expression) -> bool:
    return isinstance(choice, Literal) and choice.type is _STRING and "/" in text_of(choice)


def _shown(node: nodes.FunctionCall) -> str:
    parts = getattr(node.args[0], "parts", ("ip",))
    return ".".join(parts)


def _position(node: nodes.FunctionCall, number: int) -> Position:
    return node.args[number].position if number < len(node.args) else node.position
