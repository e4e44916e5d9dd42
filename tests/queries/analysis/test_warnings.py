"""Comparisons that hold for no packet get a warning, and all others get none."""

from __future__ import annotations

import pytest
from tests.newcomer.one_liners import one_liners

from gscope.queries.compile import CompileContext, QueryText, compile_queries
from gscope.queries.library.files import library_files


def warnings(text: str, source: str = "query") -> tuple[str, ...]:
    return compile_queries([QueryText(text, source)], CompileContext(())).warnings


@pytest.mark.parametrize(
    ("protocol", "condition", "shown", "remedy"),
    [
        ("TCP", "destPort = 70000", "destPort = 70000", "at most 65535"),
        ("TCP", "port = 70000", "port = 70000", "at most 65535"),
        ("TCP", "srcPort IN (80, 65536)", "srcPort = 65536", "at most 65535"),
        ("IP", "tcp.dstport == 65536", "tcp.dstport = 65536", "at most 65535"),
        ("IP", "ttl > 255", "ttl > 255", "at most 255"),
        ("IP", "255 < ttl", "ttl > 255", "at most 255"),
        ("IP", "protocol = 256", "protocol = 256", "at most 255"),
        ("IP", "ipversion = 5", "ipversion = 5", "always 4 or 6"),
        ("IPV4", "ipversion = 6", "ipversion = 6", "always 4"),
        ("TCP", "SYN = 2", "SYN = 2", "at most 1"),
        ("TCP", "len > 0 AND (flags = 256 OR ACK)", "flags = 256", "at most 255"),
        ("TCP", "protocol = 17", "protocol = 17", "protocol of TCP is always 6"),
        ("UDP", "protocol = 'tcp'", "protocol = 'tcp'", "always 17"),
        ("TCP", "protocol <> 'tcp'", "protocol <> 'tcp'", "always 6"),
        ("Snort", "ACK = 1", "ACK = 1", "always 0"),
        ("IPV6", "srcIP = '10.0.0.1'", "srcIP = '10.0.0.1'", "write FROM IPV4 or FROM IP"),
        ("IPV6", "srcIP IN ('10.0.0.0/8')", "srcIP = '10.0.0.0/8'", "write FROM IPV4"),
        ("IPV4", "dst = 2001:db8::1", "dst = '2001:db8::1'", "write FROM IPV6"),
        ("DNS", "qname = 'WWW.example.org'", "qname = 'WWW.example.org'", "'www.example.org'"),
        ("DNS", "qname LIKE '%.org.'", "qname LIKE '%.org.'", "'%.org'"),
        ("UDP", "dns_qname(data) = 'a.'", "dns_qname(data) = 'a.'", "'a'"),
        ("TLS", "sni = 'A.example'", "sni = 'A.example'", "'a.example'"),
        ("HTTP", "method = 'get'", "method = 'get'", "'GET'"),
    ],
)
def test_what_is_never_true_is_reported(
    protocol: str, condition: str, shown: str, remedy: str
) -> None:
    (found,) = warnings(f"SELECT count(*) FROM {protocol} WHERE {condition}")
    headline, _, marks, advice = found.splitlines()
    assert headline.endswith(f"{shown} is never true")
    assert "^" in marks
    assert remedy in advice


@pytest.mark.parametrize(
    ("protocol", "condition"),
    [
        ("TCP", "destPort = 65535 OR srcPort = 0"),
        ("TCP", "srcPort < 70000 AND ttl <= 255 AND flags <> 256"),
        ("TCP", "protocol = 6 AND SYN = 1 AND sequence_number = 4294967295"),
        ("ICMP", "protocol = 58 OR protocol = 1"),
        ("IP", "srcIP = '10.0.0.1' OR srcIP = '::1'"),
        ("IPV6", "srcIP = '2001:db8::1'"),
        ("DNS", "qname = 'www.example.org' OR qname = '' OR qname LIKE '%.org'"),
        ("HTTP", "method = 'GET' AND host = 'a.example'"),
        ("IP", "len = 100000 AND total_length = 65575"),
        ("TCP", "TCP_data = 'GET'"),
    ],
)
def test_what_may_be_true_is_not_reported(protocol: str, condition: str) -> None:
    assert warnings(f"SELECT count(*) FROM {protocol} WHERE {condition}") == ()


def test_order_by_over_one_row_an_epoch_is_reported_with_what_to_write() -> None:
    text = "SELECT time/60 AS m, count(*) AS n FROM IP GROUP BY m ORDER BY n DESC LIMIT 1"
    (found,) = warnings(text)
    assert "each epoch m has one row" in found
    better = found.splitlines()[-1].partition("write ")[2]
    assert better.endswith(") AS epochs ORDER BY n DESC LIMIT 1")
    assert warnings(better) == ()
    assert warnings("SELECT time/60 AS m, count(*) AS n FROM IP GROUP BY m ORDER BY m") == ()
    keys = "SELECT time/60 AS m, srcIP, count(*) AS n FROM IP GROUP BY m, srcIP"
    assert warnings(f"{keys} ORDER BY n DESC LIMIT 1") == ()


def test_order_by_over_one_row_a_window_is_reported_with_what_to_write() -> None:
    window = "FROM IP [RANGE '1 min']"
    (found,) = warnings(f"SELECT window_end, count(*) AS n {window} ORDER BY n DESC LIMIT 1")
    assert "each window has one row" in found
    better = found.split("write ")[1]
    assert better.endswith(") AS windows ORDER BY n DESC LIMIT 1")
    assert warnings(better) == ()
    assert warnings(f"SELECT count(*) AS n {window} GROUP BY srcIP ORDER BY n LIMIT 1") == ()
    assert warnings(f"SELECT count(*) AS n {window} ORDER BY window_end") == ()


def test_the_library_and_the_one_liners_are_without_warnings() -> None:
    for name, path in library_files().items():
        assert warnings(path.read_text(encoding="utf-8"), f"{name}.gsql") == ()
    for one in one_liners():
        if not one.hints:
            assert warnings(one.text) == ()


@pytest.mark.parametrize("name", ["sampler_seed", "max_groups"])
def test_what_only_a_sampling_operator_reads_has_no_effect_elsewhere(name: str) -> None:
    plain = "SELECT tb, count(*) FROM TCP GROUP BY time/60 AS tb"
    (found,) = warnings(f"DEFINE {{ {name} 7; }} {plain}")
    assert f"{name} has no effect: the query has no sampling operator" in found
    assert "leave it out" in found
    # A constant of the query's own may have this name.
    used = plain.replace("FROM TCP", f"FROM TCP WHERE len > #{name}#")
    assert warnings(f"DEFINE {{ {name} 7; }} {used}") == ()
    sampled = "SELECT tb, srcIP FROM TCP WHERE ssample(len, 100) GROUP BY time/60 AS tb, srcIP"
    assert warnings(f"DEFINE {{ {name} 7; }} {sampled}") == ()
    inside = f"SELECT tb, srcIP FROM ({sampled}) AS s"
    assert warnings(f"DEFINE {{ {name} 7; }} {inside}") == ()
