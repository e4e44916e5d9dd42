"""Protocols above TCP and UDP: DNS, HTTP and TLS, with the fields that functions read.

Their packets are chosen by what an LFTA can test: ports and the first bytes of the payload. A query
file may define a protocol of the same name, which then takes the place of the one here.
"""

from __future__ import annotations

from functools import reduce
from typing import TYPE_CHECKING

from gscope.queries.catalog.evaluate import call
from gscope.queries.catalog.protocols import PROTOCOLS, Protocol, ProtocolField
from gscope.queries.expressions.expressions import Literal, PacketField
from gscope.queries.expressions.types import VARYING, GsqlType

if TYPE_CHECKING:
    from gscope.queries.expressions.expressions import Expression

_INT, _STRING = GsqlType.INT, GsqlType.STRING
_DATA = PacketField("data", _STRING, is_nullable=True)
_METHODS = ("GET", "POST", "HEAD", "PUT", "DELETE", "OPTIONS", "CONNECT", "PATCH", "TRACE")
_Row = tuple[str, str, str]

_DNS: tuple[_Row, ...] = (
    ("qname", "dns_qname", "name in the first question, in lower case"),
    ("qtype", "dns_qtype", "type in the first question: 1 for A, 28 for AAAA"),
    ("qclass", "dns_qclass", "class in the first question: 1 for IN"),
    ("query_id", "dns_id", "ID of the message, shared by query and response"),
    ("opcode", "dns_opcode", "OPCODE: 0 QUERY, 4 NOTIFY, 5 UPDATE"),
    ("response", "dns_is_response", "whether the message is a response"),
    ("rcode", "dns_rcode", "RCODE of a response: 0 NOERROR, 3 NXDOMAIN; NULL in a query"),
    ("answers", "dns_answers", "number of answer records"),
    ("authoritative", "dns_authoritative", "whether a response is authoritative; NULL in a query"),
    ("truncated", "dns_truncated", "whether a response is truncated; NULL in a query"),
    ("address", "dns_address", "address in the first A or AAAA record of a response"),
)
_HTTP: tuple[_Row, ...] = (
    ("method", "http_method", "method of a request; NULL in a response"),
    ("host", "http_host", "host of a request, in lower case, without the port; NULL in a response"),
    ("path", "http_path", "path of a request, without the query string; NULL in a response"),
)
_TLS: tuple[_Row, ...] = (
    ("server_name", "tls_sni", "server name of a ClientHello, in lower case; NULL in others"),
)


def _equals(name: str, value: int) -> Expression:
    return call("eq", PacketField(name, _INT, is_nullable=True), Literal(value, _INT))


def _any(*tests: Expression) -> Expression:
    return reduce(lambda left, right: call("or", left, right), tests)


def _all(*tests: Expression) -> Expression:
    return reduce(lambda left, right: call("and", left, right), tests)


def _begins(text: str) -> Expression:
    return call("str_match_start", _DATA, Literal(text.encode(), _STRING))


def _byte(offset: int, value: int) -> Expression:
    return call("byte_match_offset", Literal(offset, _INT), Literal(value, _INT), _DATA)


def _protocol(
    name: str, parent: str, membership: Expression, description: str, rows: tuple[_Row, ...]
) -> Protocol:
    above = PROTOCOLS[parent]
    own = tuple(
        ProtocolField(field, call(function, _DATA), VARYING, shown)
        for field, function, shown in rows
    )
    return Protocol(name, parent, above.fields + own, membership, description, above.inner)


def _builtin() -> dict[str, Protocol]:
    port_53 = _any(_equals("srcPort", 53), _equals("destPort", 53))
    has_data = call("gt", PacketField("data_length", _INT, True), Literal(0, _INT))
    messages = _any(*(_begins(f"{method} ") for method in _METHODS), _begins("HTTP/1."))
    records = _any(*(_byte(0, kind) for kind in range(20, 24)))
    is_tcp = _equals("protocol", 6)
    carried = _any(is_tcp, _equals("protocol", 17))
    return {
        "DNS": _protocol(
            "DNS", "IP", _all(carried, port_53, has_data), "UDP and TCP with data on port 53", _DNS
        ),
        "HTTP": _protocol(
            "HTTP",
            "TCP",
            _all(is_tcp, messages),
            "TCP segments that begin an HTTP/1 request or response",
            _HTTP,
        ),
        "TLS": _protocol(
            "TLS",
            "TCP",
            _all(is_tcp, records, _byte(1, 3)),
            "TCP segments that begin with a TLS record",
            _TLS,
        ),
    }


APPLICATION_PROTOCOLS: dict[str, Protocol] = _builtin()
"""The protocols by name."""
