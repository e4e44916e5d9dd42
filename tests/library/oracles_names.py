"""What tshark's dissectors of DNS, HTTP and TLS show: queries about names."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tests.library.oracles_ip import Values, grouped
from tests.library.oracles_tcp import lives, tcp

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from tests.library.tshark import Packet


def _answers(packets: Sequence[Packet]) -> list[Packet]:
    """Return the DNS answers that a server sends in a datagram from port 53."""
    return [
        p for p in packets if p.is_udp and p.ports[0] == 53 and p.number_of("dns.flags.response")
    ]


def _name(packet: Packet) -> str | None:
    name = packet.text("dns.qry.name")
    return None if name is None else "." if name == "<Root>" else name.lower()


def dns_failures(packets: Sequence[Packet]) -> Iterator[Values]:
    failed = [p for p in _answers(packets) if p.number_of("dns.flags.rcode")]
    for key, group in grouped(
        failed, lambda p: (p.minute, p.source, _name(p), p.number_of("dns.flags.rcode"))
    ):
        yield *key, len(group), len({p.target for p in group})


def dns_names(packets: Sequence[Packet]) -> Iterator[Values]:
    questions = [
        p
        for p in packets
        if p.is_udp
        and p.ports[1] == 53
        and p.text("dns.flags.response")
        and not p.number_of("dns.flags.response")
        and _name(p)
    ]
    for key, group in grouped(
        questions, lambda p: (p.minute, _name(p), p.number_of("dns.qry.type"))
    ):
        yield *key, len(group), len({p.source for p in group})


def slow_dns(packets: Sequence[Packet]) -> Iterator[Values]:
    """From the first question to the first answer of each lookup."""

    def lookup(p: Packet) -> Values:
        ends = p.way_back if p.number_of("dns.flags.response") else p.flow
        return *ends, p.number_of("dns.id"), _name(p), p.text("dns.qry.type")

    messages = [p for p in packets if p.is_udp and 53 in p.ports and p.text("dns.id")]
    for life in lives(messages, lookup):
        question = next((p for p in life if not p.number_of("dns.flags.response")), None)
        answer = next((p for p in life if p.number_of("dns.flags.response")), None)
        if question and answer:
            delay = (answer.time_ns - question.time_ns) / 1e6
            if delay > 100:
                ends = (answer.source, answer.target)
                yield answer.minute, *ends, _name(answer), answer.number_of("dns.qry.type"), delay


def slow_answers(packets: Sequence[Packet]) -> Iterator[Values]:
    """Yield the same by tshark, which finds the question of an answer itself."""
    for p in _answers(packets):
        delay = float(p.text("dns.time") or 0) * 1000
        if delay > 100:
            ends = (p.source, p.target)
            yield p.minute, *ends, _name(p), p.number_of("dns.qry.type"), delay


def http_hosts(packets: Sequence[Packet]) -> Iterator[Values]:
    requests = [p for p in tcp(packets) if p.text("http.request.method") and p.text("http.host")]

    def host(packet: Packet) -> str:
        return (packet.text("http.host") or "").lower().partition(":")[0]

    for key, group in grouped(
        requests, lambda p: (p.minute, host(p), p.text("http.request.method"))
    ):
        yield *key, len(group), len({p.source for p in group})


def tls_names(packets: Sequence[Packet]) -> Iterator[Values]:
    field = "tls.handshake.extensions_server_name"
    hellos = [p for p in tcp(packets) if p.text(field)]
    for (minute, name, *ends), group in grouped(
        hellos, lambda p: (p.minute, (p.text(field) or "").lower(), p.source, p.target)
    ):
        yield minute, name, *ends, len(group)


def new_tls_names(packets: Sequence[Packet]) -> Iterator[Values]:
    field = "tls.handshake.extensions_server_name"
    hellos = [p for p in tcp(packets) if p.text(field)]
    groups = dict(grouped(hellos, lambda p: (p.time // 3600, (p.text(field) or "").lower())))
    for (hour, name), group in groups.items():
        assert isinstance(hour, int)
        if (hour - 1, name) not in groups:
            yield hour, name, len(group), len({p.source for p in group})


def dns_fields(packets: Sequence[Packet]) -> Iterator[Values]:
    """Yield the fields of each DNS message; of addresses that of the first record asked for."""
    for p in packets:
        if not (p.is_udp and 53 in p.ports and p.text("dns.id")):
            continue
        is_response = bool(p.number_of("dns.flags.response"))
        kind = p.text("dns.qry.type")
        records = {"1": "dns.a", "28": "dns.aaaa"}.get(kind or "", "dns.a")
        has_address = kind in ("1", "28") and p.number_of("dns.count.answers") > 0
        yield (
            *(p.time, p.source, p.ports[0], p.number_of("dns.id"), p.number_of("dns.flags.opcode")),
            *(_name(p), kind, None if kind is None else p.number_of("dns.qry.class")),
            str(is_response).lower(),
            _truth(p, "dns.flags.authoritative") if is_response else None,
            _truth(p, "dns.flags.truncated"),
            p.number_of("dns.flags.rcode") if is_response else None,
            p.number_of("dns.count.answers"),
            p.text(records) if has_address else None,
        )


def _truth(packet: Packet, field: str) -> str:
    return str(bool(packet.number_of(field))).lower()
