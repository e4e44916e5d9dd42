"""What is taken for a packet filter or a query where a file belongs, and what is not."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from gscope.cli.commands.misplaced import is_filter, refuse_misplaced
from gscope.errors import UsageError

if TYPE_CHECKING:
    from pathlib import Path


@pytest.mark.parametrize(
    "text",
    [
        *("tcp", "UDP", "icmp6", "tcp port 80", "host 10.0.0.1", "not port 22", "port 53"),
        *("(tcp or udp) and port 53", "!arp", "tcp[13] & 2 != 0", "src net 10/8", "len > 100"),
        *("ip6 and tcp", "ether host 0:1:2:3:4:5", "greater 100", "vlan 7", "portrange 1-1024"),
    ],
)
def test_a_filter_is_recognised(text: str) -> None:
    assert is_filter(text)


@pytest.mark.parametrize(
    "text",
    [
        *("tcp.pcap", "host", "port", "hosts", "port.gsql", "tcp_flags", "net/flow", "in=a.pcap"),
        *("", "-", "tcp-80.pcap", "udp2", "published/flow", "my trace.pcap", "ip.src"),
    ],
)
def test_a_file_name_is_no_filter(text: str) -> None:
    assert not is_filter(text)


def test_a_file_that_exists_has_precedence(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    names = ["tcp", "tcp port 80", "SELECT", "top_talkers"]
    for name in names:
        (tmp_path / name).touch()
    given = [
        *names,
        "in=tcp",
        "in=absent.pcap",
        "selected.pcap",
        "with-tags.pcap",
        "\0",
        "x" * 5000,
    ]
    refuse_misplaced(given, "a capture", filter_option="-f", takes_names=False)
    with pytest.raises(UsageError, match=r"use -f 'udp port 53'$"):
        refuse_misplaced(
            ["udp", "port", "53", "tcp"], "a capture", filter_option="-f", takes_names=False
        )


def test_a_name_of_the_library_is_valid_among_queries() -> None:
    refuse_misplaced(["top_talkers"], "a query file", filter_option="-f", takes_names=True)


def test_a_word_may_name_a_query_of_another_text() -> None:
    refuse_misplaced(["vlan"], "a query file", filter_option="-f", takes_names=True, has_texts=True)
    with pytest.raises(UsageError, match=r"use -f 'vlan 7'$"):
        refuse_misplaced(
            ["vlan 7"], "a query file", filter_option="-f", takes_names=True, has_texts=True
        )
