"""The application-layer functions by their catalog names, made safe."""

from __future__ import annotations

from typing import TYPE_CHECKING

from gscope.engine.functions import dns, http, tls
from gscope.engine.functions.base import ForeignPayload, Outcome
from gscope.queries.catalog.functions import FUNCTIONS

if TYPE_CHECKING:
    from gscope.engine.functions.base import Reader
    from gscope.queries.expressions.expressions import Value

READERS: dict[str, Reader] = {
    "dns_id": dns.message_id,
    "dns_opcode": dns.opcode,
    "dns_qname": dns.qname,
    "dns_qtype": dns.qtype,
    "dns_qclass": dns.qclass,
    "dns_rcode": dns.rcode,
    "dns_answers": dns.answers,
    "dns_is_response": dns.is_response,
    "dns_authoritative": dns.is_authoritative,
    "dns_truncated": dns.is_truncated,
    "dns_address": dns.address,
    "http_host": http.host,
    "http_method": http.method,
    "http_path": http.path,
    "tls_sni": tls.sni,
}
"""Every catalog entry that is ``is_high_only``."""

BEGINNINGS: dict[str, str] = dict.fromkeys(
    ("http_host", "http_method", "http_path"), http.BEGINNING
)
"""Regular expressions: a non-empty payload that does not match is of another protocol.

One test of a whole column finds many of them.
"""


def read(function: str, payload: bytes) -> tuple[Value, Outcome]:
    """Return what ``function`` reads from ``payload``, and what came of it.

    Any bytes are safe: the value is NULL if they cannot be decoded. An empty payload has none.
    """
    if not payload:
        return None, Outcome.READ
    try:
        return READERS[function](payload[: FUNCTIONS[function].needs_bytes]), Outcome.READ
    except ForeignPayload:
        return None, Outcome.FOREIGN
    except Exception:
        return None, Outcome.DAMAGED
