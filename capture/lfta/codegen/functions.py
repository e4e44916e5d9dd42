"""Catalog functions as code, one table entry each; tests compare each with its ``evaluate``."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from gscope.capture.lfta.codegen.choices import CHOICES
from gscope.capture.lfta.codegen.comparisons import COMPARISONS, lower_in_table
from gscope.capture.lfta.codegen.scope import IPV4_MAPPED, Lowered, Scope
from gscope.capture.lfta.codegen.xxh64 import address_words, signed, xxh64
from gscope.queries.catalog.scalar.addresses import PRIVATE_NETWORKS, covers_ipv4
from gscope.queries.catalog.scalar.hashes import SEED
from gscope.queries.expressions.expressions import Call
from gscope.queries.expressions.types import GsqlType

if TYPE_CHECKING:
    from collections.abc import Sequence

Lowering = Callable[[Scope, Call, "Sequence[Lowered]"], Lowered]
"""Code for a call whose arguments have been computed; not all of them are constants."""

_LOW_32 = (1 << 32) - 1

_ZERO_IS_NULL = "{1} == 0"
_NEGATIVE_IS_NULL = "{1} < 0"
_TEMPLATES: dict[str, tuple[str, str | None]] = {
    "add_int": ("wrap_add({0}, {1})", None),
    "sub_int": ("wrap_sub({0}, {1})", None),
    "mul_int": ("wrap_mul({0}, {1})", None),
    "neg_int": ("wrap_neg({0})", None),
    "abs_int": ("wrap_abs({0})", None),
    "idiv_int": ("sdiv({0}, {1})", _ZERO_IS_NULL),
    "floor_div": ("floor_divide({0}, {1})", _ZERO_IS_NULL),
    "mod_int": ("srem({0}, {1})", _ZERO_IS_NULL),
    "bit_and": ("{0} & {1}", None),
    "bit_or": ("{0} | {1}", None),
    "bit_xor": ("{0} ^ {1}", None),
    "bit_not": ("~{0}", None),
    "shl": ("shift_left({0}, {1})", _NEGATIVE_IS_NULL),
    "shr": ("shift_right({0}, {1})", _NEGATIVE_IS_NULL),
    "add_float": ("{0} + {1}", None),
    "sub_float": ("{0} - {1}", None),
    "mul_float": ("{0} * {1}", None),
    "neg_float": ("-{0}", None),
    "abs_float": ("abs({0})", None),
    "div_float": ("{0} / {1}", _ZERO_IS_NULL),
    "mod_float": ("float_remainder({0}, {1})", _ZERO_IS_NULL),
    "floor_float": ("np.floor({0}) + 0.0", None),
    "ceil_float": ("np.ceil({0}) + 0.0", None),
    "round_float": ("round_half_away({0})", None),
    "int_to_float": ("float({0})", None),
    "float_to_int": ("truncated({0})", "not fits_int({0})"),
    "bool_to_int": ("1 if {0} else 0", None),
    "int_to_bool": ("{0} != 0", None),
    "not": ("not {0}", None),
    "ts_diff": ("wrap_sub({0}, {1}) / 1e6", None),
    "ts_add": ("wrap_add({0}, {1})", None),
    "ts_sub": ("wrap_sub({0}, {1})", None),
    "ts_idiv": ("sdiv({0}, {1})", _ZERO_IS_NULL),
    "byte_match_offset": ("byte_matches({0}, {1}, {2}, {3})", None),
    "str_match_start": ("starts_with({0}, {1}, {2}, {3})", None),
    "str_exists_substr": ("contains({0}, {1}, {2}, {3})", None),
}
"""Strict functions: code of the value, and of when it is NULL although no argument is. Numbers
count the parts of all arguments.

