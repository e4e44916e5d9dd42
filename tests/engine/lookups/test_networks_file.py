"""Names of networks.

A table gives what a search of all networks gives, and errors name the line.
"""

from __future__ import annotations

import ipaddress
import random
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest

from gscope.engine.lookups.networks_file import read_networks
from gscope.engine.lookups.table import address_keys
from gscope.errors import EngineError
from gscope.queries.catalog.scalar.addresses import parse_ip

if TYPE_CHECKING:
    from gscope.engine.lookups.table import LookupTable

Address = ipaddress.IPv4Address | ipaddress.IPv6Address
Network = ipaddress.IPv4Network | ipaddress.IPv6Network


def found(table: LookupTable, addresses: list[Address]) -> list[Any]:
    """What the table has for addresses, in the middle of a column with NULLs."""
    values = [parse_ip(str(address)) for address in addresses]
    packed = [None if value is None else value.to_bytes(16, "big") for value in values]
    column = pa.array([None, *packed, None], pa.binary()).slice(1, len(packed))
    return list(table.find(address_keys(column)).to_pylist())


def searched(networks: dict[Network, str], address: Address) -> str | None:
    """The name of the narrowest network, found by asking each of them."""
    holding = [n for n in networks if n.version == address.version and address in n]
    return networks[max(holding, key=lambda n: n.prefixlen)] if holding else None


def random_networks(chance: random.Random, count: int) -> dict[Network, str]:
    """Networks of both families, many of them inside others, near a few addresses."""
    made: dict[Network, str] = {}
    for n in range(count):
        if chance.random() < 0.6:
            bits, length = chance.choice((10, 172, 255)) << 24 | chance.getrandbits(20), 32
            network: Network = ipaddress.IPv4Network(
                (bits, chance.randint(0, length)), strict=False
            )
        else:
            bits = chance.choice((0, 0xFFFF << 32, 0xFFFE << 32, 0x20010DB8 << 96, (1 << 128) - 1))
            bits ^= chance.getrandbits(20) << chance.choice((0, 16, 60))
            network = ipaddress.IPv6Network((bits, chance.randint(0, 128)), strict=False)
        made[network] = f"net {n % 37}"
    return made


def asked(chance: random.Random, networks: dict[Network, str]) -> list[Address]:
    """Addresses at both sides of each end of a network, and some elsewhere."""
    addresses: list[Address] = []
    for network in networks:
        kind = type(network.network_address)
        edges = (int(network.network_address), int(network.broadcast_address))
        near = (bits for edge in edges for bits in (edge - 1, edge, edge + 1))
        addresses += [kind(bits) for bits in near if 0 <= bits < 1 << network.max_prefixlen]
    addresses += [ipaddress.IPv4Address(chance.getrandbits(32)) for _ in range(200)]
    addresses += [ipaddress.IPv6Address(chance.getrandbits(128)) for _ in range(200)]
    # The block that stands for ::ffff:0:0/96 has no addresses of its own.
    return [a for a in addresses if a.version == 4 or int(a) >> 32 != 0xFFFE]


@pytest.mark.parametrize("seed", range(6))
def test_the_narrowest_network_counts(seed: int) -> None:
    chance = random.Random(seed)
    networks = random_networks(chance, 60 * seed)
    lines = [f'{network},"{name}"' for network, name in networks.items()]
    chance.shuffle(lines)
    table = read_networks("\n".join(lines), "networks.csv")
    addresses = asked(chance, networks)
    assert found(table, addresses) == [searched(networks, address) for address in addresses]


def test_yaml_and_csv_say_the_same() -> None:
    """An address alone is a network; names may have any characters."""
    text = "network,name\n# ours\n\n10.0.0.0/8,Büro, groß\n".replace("Büro, groß", '"Büro, groß"')
    one = read_networks(text + "10.1.2.3,host\nfe80::/10,link\n", "a.csv")
    other = read_networks(
        "'Büro, groß':\n  - 10.0.0.0/8\nlink: fe80::/10\nhost: [10.1.2.3]\n", "a.YAML"
    )
    addresses = [ipaddress.ip_address(a) for a in ("10.9.9.9", "10.1.2.3", "fe80::1", "11.0.0.0")]
    named = found(one, addresses)
    assert named == found(other, addresses)
    assert [name and name.encode("iso-8859-1").decode() for name in named] == [
        *("Büro, groß", "host", "link"),
        None,
    ]


def test_no_ipv4_address_is_in_an_ipv6_network() -> None:
    table = read_networks("::/0,all of 6\n", "a.csv")
    addresses = [ipaddress.ip_address(a) for a in ("1.2.3.4", "::ffff:1.2.3.4", "::1")]
    assert found(table, addresses) == [None, "all of 6", "all of 6"]


@pytest.mark.parametrize("path", ["empty.csv", "empty.yml"])
def test_an_empty_file_has_no_network(path: str) -> None:
    assert found(read_networks("", path), [ipaddress.ip_address("10.0.0.1")]) == [None]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("10.0.0.0/8,a\n\n10.0.0.0/33,b\n", "n.csv:3: invalid network '10.0.0.0/33': expected a "),
        ("10.0.0.1/8,a\n", "n.csv:1: invalid network '10.0.0.1/8': it has bits behind its prefix"),
        ("10.0.0/8,a\n", "n.csv:1: invalid network '10.0.0/8': expected one such as 10.0.0.0/8"),
        ("::/x,a\n", "n.csv:1: invalid network '::/x': expected a prefix length of at most 128"),
        ("# one\n10.0.0.0/8\n", "n.csv:2: expected network,name, got 1 field"),
        ("10.0.0.0/8,a,b\n", "n.csv:1: expected network,name, got 3 fields"),
        ("10.0.0.0/8,\n", "n.csv:1: the network '10.0.0.0/8' has no name"),
        ("::/8,a\n::1,x\n::/8,b\n", "n.csv:3: the network ::/8 has another name in line 1"),
        ('10.0.0.0/8,"a\n', "n.csv:1: unexpected end of data"),
    ],
)
def test_an_invalid_line_is_named(text: str, message: str) -> None:
    with pytest.raises(EngineError) as refused:
        read_networks(text, "n.csv")
    assert str(refused.value).startswith(message)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("a: [10.0.0.0/8\n", "n.yaml:2: invalid YAML: "),
        ("- 10.0.0.0/8\n", "n.yaml:1: expected names of networks"),
        ("a:\n  b: 10.0.0.0/8\n", "n.yaml:2: expected a name, and a network or a list"),
        ("a:\n- ::1\n- - ::2\n", "n.yaml:3: expected a name, and a network or a list"),
        ("a: 10.0.0.0/8\nb: ten\n", "n.yaml:2: invalid network 'ten'"),
    ],
)
def test_an_invalid_line_of_yaml_is_named(text: str, message: str) -> None:
    with pytest.raises(EngineError) as refused:
        read_networks(text, "n.yaml")
    assert str(refused.value).startswith(message)
