"""Names of services: those that a plain reading of the file gives, and errors name the line."""

from __future__ import annotations

import pyarrow as pa
import pytest

from gscope.engine.lookups.services_file import read_services, service_keys
from gscope.errors import EngineError

TEXT = """\
# Network services
ssh\t\t22/tcp\t\t\t\t# SSH Remote Login
domain\t\t53/tcp
domain\t\t53/udp
https           443/tcp http-over-tls
https           443/udp # HTTP/3
other           443/tcp
rtmp            1/ddp
last            65535/TCP
zero            0/sctp
"""


def test_the_first_name_of_a_port_and_protocol_counts() -> None:
    expected = {
        (22, 6): "ssh",
        (53, 6): "domain",
        (53, 17): "domain",
        (443, 6): "https",
        (443, 17): "https",
        (1, 37): "rtmp",
        (65535, 6): "last",
        (0, 132): "zero",
    }
    extreme = (-(1 << 63), -1, 65536, 65536 + 22, (1 << 63) - 1)
    asked = [
        *((port, protocol) for port in (*range(500), 65535) for protocol in range(256)),
        *((port, 6) for port in extreme),
        *((22, protocol) for protocol in (*extreme, 256 + 6)),
    ]
    table = read_services(TEXT, "services")
    keys = service_keys(*(pa.array(column, pa.int64()) for column in zip(*asked, strict=True)))
    assert table.find(keys).to_pylist() == [expected.get(each) for each in asked]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("ssh 22/tcp\nhttp\n", "services:2: expected a line such as https 443/tcp, got 'http'"),
        ("ssh 65536/tcp\n", "services:1: expected a line such as https 443/tcp, got"),
        ("ssh 22\n", "services:1: expected a line such as https 443/tcp, got 'ssh 22'"),
        ("# x\n\nssh 22/tpc\n", "services:3: unknown protocol 'tpc': expected tcp or udp"),
    ],
)
def test_an_invalid_line_is_named(text: str, message: str) -> None:
    with pytest.raises(EngineError) as refused:
        read_services(text, "services")
    assert str(refused.value).startswith(message)
