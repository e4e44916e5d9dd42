"""Fields of application-layer messages, read from payloads: DNS, HTTP, TLS.

This module holds only their types and facts. Their meaning is in ``engine/functions/``, which may
use dpkt; they run on Spark, over the first bytes of the payloads that an LFTA ships. They never
fail: they return NULL, and count the payloads that could not be read.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from gscope.errors import EngineError
from gscope.queries.catalog.scalar.entry import FunctionEntry, Parameter, always
from gscope.queries.expressions.types import GsqlType

if TYPE_CHECKING:
    from collections.abc import Callable

    from gscope.queries.expressions.expressions import Value

_COST = 2000

SEGMENT_BYTES = 1500
"""A message sent in one packet is no longer than the payload of an Ethernet frame."""


def _refuse(name: str) -> Callable[..., Value]:
    def evaluate(*_: Value) -> Value:
        message = f"{name} is computed by the HFTA job alone"
        raise EngineError(message)

    return evaluate


def _entry(name: str, result: GsqlType, needs_bytes: int) -> FunctionEntry:
    return FunctionEntry(
        name,
        (Parameter(GsqlType.STRING),),
        result,
        _refuse(name),
        makes_null=always,
        cost=_COST,
        is_lfta_safe=False,
        is_high_only=True,
        needs_bytes=needs_bytes,
    )


_FUNCTIONS = (
    _entry("dns_id", GsqlType.INT, SEGMENT_BYTES),
    _entry("dns_opcode", GsqlType.INT, SEGMENT_BYTES),
    _entry("dns_qname", GsqlType.STRING, SEGMENT_BYTES),
    _entry("dns_qtype", GsqlType.INT, SEGMENT_BYTES),
    _entry("dns_qclass", GsqlType.INT, SEGMENT_BYTES),
    _entry("dns_rcode", GsqlType.INT, SEGMENT_BYTES),
    _entry("dns_answers", GsqlType.INT, SEGMENT_BYTES),
    _entry("dns_is_response", GsqlType.BOOL, SEGMENT_BYTES),
    _entry("dns_authoritative", GsqlType.BOOL, SEGMENT_BYTES),
    _entry("dns_truncated", GsqlType.BOOL, SEGMENT_BYTES),
    _entry("dns_address", GsqlType.IP, SEGMENT_BYTES),
    _entry("http_host", GsqlType.STRING, SEGMENT_BYTES),
    _entry("http_method", GsqlType.STRING, SEGMENT_BYTES),
    _entry("http_path", GsqlType.STRING, SEGMENT_BYTES),
    _entry("tls_sni", GsqlType.STRING, SEGMENT_BYTES),
)
APPLICATION = {entry.name: entry for entry in _FUNCTIONS}
