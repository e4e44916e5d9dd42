"""Community IDs are those of the published vectors (corelight/community-id-spec, baseline)."""

from __future__ import annotations

import pytest

from gscope.queries.analysis.typing.constants import parse_network
from gscope.queries.catalog.functions import FUNCTIONS

TCP, UDP, SCTP, ICMP, ICMP6, RSVP = 6, 17, 132, 1, 58, 46
VECTORS = [
    (
        TCP,
        *("128.232.110.120", "66.35.250.204", 34855, 80),
        *("1:LQU9qZlK+B5F3KDmev6m5PMibrg=", "1:3V71V58M3Ksw/yuFALMcW0LAHvc="),
    ),
    (
        TCP,
        *("66.35.250.204", "128.232.110.120", 80, 34855),
        *("1:LQU9qZlK+B5F3KDmev6m5PMibrg=", "1:3V71V58M3Ksw/yuFALMcW0LAHvc="),
    ),
    (
        TCP,
        *("10.0.0.1", "10.0.0.2", 10, 11569),
        *("1:SXBGMX1lBOwhhoDrZynfROxnhnM=", "1:HmBRGR+fUyXF4t8WEtal7Y0gEAo="),
    ),
    (
        UDP,
        *("192.168.1.52", "8.8.8.8", 54585, 53),
        *("1:d/FP5EW3wiY1vCndhwleRRKHowQ=", "1:Q9We8WO3piVF8yEQBNJF4uiSVrI="),
    ),
    (
        UDP,
        *("8.8.8.8", "192.168.1.52", 53, 54585),
        *("1:d/FP5EW3wiY1vCndhwleRRKHowQ=", "1:Q9We8WO3piVF8yEQBNJF4uiSVrI="),
    ),
    (
        SCTP,
        *("192.168.170.8", "192.168.170.56", 7, 80),
        *("1:jQgCxbku+pNGw8WPbEc/TS/uTpQ=", "1:Y1/0jQg6e+I3ZwZZ9LP65DNbTXU="),
    ),
    (
        ICMP,
        *("192.168.0.89", "192.168.0.1", 8, 0),
        *("1:X0snYXpgwiv9TZtqg64sgzUn6Dk=", "1:03g6IloqVBdcZlPyX8r0hgoE7kA="),
    ),
    (
        ICMP,
        *("192.168.0.1", "192.168.0.89", 0, 8),
        *("1:X0snYXpgwiv9TZtqg64sgzUn6Dk=", "1:03g6IloqVBdcZlPyX8r0hgoE7kA="),
    ),
    (
        ICMP,
        *("192.168.0.89", "192.168.0.1", 20, 0),
        *("1:3o2RFccXzUgjl7zDpqmY7yJi8rI=", "1:lCXHHxavE1Vq3oX9NH5ladQg02o="),
    ),
    (
        ICMP,
        *("192.168.0.89", "192.168.0.1", 20, 1),
        *("1:tz/fHIDUHs19NkixVVoOZywde+I=", "1:Ie3wmFyxiEyikbsbcO03d2nh+PM="),
    ),
    (
        ICMP6,
        *("fe80::200:86ff:fe05:80da", "fe80::260:97ff:fe07:69ea", 135, 0),
        *("1:dGHyGvjMfljg6Bppwm3bg0LO8TY=", "1:kHa1FhMYIT6Ym2Vm2AOtoOARDzY="),
    ),
    (
        ICMP6,
        *("fe80::260:97ff:fe07:69ea", "fe80::200:86ff:fe05:80da", 136, 0),
        *("1:dGHyGvjMfljg6Bppwm3bg0LO8TY=", "1:kHa1FhMYIT6Ym2Vm2AOtoOARDzY="),
    ),
    (
        ICMP6,
        *("3ffe:507:0:1:260:97ff:fe07:69ea", "3ffe:507:0:1:200:86ff:fe05:80da", 3, 0),
        *("1:NdobDX8PQNJbAyfkWxhtL2Pqp5w=", "1:OlOWx9psIbBFi7lOCw/4MhlKR9M="),
    ),
    (
        RSVP,
        *("10.1.24.4", "10.1.12.1", 0, 0),
        *("1:/nQI4Rh/TtY3mf0R2gJFBkVlgS4=", "1:BK3BVW3U2eemuwVQVN3zd/GULno="),
    ),
    (
        RSVP,
        *("10.1.12.1", "10.1.24.4", 0, 0),
        *("1:/nQI4Rh/TtY3mf0R2gJFBkVlgS4=", "1:BK3BVW3U2eemuwVQVN3zd/GULno="),
    ),
]


def ip(text: str) -> int:
    network = parse_network(text)
    assert network is not None
    return network[0]


@pytest.mark.parametrize(
    ("protocol", "source", "destination", "source_port", "destination_port", "plain", "seeded"),
    VECTORS,
)
def test_published_vectors(
    protocol: int,
    source: str,
    destination: str,
    source_port: int,
    destination_port: int,
    plain: str,
    seeded: str,
) -> None:
    evaluate = FUNCTIONS["community_id"].evaluate
    flow = (protocol, ip(source), ip(destination), source_port, destination_port)
    assert evaluate(*flow, 0) == plain.encode()
    assert evaluate(*flow, 1) == seeded.encode()


@pytest.mark.parametrize(
    ("protocol", "source", "port", "seed"),
    [
        (256, "10.0.0.1", 1, 0),
        (6, "2001:db8::1", 1, 0),
        (6, "10.0.0.1", 65536, 0),
        (6, "::1", 1, -1),
    ],
)
def test_what_is_no_flow_has_no_id(protocol: int, source: str, port: int, seed: int) -> None:
    evaluate = FUNCTIONS["community_id"].evaluate
    assert evaluate(protocol, ip(source), ip("10.0.0.2"), port, 1, seed) is None
