"""Functions under the names of queries → calls of canonical functions, arguments converted."""

from __future__ import annotations

from dataclasses import replace
from functools import reduce
from typing import TYPE_CHECKING

from gscope.errors import Position, ResolveError, TypeMismatchError
from gscope.queries.analysis.typing import networks, operators
from gscope.queries.analysis.typing.constants import apply
from gscope.queries.analysis.typing.conversions import (
    STRING_STEPS,
    as_string,
    convert,
    predicate,
    unify,
    unify_compared,
)
from gscope.queries.analysis.typing.declarations import check_declaration
from gscope.queries.analysis.typing.foreign_functions import instead_of
from gscope.queries.analysis.typing.lookups import ensure_file
from gscope.queries.analysis.typing.time_calls import ROUNDING, to_timestamp
from gscope.queries.catalog.aggregates import AGGREGATES
from gscope.queries.catalog.functions import FUNCTIONS
from gscope.queries.catalog.running import RUNNING
from gscope.queries.catalog.sampling.stateful import STATEFUL
from gscope.queries.catalog.scalar.hashes import HASH_OF
from gscope.queries.catalog.scalar.lookups import LOOKUPS
from gscope.queries.did_you_mean import did_you_mean
from gscope.queries.expressions.expressions import Expression, Literal
from gscope.queries.expressions.types import GsqlType
from gscope.queries.gsql.nodes import BinaryOperator

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from gscope.queries.gsql import nodes

    Builder = Callable[[tuple[Expression, ...], nodes.FunctionCall], Expression]

_INT, _FLOAT, _STRING, _IP = GsqlType.INT, GsqlType.FLOAT, GsqlType.STRING, GsqlType.IP


_WHERE_FUNCTIONS_ARE = (
    "`gscope schema --functions` lists the functions; --udf FILE adds those of a Python file"
)


def scalar_builder(node: nodes.FunctionCall) -> Builder:
    """Return what builds the call of a scalar function or predicate from its arguments.

    Raises:
        ResolveError: there is no function of this name.
        TypeMismatchError: a scalar function is called as an aggregate.
    """
    builder = BUILDERS.get(node.name.lower())
    if builder is not None and node.filter is not None:
        message = f"{node.name} is not an aggregate: it takes no FILTER"
        remedy = "write if_else(SYN = 1, x, NULL), or FILTER behind the aggregate"
        raise TypeMismatchError(message, position=node.filter.position, remedy=remedy)
    if builder is not None and not (node.star or node.distinct):
        return builder
    if builder is not None:
        message = f"{node.name} is not an aggregate: it takes neither * nor DISTINCT"
        raise TypeMismatchError(message, position=node.position)
    message = f"unknown function {node.name}"
    known = (*BUILDERS, *AGGREGATES, *RUNNING, *STATEFUL)
    remedy = instead_of(node) or did_you_mean(node.name, known) or _WHERE_FUNCTIONS_ARE
    raise ResolveError(message, position=node.position, remedy=remedy)


def catalog_builder(function: str, defaults: tuple[Literal, ...] = ()) -> Builder:
    """Return the builder of a plain catalog function; ``defaults`` fill its last parameters."""

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


def _lookup(function: str) -> Builder:
    """Return the builder of a function that searches a file, which must be there."""
    plain = catalog_builder(function)

    def build(arguments: tuple[Expression, ...], node: nodes.FunctionCall) -> Expression:
        ensure_file(function, node.position)
        return plain(arguments, node)

    return build


def _declaration(function: str) -> Builder:
    """Return the builder of a declared order, which only fields of packets may have."""
    plain = catalog_builder(function)

    def build(arguments: tuple[Expression, ...], node: nodes.FunctionCall) -> Expression:
        call = plain(arguments, node)
        check_declaration(call, node.name, node.position)
        return call

    return build


def _by_type(choices: dict[GsqlType, str]) -> Builder:
    """Return the builder that chooses the function by the type of the only argument.

    The function "" leaves the argument as it is.
    """

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


def _rounded(arguments: tuple[Expression, ...], node: nodes.FunctionCall) -> Expression:
    """Return ``round(x)``, or ``round(x, n)``: to n decimals, by a factor of ten to the n."""
    if len(arguments) != 2:
        return _TO_NEAREST(arguments, node)
    value, decimals = arguments
    places = decimals.value if isinstance(decimals, Literal) else None
    if decimals.type is not _INT or places not in range(_MOST_DECIMALS + 1):
        message = f"invalid decimals of {node.name}: expected a constant from 0 to {_MOST_DECIMALS}"
        raise TypeMismatchError(message, position=_position(node, 1))
    if value.type is not _FLOAT or not places:
        return _TO_NEAREST((value,), replace(node, args=node.args[:1]))
    factor = Literal(10.0 ** int(places), _FLOAT)
    nearest = apply("round_float", apply("mul_float", value, factor))
    return apply("div_float", nearest, factor)


