"""Names that other tools give to the fields of packets, and fields of protocols above the input's.

``src_ip`` is another name of ``srcIP``, ``tcp.dstport`` that of Wireshark for ``destPort`` of TCP.
Packets that are not of the field's protocol have NULL in it.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from gscope.errors import ResolveError
from gscope.queries.analysis.typing.constants import apply
from gscope.queries.catalog.application_protocols import APPLICATION_PROTOCOLS
from gscope.queries.catalog.field_names import EITHER, INSTEAD, SYNONYMS, WIRESHARK
from gscope.queries.catalog.protocols import FIELD_ALIASES, PROTOCOLS
from gscope.queries.expressions.expressions import Literal, PacketField

if TYPE_CHECKING:
    from gscope.errors import Position
    from gscope.queries.catalog.protocols import Protocol
    from gscope.queries.expressions.expressions import Expression

_KNOWN = {**PROTOCOLS, **APPLICATION_PROTOCOLS}
_SIGNS = {
    "IP": "srcIP",
    "TCP": "SYN",
    "UDP": "udp_length",
    "ICMP": "icmp_id",
    "ARP": "op",
    "DNS": "qname",
    "HTTP": "method",
    "TLS": "server_name",
}
"""A field that the packets of a protocol have, and no others."""

_OTHERS = {
    # protocol: those that no packet has as well
    "IP": {"ARP"},
    "ARP": {"IP"},
    "TCP": {"UDP", "ICMP", "ARP"},
    "UDP": {"TCP", "ICMP", "ARP"},
    "ICMP": {"TCP", "UDP", "ARP"},
    "DNS": {"ICMP", "ARP"},
    "HTTP": {"UDP", "ICMP", "ARP"},
    "TLS": {"UDP", "ICMP", "ARP"},
}
_OF_ARP = {
    "srcip": "senderIP",
    "destip": "targetIP",
    "srcmac": "senderMAC",
    "destmac": "targetMAC",
    "type": "op",
    "protocol": "ethertype",
}
"""Fields of IP, and those of ARP that come closest."""

_SHARED = frozenset({"srcPort", "destPort", "data_length", "data"})
"""Fields that packets of other protocols have, too."""


def foreign_field(protocol: Protocol, name: str) -> Expression | None:
    """Return what another tool's name of a field stands for in packets of ``protocol``, else None.

    That is a field by another name, or one that only some of these packets have.
    """
    lower = name.lower()
    if lower in WIRESHARK:
        return _of_protocol(protocol, *WIRESHARK[lower])
    own = protocol.field(SYNONYMS.get(lower, name))
    if own is not None:
        return own.expression
    return _of_some(protocol, SYNONYMS.get(lower, name))


def written_for(protocol: Protocol, name: str) -> str:
    """Return the remedy for a name that packets of ``protocol`` do not have, "" if unknown.

    That is one that other tools have, and GSQL in another form, or a field of other packets.
    """
    lower = name.lower()
    if lower in INSTEAD:
        return f"write {INSTEAD[lower]}"
    if lower in EITHER:
        one, other = EITHER[lower]
        return f"write {one} or {other}; beside = and IN, {name} stands for either of them"
    if lower in WIRESHARK:
        wanted, field = WIRESHARK[lower]
        return f"{name} is {field} of {wanted}, which these packets never are: write FROM {wanted}"
    if lower.startswith("tcp.analysis."):
        return "count_dups(sequence_number) counts repeated segments; see also -q retransmissions"
    meant = SYNONYMS.get(lower, FIELD_ALIASES.get(name, name))
    if _is(protocol, "ARP") and meant.lower() in _OF_ARP:
        return f"write {_OF_ARP[meant.lower()]}; ARP has no IP header"
    for base in ("TCP", "UDP", "ICMP", "ARP", "IP"):
        fields = {f.name.lower() for f in PROTOCOLS[base].fields}
        if meant.lower() in fields and not _may_be(protocol, base):
            return f"{name} is a field of {base}, which these packets never are: write FROM {base}"
    return ""


def check_qualified(protocol: Protocol, qualifier: str, field: str, position: Position) -> None:
    """Refuse ``tcp.len`` of ``FROM tcp``, which would not be what Wireshark calls so.

    Raises:
        ResolveError: the name is one of Wireshark for another field.
    """
    full = f"{qualifier}.{field}"
    _, meant = WIRESHARK.get(full, ("", ""))
    same = protocol.field(field) or protocol.field(SYNONYMS.get(field.lower(), field))
    if meant and same is not None and protocol.field(meant) not in (None, same):
        message = f"{full} may be {same.name} of the packet, or {meant}, as in Wireshark"
        remedy = f"write {meant}; or {same.name} for: {same.description}"
        raise ResolveError(message, position=position, remedy=remedy)


def _of_protocol(protocol: Protocol, wanted: str, field: str) -> Expression | None:
    """Return ``field`` of packets of the protocol ``wanted``, NULL of others."""
    base = {"IPV6": "IP", "ICMPV6": "ICMP"}.get(wanted, wanted)
    if not _may_be(protocol, base):
        return None
    known = _KNOWN[base].field(field)
    assert known is not None  # the tables name fields that exist
    own = protocol.field(field) if _is(protocol, base) else None
    expression = (own or known).expression
    if wanted in {"IPV6", "ICMPV6"}:
        is_certain = (label := protocol.field("flow_label")) and not label.expression.is_nullable
        return expression if is_certain else _guarded(PROTOCOLS["IPV6"], expression)
    if own is not None:
        return expression
    if base in APPLICATION_PROTOCOLS or field in _SHARED:
        return _guarded(_KNOWN[base], expression)
    return _nullable(expression)


def _of_some(protocol: Protocol, name: str) -> Expression | None:
    """Return a field that only some packets of ``protocol`` have, such as SYN of IP."""
    for base in ("IP", "TCP", "UDP", "ICMP", "ARP"):
        if _may_be(protocol, base) and not _is(protocol, base):
            entry = PROTOCOLS[base]
            by_case = {f.name.lower(): f.name for f in entry.fields}
            known = entry.field(name) or entry.field(by_case.get(name.lower(), name))
            if known is not None:
                return _nullable(known.expression)
    return None


def _is(protocol: Protocol, base: str) -> bool:
    """Return whether all packets of ``protocol`` are of the built-in protocol ``base``."""
    return (
        base == "PKT"
        or protocol.field(_SIGNS[base]) == _KNOWN[base].field(_SIGNS[base])
        or (base in PROTOCOLS and protocol.field(_SIGNS[base]) is not None)
    )


def _may_be(protocol: Protocol, base: str) -> bool:
    """Return whether some packets of ``protocol`` may be of the built-in protocol ``base``."""
    if base == "PKT":
        return True
    return not any(_is(protocol, other) for other in _OTHERS[base] if other != base)


def _nullable(expression: Expression) -> Expression:
    if isinstance(expression, PacketField):
        return replace(expression, is_nullable=True)
    return expression


def _guarded(protocol: Protocol, expression: Expression) -> Expression:
    """Return ``expression`` of packets of ``protocol``, NULL of others."""
    if protocol.membership is None:
        return expression
    return apply("case", protocol.membership, _nullable(expression), Literal(None, expression.type))