Integers wrap by the ``wrap_`` intrinsics: numba's own operators let LLVM assume that nothing
overflows.
"""

_UNCHANGED = (
    *("ts_to_int", "int_to_ts", "non_temporal"),
    *("increasing", "decreasing", "banded"),
)


def _template(scope: Scope, call: Call, arguments: Sequence[Lowered]) -> Lowered:
    value, null = _TEMPLATES[call.function]
    parts = [part for argument in arguments for part in argument.parts]
    makes_null = None
    if null is not None and call.is_nullable and not _is_harmless(null, arguments):
        makes_null = scope.value(null.format(*parts))
    return Lowered(
        call.type,
        (scope.value(value.format(*parts)),),
        scope.either(*(argument.null for argument in arguments), makes_null),
    )


def _is_harmless(null: str, arguments: Sequence[Lowered]) -> bool:
    """Return whether the last argument is a constant for which ``null`` does not hold."""
    last = arguments[-1].literal if arguments[-1].is_literal else None
    if null == _NEGATIVE_IS_NULL:
        return isinstance(last, int) and last >= 0
    return null == _ZERO_IS_NULL and bool(last)


def _same(_scope: Scope, call: Call, arguments: Sequence[Lowered]) -> Lowered:
    only = arguments[0]
    return Lowered(call.type, only.parts, only.null, is_ipv4=only.is_ipv4)


def _is_ipv4(scope: Scope, address: Lowered) -> str:
    if address.is_ipv4:
        return "True"
    high, low = address.parts
    return scope.value(f"({high} == 0) & (lshr({low}, 32) == 65535)")


def _ip_to_int(scope: Scope, call: Call, arguments: Sequence[Lowered]) -> Lowered:
    (address,) = arguments
    value = scope.value(f"{address.parts[1]} & {_LOW_32}")
    not_ipv4 = None if address.is_ipv4 else scope.value(f"not {_is_ipv4(scope, address)}")
    return Lowered(call.type, (value,), scope.either(address.null, not_ipv4))


def _int_to_ip(scope: Scope, call: Call, arguments: Sequence[Lowered]) -> Lowered:
    (number,) = arguments
    is_too_large = scope.value(f"lshr({number.code}, 32) != 0")
    low = scope.value(f"{IPV4_MAPPED} | {number.code}")
    return Lowered(call.type, ("0", low), scope.either(number.null, is_too_large), is_ipv4=True)


def _ip_mask(scope: Scope, call: Call, arguments: Sequence[Lowered]) -> Lowered:
    address, mask = arguments
    high, low = address.parts
    bits = mask.code
    as_ipv4 = scope.value(f"{low} & ({bits} | {~_LOW_32})")
    if not address.is_ipv4:
        is_mapped = scope.value(f"({high} == 0) & (lshr({low}, 32) == 65534)")
        own = scope.value(f"({low} ^ {1 << 32}) if {is_mapped} else {low}")
        masked = scope.value(f"ipv6_low({high}, {own} & {bits})")
        as_ipv6 = scope.value(f"({as_ipv4}) if lshr({bits}, 32) == 0 else ({masked})")
        as_ipv4 = scope.value(f"{as_ipv4} if {_is_ipv4(scope, address)} else {as_ipv6}")
    null = scope.either(address.null, mask.null)
    return Lowered(call.type, (high, as_ipv4), null, is_ipv4=address.is_ipv4)


def _prefix(scope: Scope, call: Call, arguments: Sequence[Lowered]) -> Lowered:
    address, bits4, bits6 = arguments
    high, low = address.parts
    mask4 = _prefix_masks(96 + _number(bits4))[1]
    if address.is_ipv4:
        parts = (high, scope.value(f"{low} & {mask4}"))
        return Lowered(call.type, parts, address.null, is_ipv4=True)
    high6, low6 = _prefix_masks(_number(bits6))
    is_ipv4 = _is_ipv4(scope, address)
    parts = (
        scope.value(f"{high} & (-1 if {is_ipv4} else {high6})"),
        scope.value(f"{low} & ({mask4} if {is_ipv4} else {low6})"),
    )
    return Lowered(call.type, parts, address.null)


def _number(literal: Lowered) -> int:
    assert isinstance(literal.literal, int)
    return literal.literal


def _prefix_masks(bits: int) -> tuple[int, int]:
    """Return both halves of a mask of ``bits`` leading ones, as signed numbers."""
    mask = ((1 << bits) - 1) << (128 - bits)
    return signed(mask >> 64), signed(mask & (2**64 - 1))


def _in_net(scope: Scope, call: Call, arguments: Sequence[Lowered]) -> Lowered:
    address, network, bits = arguments
    inside = _in_network(scope, address, _number(network), _number(bits))
    return Lowered(call.type, (inside,), address.null)


def _in_subnet(scope: Scope, call: Call, arguments: Sequence[Lowered]) -> Lowered:
    address, network, length = arguments
    bits = scope.value(f"family_bits({', '.join(network.parts)}, {length.code})")
    is_inside = scope.value(f"in_subnet({', '.join((*address.parts, *network.parts))}, {bits})")
    is_no_length = scope.value(f"{bits} < 0")
    null = scope.either(address.null, network.null, length.null, is_no_length)
    return Lowered(call.type, (is_inside,), null)


def _prefix_of(scope: Scope, call: Call, arguments: Sequence[Lowered]) -> Lowered:
    address, bits4, bits6 = arguments
    high, low = address.parts
    length = scope.value(f"{bits4.code} if {_is_ipv4(scope, address)} else {bits6.code}")
    bits = scope.value(f"family_bits({high}, {low}, {length})")
    parts = (
        scope.value(f"{high} & leading_ones({bits})"),
        scope.value(f"{low} & leading_ones({bits} - 64)"),
    )
    null = scope.either(address.null, bits4.null, bits6.null, scope.value(f"{bits} < 0"))
    return Lowered(call.type, parts, null, is_ipv4=address.is_ipv4)


def _in_network(scope: Scope, address: Lowered, network: int, bits: int) -> str:
    halves = zip(
        address.parts, (network >> 64, network & (2**64 - 1)), _prefix_masks(bits), strict=True
    )
    tests = [
        f"(({part} & {mask}) == {signed(half & (mask % 2**64))})"
        for part, half, mask in halves
        if mask
    ]
    if covers_ipv4(network, bits):
        tests.append(f"(not {_is_ipv4(scope, address)})")
    return scope.value(" & ".join(tests)) if tests else "True"


def _is_private(scope: Scope, call: Call, arguments: Sequence[Lowered]) -> Lowered:
    (address,) = arguments
    tests = [_in_network(scope, address, *network) for network in PRIVATE_NETWORKS]
    return Lowered(call.type, (scope.value(" | ".join(tests)),), address.null)


def _length(_scope: Scope, call: Call, arguments: Sequence[Lowered]) -> Lowered:
    return Lowered(call.type, (arguments[0].parts[1],), arguments[0].null)


def _str_truncate(scope: Scope, call: Call, arguments: Sequence[Lowered]) -> Lowered:
    text, count = arguments
    length = scope.value(f"min({text.parts[1]}, max({count.code}, 0))")
    return Lowered(call.type, (text.parts[0], length), scope.either(text.null, count.null))


def _hash(scope: Scope, call: Call, arguments: Sequence[Lowered]) -> Lowered:
    """Return XXH64 of one or two words; see ``catalog/scalar/hashes.py``."""
    (value,) = arguments
    words = address_words(value) if value.type is GsqlType.IP else list(value.parts)
    return Lowered(call.type, (xxh64(scope, words, SEED),), value.null)


LOWERINGS: dict[str, Lowering] = {
    **dict.fromkeys(_TEMPLATES, _template),
    **dict.fromkeys(_UNCHANGED, _same),
    **COMPARISONS,
    **CHOICES,
    "in_table": lower_in_table,
    "ip_to_int": _ip_to_int,
    "int_to_ip": _int_to_ip,
    "ip_mask": _ip_mask,
    "prefix": _prefix,
    "prefix_of": _prefix_of,
    "in_net": _in_net,
    "in_subnet": _in_subnet,
    "is_private": _is_private,
    "length": _length,
    "str_truncate": _str_truncate,
    **dict.fromkeys(("hash_int", "hash_mac", "hash_timestamp", "hash_interval", "hash_ip"), _hash),
}
"""Every function that the catalog calls LFTA-safe."""