def _in_net(arguments: tuple[Expression, ...], node: nodes.FunctionCall) -> Expression:
    _check_count(arguments, node, 2, 3)
    return networks.in_network(arguments, node)


def _prefix(arguments: tuple[Expression, ...], node: nodes.FunctionCall) -> Expression:
    if all(isinstance(length, Literal) for length in arguments[1:]):
        return catalog_builder("prefix", (_WHOLE_IPV6,))(arguments, node)
    _check_count(arguments, node, 2, 3)
    return networks.prefix((*arguments, _WHOLE_IPV6)[:3], node)


def _concat(arguments: tuple[Expression, ...], node: nodes.FunctionCall) -> Expression:
    """Return the texts of all arguments, concatenated; NULL is left out."""
    _check_count(arguments, node, 1, None)
    texts = [as_string(a, _position(node, n)) for n, a in enumerate(arguments)]
    present = [apply("coalesce", text, _NOTHING) if text.is_nullable else text for text in texts]
    return reduce(lambda left, right: apply("concat", left, right), present)


def _substr(arguments: tuple[Expression, ...], node: nodes.FunctionCall) -> Expression:
    """Build ``substr(s, first, count)``; from the first byte it is LFTA-safe ``str_truncate``."""
    _check_count(arguments, node, 2, 3)
    first = arguments[1]
    if isinstance(first, Literal) and isinstance(first.value, int) and first.value < 1:
        message = f"{node.name} counts from 1, not from {first.value}"
        remedy = "write str_suffix(s, 4) for the last 4 bytes"
        raise TypeMismatchError(message, position=_position(node, 1), remedy=remedy)
    if len(arguments) == 3 and first == Literal(1, _INT):
        return catalog_builder("str_truncate")((arguments[0], arguments[2]), node)
    return catalog_builder("substr", (_ALL_BYTES,))(arguments, node)


def _nullif(arguments: tuple[Expression, ...], node: nodes.FunctionCall) -> Expression:
    _check_count(arguments, node, 2, 2)
    equal = apply("eq", *unify_compared(arguments, node.position))
    return apply("case", equal, Literal(None, arguments[0].type), arguments[0])


def _mod(arguments: tuple[Expression, ...], node: nodes.FunctionCall) -> Expression:
    _check_count(arguments, node, 2, 2)
    return operators.binary(BinaryOperator.MODULO, arguments[0], arguments[1], node.position)


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
        message = f"expected a constant {where}"
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
_TO_NEAREST = _by_type({_INT: "", _FLOAT: "round_float", GsqlType.BOOL: "bool_to_int"})
_MOST_DECIMALS = 15
_WHOLE_IPV6 = Literal(128, _INT)
_ALL_BYTES = Literal(1 << 62, _INT)
_NOTHING = Literal(b"", _STRING)
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
    **{name: _lookup(name) for name in LOOKUPS},
    **{name: _declaration(name) for name in ("increasing", "decreasing", "banded")},
    **{name: _variadic(name) for name in ("coalesce", "min_of", "max_of")},
    **dict.fromkeys(("int", "uint", "ushort", "llong", "ullong"), _TO_INT),
    **dict.fromkeys(("timestamp", "timeval"), _TO_TIMESTAMP),
    **{
        name: _by_type({_INT: "", _FLOAT: f"{name}_float", GsqlType.BOOL: "bool_to_int"})
        for name in ("floor", "ceil")
    },
    "round": _rounded,
    "abs": _by_type({_INT: "abs_int", _FLOAT: "abs_float", GsqlType.BOOL: "bool_to_int"}),
    "bool": _by_type({GsqlType.BOOL: "", _INT: "int_to_bool"}),
    "float": _by_type(
        {
            _FLOAT: "",
            _INT: "int_to_float",
            GsqlType.BOOL: "bool_to_int int_to_float",
        }
    ),
    "string": _by_type(STRING_STEPS),
    **ROUNDING,
    "to_timestamp": to_timestamp,
    "strtoip": catalog_builder("string_to_ip"),
    "ipv4": _by_type({_IP: "ip_to_int"}),
    "prefix": _prefix,
    "community_id": catalog_builder("community_id", (_NO_SEED,)),
    "in_net": _in_net,
    "h": _by_type(HASH_OF),
    "if_else": _if_else,
    "concat": _concat,
    "substr": _substr,
    "substring": _substr,
    "nullif": _nullif,
    "greatest": _variadic("max_of"),
    "umax": _variadic("max_of"),
    "least": _variadic("min_of"),
    "mod": _mod,
}
