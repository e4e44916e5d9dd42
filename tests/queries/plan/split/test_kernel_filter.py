"""What packets must be like for a query set to want any of them."""

from __future__ import annotations

import pytest

from gscope.queries.compile import CompileContext, Compiled, QueryText, compile_queries
from gscope.queries.plan.split.kernel_filter import TRUE, needed_packets, show_condition


def compiled(text: str, *interfaces: str) -> Compiled:
    return compile_queries([QueryText(text, "test")], CompileContext(interfaces))


def needed(text: str, interface: str = "main") -> str:
    program = compiled(text, "main", "other").program
    return show_condition(needed_packets(program.lftas, interface))


@pytest.mark.parametrize(
    ("where", "condition"),
    [
        ("UDP WHERE destPort = 53", "protocol = 17 AND destPort = 53"),
        ("UDP WHERE 53 = destPort AND len > 100", "protocol = 17 AND destPort = 53"),
        ("UDP WHERE destPort = 53 OR len > 100", "protocol = 17"),
        ("UDP WHERE NOT (destPort = 53 OR len > 100)", "protocol = 17"),
        ("UDP WHERE NOT (destPort > 53)", "protocol = 17"),
        ("UDP WHERE NOT (destPort <= 53)", "protocol = 17 AND destPort > 53"),
        ("UDP WHERE NOT (srcPort IN (53, 0))", "protocol = 17 AND srcPort <> 0"),
        ("TCP WHERE inner.srcIP = '10.0.0.1'", "protocol = 6"),
        ("TCP WHERE srcIP = '10.0.0.1'", "protocol = 6 AND srcIP = 10.0.0.1"),
        ("TCP WHERE srcIP <> '10.0.0.1'", "protocol = 6"),
        ("PKT", "TRUE"),
        ("ARP", "ethertype = 0x0806"),
        ("IP", "ipversion = 4 OR ipversion = 6"),
        ("IPV6 WHERE 1 = 2", "FALSE"),
    ],
)
def test_a_predicate_asks_of_headers(where: str, condition: str) -> None:
    assert needed(f"SELECT time FROM {where}") == condition


def test_a_test_that_missing_ports_pass_says_nothing() -> None:
    assert needed("SELECT time FROM IP WHERE destPort < 10 AND protocol = 1") == needed(
        "SELECT time FROM IP WHERE protocol = 1"
    )


def test_queries_of_an_interface_together_want_what_any_of_them_wants() -> None:
    both = "SELECT time FROM UDP WHERE destPort = 53; SELECT time FROM ARP"
    assert needed(both) == "(protocol = 17 AND destPort = 53) OR ethertype = 0x0806"
    assert needed(f"{both}; SELECT time, len FROM main.PKT") == "TRUE"
    assert needed(f"{both}; SELECT time, len FROM main.PKT", "other") != "TRUE"


def test_an_interface_that_no_query_reads_and_a_long_condition_are_not_filtered() -> None:
    assert needed("SELECT time FROM main.UDP", "other") == "TRUE"
    ports = ", ".join(map(str, range(1, 100)))
    assert needed(f"SELECT time FROM UDP WHERE destPort IN ({ports})") == "protocol = 17"


def test_true_is_of_nothing() -> None:
    assert show_condition(TRUE) == "TRUE"
