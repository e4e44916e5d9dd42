"""Functions by the names that queries use → calls of canonical functions with converted arguments."""

from __future__ import annotations

from typing import TYPE_CHECKING

from gscope.errors import Position, ResolveError, TypeMismatchError
from gscope.queries.analysis.constants import apply, parse_network, text_of
from gscope.queries.analysis.conversions import convert, predicate, unify
from gscope.queries.analysis.declarations import check_declaration
from gscope.queries.analysis.suggest import did_you_mean
from gscope.queries.analysis.time_calls import date_trunc, time_bucket, to_timestamp
from gscope.queries.catalog.aggregates import AGGREGATES
from gscope.queries.catalog.functions import FUNCTIONS
from gscope.queries.catalog.running import RUNNING
from gscope.queries.catalog.scalar.addresses import is_ipv4
from gscope.queries.catalog.types import GsqlType
from gscope.queries.plan.expressions import Expression, Literal

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from gscope.queries.gsql import nodes

    Builder = Callable[[tuple[Expression, ...], nodes.FunctionCall], Expression]

_INT, _FLOAT, _STRING, _IP = GsqlType.INT, GsqlType.FLOAT, GsqlType.STRING, GsqlType.IP
_V4_OFFSET = 96


def scalar_builder(node: nodes.FunctionCall) -> Builder:
    """What makes the call of a scalar function or predicate from its arguments.

    Raises:
        ResolveError: there is no function of that name.
        TypeMismatchError: it is called as an aggregate.
    """
    builder = BUILDERS.get(node.name.lower())
    if builder is not None and not (node.star or node.distinct):
        return builder
    if builder is not None:
        message = f"{node.name} is no aggregate: it takes neither * nor DISTINCT"
        raise TypeMismatchError(message, position=node.position)
    message = f"there is no function {node.name}"
    known = (*BUILDERS, *AGGREGATES, *RUNNING)
    raise ResolveError(message, position=node.position, remedy=did_you_mean(node.name, known))


def catalog_builder(function: str, defaults: tuple[Literal, ...] = ()) -> Builder:
    """The function of the catalog as it stands; ``defaults`` are for the last parameters."""

    def build(arguments: tuple[Expression, ...], node: nodes.FunctionCall) -> Expression:
        entry = FUNCTIONS[function]
        missing = len(entry.parameters) - len(arguments)
        if 0 < missing <= len(defaults):
            arguments = (*arguments, *defaults[-missing:])
        _check_count(arguments, node, len(entry.parameters) - len(defaults), len(entry.parameters))
        converted = []
        for number, (parameter, argument) in enumerate(
            zip(entry.parameters, arguments, strict=True)
        ):
            position = _position(node, number)
            where = f"as argument {number + 1} of {node.name}"
            value = convert(argument, parameter.type or argument.type, position, where)
            if parameter.is_literal:
                _check_constant(value, parameter.objection, position, where)
            converted.append(value)
        return apply(function, *converted)

    return build


def _declaration(function: str) -> Builder:
    """An order declared of fields of packets."""
    plain = catalog_builder(function)

    def build(arguments: tuple[Expression, ...], node: nodes.FunctionCall) -> Expression:
        call = plain(arguments, node)
        check_declaration(call, node.name, node.position)
        return call

    return build


def _by_type(choices: dict[GsqlType, str]) -> Builder:
    """The function for the type of the only argument; "" leaves the argument as it is."""

    def build(arguments: tuple[Expression, ...], node: nodes.FunctionCall) -> Expression:
        _check_count(arguments, node, 1, 1)
        (argument,) = arguments
        if argument.type is GsqlType.NULL:
            argument = convert(argument, next(iter(choices)), node.position)
        steps = choices.get(argument.type)
        if steps is None:
            names = ", ".join(t.value for t in choices)
            message = f"{node.name} takes {names}, not {argument.type.value}"
            raise TypeMismatchError(message, position=_position(node, 0))
        for step in steps.split():
            argument = apply(step, argument)
        return argument

    return build


def _variadic(function: str) -> Builder:
    def build(arguments: tuple[Expression, ...], node: nodes.FunctionCall) -> Expression:
        _check_count(arguments, node, 1, None)
        return apply(function, *unify(arguments, node.position, f"as arguments of {node.name}"))

    return build


def _if_else(arguments: tuple[Expression, ...], node: nodes.FunctionCall) -> Expression:
    _check_count(arguments, node, 3, 3)
    condition = predicate(arguments[0], _position(node, 0), f"as argument 1 of {node.name}")
    results = unify(arguments[1:], node.position, f"as results of {node.name}")
    return apply("case", condition, *results)


def _in_net(arguments: tuple[Expression, ...], node: nodes.FunctionCall) -> Expression:
    """``in_net[ip, '10.0.0.0/8']``, or with the prefix length as a third argument."""
    _check_count(arguments, node, 2, 3)
    address = convert(arguments[0], _IP, _position(node, 0), f"as argument 1 of {node.name}")
    network, position = arguments[1], _position(node, 1)
    remedy = f"write {node.name}[{_shown(node)}, '10.0.0.0/8']"
    if not isinstance(network, Literal):
        message = f"argument 2 of {node.name} must be a constant network"
        raise TypeMismatchError(message, position=position, remedy=remedy)
    if network.type is _STRING:
        parsed = parse_network(text_of(network))
    else:
        parsed = (network.value, 128) if isinstance(network.value, int) else None
    if parsed is None or network.type not in (_STRING, _IP):
        shown = text_of(network) if network.type is _STRING else network.value
        message = f"{shown!r} is no network"
        raise TypeMismatchError(message, position=position, remedy=remedy)
    base, bits = parsed
    if len(arguments) == 3:
        bits = _prefix_length(arguments[2], base, node)
    return apply("in_net", address, Literal(base, _IP), Literal(bits, _INT))


