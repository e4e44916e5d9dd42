"""Packet fields in a kernel: the decoder's snippets, narrowed to what a variant knows."""

from __future__ import annotations

from typing import TYPE_CHECKING

from gscope.capture.lfta.codegen.scope import Lowered, null_literal
from gscope.capture.packet.fields import FIELDS, MEMBERS, Code, PacketFieldCode
from gscope.errors import UnsupportedError
from gscope.queries.expressions.types import GsqlType

if TYPE_CHECKING:
    from gscope.capture.lfta.codegen.scope import Scope
    from gscope.queries.expressions.expressions import PacketField


def lower_field(scope: Scope, field: PacketField) -> Lowered:
    """Return the value of a packet field.

    Raises:
        UnsupportedError: the decoder does not know the field.
    """
    if field.name not in FIELDS:
        message = f"the packet decoder has no field {field.name!r}"
        raise UnsupportedError(message)
    source = FIELDS[field.name]
    version = scope.variant.version
    if field.name == "ipversion" and version:
        return Lowered(field.type, (str(version),), is_literal=True, literal=version)
    if source.is_inner and source.is_versioned:
        return _lower_by_inner_version(scope, field, source)
    member = _member(source, version)
    code = source.v6 if version == 6 else source.v4
    if source.is_versioned and not version:
        code = None
    if member is False or code is None:
        return null_literal(field.type)
    return _lower_code(scope, field, code, None if member is True else member)


def _member(source: PacketFieldCode, version: int) -> bool | str:
    """Return whether packets of a version (0: no IP) have the field: yes, no, or the condition."""
    if source.member is None:
        return True
    if source.is_inner:
        return source.member
    if source.member in (MEMBERS["ARP"], MEMBERS["FLOW"]):
        return False if version else source.member
    if not version:
        return False
    versions = {"version != 0": True, f"version == {version}": True}
    if source.member.startswith("version =="):
        return source.member in versions
    return versions.get(source.member, source.member)


def _lower_code(scope: Scope, field: PacketField, code: Code, member: str | None) -> Lowered:
    is_string = field.type is GsqlType.STRING
    conditions = []
    # The analysis promises a value if ``is_nullable`` is not set. A string is read through its
    # address, though, so a length other than zero must be real whatever was promised.
    if field.is_nullable or is_string:
        conditions += [] if member is None else [f"not ({member})"]
        conditions += [] if code.null is None else [_boolean(code.null)]
    scope.bind((*code.value, *conditions))
    null = scope.either(*(scope.value(condition) for condition in conditions))
    parts = [scope.value(text) for text in code.value]
    if is_string and null is not None:
        parts[1] = scope.value(f"0 if {null} else {parts[1]}")
    return Lowered(
        field.type,
        tuple(parts),
        null if field.is_nullable else None,
        is_ipv4=_is_mapped(field, code),
    )


def _is_mapped(field: PacketField, code: Code) -> bool:
    return field.type is GsqlType.IP and code.value[0] == "0"


def _boolean(condition: str) -> str:
    """Return ``condition`` as a value; ``or`` between comparisons would be a chain of branches."""
    terms = condition.split(" or ")
    return condition if len(terms) == 1 else " | ".join(f"({term})" for term in terms)


def _lower_by_inner_version(scope: Scope, field: PacketField, source: PacketFieldCode) -> Lowered:
    """Return a field of the inner packet, lowered for both versions and selected."""
    member = source.member or "True"
    scope.bind(("inner_version", member))
    halves = [
        _lower_code(scope, field, code, None) if code else null_literal(field.type)
        for code in (source.v4, source.v6)
    ]
    is_v4 = scope.value("inner_version == 4")
    parts = tuple(
        scope.value(f"{a} if {is_v4} else {b}")
        for a, b in zip(*(h.parts for h in halves), strict=True)
    )
    missing = scope.value(f"not ({member})")
    nulls = [half.null or "False" for half in halves]
    chosen = (
        None
        if nulls == ["False", "False"]
        else scope.value(f"{nulls[0]} if {is_v4} else {nulls[1]}")
    )
    null = scope.either(missing, chosen) if field.is_nullable else None
    return Lowered(field.type, parts, null)