def _prefix_length(length: Expression, base: int, node: nodes.FunctionCall) -> int:
    largest, offset = (32, _V4_OFFSET) if is_ipv4(base) else (128, 0)
    value = length.value if isinstance(length, Literal) and length.type is _INT else None
    if not isinstance(value, int) or not 0 <= value <= largest:
        message = f"argument 3 of {node.name} must be a constant from 0 to {largest}"
        raise TypeMismatchError(message, position=_position(node, 2))
    return offset + value


def _shown(node: nodes.FunctionCall) -> str:
    parts = getattr(node.args[0], "parts", ("ip",))
    return ".".join(parts)


def _check_count(
    arguments: Sequence[Expression], node: nodes.FunctionCall, least: int, most: int | None
) -> None:
    if least <= len(arguments) and (most is None or len(arguments) <= most):
        return
    if most is None:
        expected = f"at least {least}"
    else:
        expected = str(least) if least == most else f"{least} to {most}"
    noun = "argument" if expected in ("1", "at least 1") else "arguments"
    message = f"{node.name} takes {expected} {noun}, not {len(arguments)}"
    raise TypeMismatchError(message, position=node.position)


def _check_constant(
    value: Expression, objection: Callable[..., str], position: Position, where: str
) -> None:
    if not isinstance(value, Literal):
        message = f"a constant is needed {where}"
        raise TypeMismatchError(message, position=position)
    complaint = "" if value.value is None else objection(value.value)
    if complaint:
        message = f"{complaint} ({where})"
        raise TypeMismatchError(message, position=position)


def _position(node: nodes.FunctionCall, number: int) -> Position:
    return node.args[number].position if number < len(node.args) else node.position


_TO_INT = _by_type(
    {
        _INT: "",
        GsqlType.BOOL: "bool_to_int",
        _FLOAT: "float_to_int",
        _STRING: "string_to_int",
        _IP: "ip_to_int",
        GsqlType.TIMESTAMP: "ts_to_int",
    }
)
_TO_TIMESTAMP = _by_type({GsqlType.TIMESTAMP: "", _INT: "int_to_ts"})
_WHOLE_IPV6 = Literal(128, _INT)
_NO_SEED = Literal(0, _INT)

BUILDERS: dict[str, Builder] = {
    **{
        name: catalog_builder(name)
        for name in (
            *("str_match_start", "str_match_offset", "byte_match_offset", "str_exists_substr"),
            *("str_regex_match", "str_extract_regex", "str_truncate", "str_suffix", "str_find"),
            *("length", "lower", "upper", "string_hash", "to_hex", "to_int", "is_private"),
            *("sqrt", "pow", "log", "log2", "log10", "non_temporal"),
            *("http_host", "http_method", "http_path", "tls_sni"),
            *("dns_qname", "dns_qtype", "dns_qclass", "dns_rcode", "dns_answers", "dns_address"),
            *("dns_id", "dns_opcode", "dns_is_response", "dns_authoritative", "dns_truncated"),
        )
    },
    **{name: _declaration(name) for name in ("increasing", "decreasing", "banded")},
    **{name: _variadic(name) for name in ("coalesce", "min_of", "max_of")},
    **dict.fromkeys(("int", "uint", "ushort", "llong", "ullong"), _TO_INT),
    **dict.fromkeys(("timestamp", "timeval"), _TO_TIMESTAMP),
    **{
        name: _by_type({_INT: "", _FLOAT: f"{name}_float", GsqlType.BOOL: "bool_to_int"})
        for name in ("floor", "ceil", "round")
    },
    "abs": _by_type({_INT: "abs_int", _FLOAT: "abs_float", GsqlType.BOOL: "bool_to_int"}),
    "bool": _by_type({GsqlType.BOOL: "", _INT: "int_to_bool"}),
    "float": _by_type(
        {
            _FLOAT: "",
            _INT: "int_to_float",
            GsqlType.BOOL: "bool_to_int int_to_float",
        }
    ),
    "string": _by_type(
        {
            _STRING: "",
            _INT: "int_to_string",
            GsqlType.BOOL: "bool_to_string",
            _FLOAT: "float_to_string",
            _IP: "ip_to_string",
            GsqlType.MAC: "mac_to_string",
            GsqlType.TIMESTAMP: "timestamp_to_string",
        }
    ),
    "date_trunc": date_trunc,
    "time_bucket": time_bucket,
    "to_timestamp": to_timestamp,
    "strtoip": catalog_builder("string_to_ip"),
    "ipv4": _by_type({_IP: "ip_to_int"}),
    "prefix": catalog_builder("prefix", (_WHOLE_IPV6,)),
    "community_id": catalog_builder("community_id", (_NO_SEED,)),
    "in_net": _in_net,
    "if_else": _if_else,
}
