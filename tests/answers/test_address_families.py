"""IPv4 and IPv6 are two families of addresses, at every level; the oracle is Python's ipaddress."""

from __future__ import annotations

import ipaddress
import struct
from functools import partial
from typing import TYPE_CHECKING, Any

import pytest
from tests.golden.driver import COMPILED, INTERPRETED, answer

from gscope.queries.compile import CompileContext, QueryText, compile_queries

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from pyspark.sql import SparkSession
    from tests.golden.driver import Row, Variation

Address = ipaddress.IPv4Address | ipaddress.IPv6Address

ADDRESSES = [
    ipaddress.ip_address(text)
    for text in (
        *("10.0.0.1", "10.0.0.77", "192.168.1.1", "8.8.8.8", "0.0.0.0", "255.255.255.255"),
        *("::ffff:10.0.0.1", "::ffff:8.8.8.8", "::ffff:0.0.0.0", "::ffff:192.168.1.1"),
        *("::", "::1", "::10.0.0.1", "::ffff:0:10.0.0.1", "0:0:0:1::ffff:a00:1"),
        *("2001:db8::1", "2001:db8:0:1::ffff:a00:1", "fd00::1", "fe80::1", "ffff::"),
    )
]


def is_in(network: str) -> Callable[[Address], bool]:
    return lambda a: a in ipaddress.ip_network(network)


def v4(a: Address) -> bool:
    return a.version == 4


def order(a: Address) -> tuple[bytes, int]:
    """Addresses by their 128 bits.

    IPv4 comes as v4-mapped and behind the IPv6 address of the same bits.
    """
    packed = a.packed if a.version == 6 else bytes(10) + b"\xff\xff" + a.packed
    return packed[:12], a.version == 4 or packed[:12] != bytes(10) + b"\xff\xff"


def prefix(a: Address, bits4: int, bits6: int) -> str:
    return shown(ipaddress.ip_interface(f"{a}/{bits4 if v4(a) else bits6}").network.network_address)


def shown(a: Address) -> str:
    mapped = a.ipv4_mapped if isinstance(a, ipaddress.IPv6Address) else None
    return f"::ffff:{mapped}" if mapped is not None else str(a)


def masked(a: Address, mask: int) -> str:
    """A mask is about the low 32 bits, of IPv6 about 64 if it is wider."""
    if v4(a):
        return str(ipaddress.IPv4Address(int(a) & mask & 0xFFFFFFFF))
    low = 32 if 0 <= mask < 1 << 32 else 64
    return shown(ipaddress.IPv6Address(int(a) >> low << low | int(a) & mask & ((1 << low) - 1)))


TEN = ipaddress.ip_address("10.0.0.1")
MAPPED_TEN = ipaddress.ip_address("::ffff:10.0.0.1")
EXPRESSIONS: dict[str, Callable[[Address], Any]] = {
    "srcIP = '10.0.0.1'": lambda a: a == TEN,
    "srcIP <> '10.0.0.1'": lambda a: a != TEN,
    "srcIP = 0x0A000001": lambda a: a == TEN,
    "srcIP <> 0x0A000001": lambda a: a != TEN,
    "srcIP <> INT(len * 0 + 167772161)": lambda a: a != TEN,
    "srcIP = '::ffff:10.0.0.1'": lambda a: a == MAPPED_TEN,
    "srcIP = IPV6_VAL'::ffff:10.0.0.1'": lambda a: a == MAPPED_TEN,
    "srcIP IN (167772161, '::ffff:8.8.8.8', '::1')": lambda a: (
        str(a) in ("10.0.0.1", "::1") or a == ipaddress.ip_address("::ffff:8.8.8.8")
    ),
    "srcIP NOT IN (167772161)": lambda a: a != TEN,
    "srcIP > '9.255.255.255'": lambda a: (
        int(a) > 0x09FFFFFF if v4(a) else order(a)[0] > bytes(10) + b"\xff\xff"
    ),
    "srcIP < 0": lambda a: not v4(a) and order(a)[0] <= bytes(10) + b"\xff\xff",
    **{
        f"in_net[srcIP, '{network}']": is_in(network)
        for network in (
            *("0.0.0.0/0", "::/0", "::/1", "::/64", "::/80", "::/95", "::ffff:0:0/96", "::/96"),
            *("::ffff:10.0.0.0/104", "10.0.0.0/8", "10.0.0.1", "::ffff:10.0.0.1", "2001:db8::/32"),
        )
    },
    "is_private[srcIP]": lambda a: any(
        is_in(n)(a) for n in ("10.0.0.0/8", "172.16.0.0/12", "192.168.0.0/16", "fc00::/7")
    ),
    "INT(srcIP)": lambda a: int(a) if v4(a) else None,
    "srcIP": shown,
    "prefix(srcIP, 24, 96)": lambda a: prefix(a, 24, 96),
    "prefix(srcIP, 0, 64)": lambda a: prefix(a, 0, 64),
    "prefix(srcIP, 31, 127)": lambda a: prefix(a, 31, 127),
    **{
        f"srcIP & {mask}": partial(masked, mask=mask)
        for mask in (0xFFFFFF00, -256, 0x9E3779B97F4A7C1, 0x3FFFFFFFF, 0xFFFFFFFF0000)
    },
    "STRING(srcIP)": shown,
}


def text(value: Any) -> str:
    if value is None:
        return ""
    return str(value).lower() if isinstance(value, bool) else str(value)


def datagram(address: Address) -> bytes:
    udp = struct.pack(">HHHH", 1, 2, 8, 0)
    if isinstance(address, ipaddress.IPv4Address):
        header = struct.pack(">BBHHHBBH", 0x45, 0, 28, 0, 0, 64, 17, 0) + address.packed + bytes(4)
        return bytes(12) + b"\x08\x00" + header + udp
    header = struct.pack(">IHBB", 6 << 28, 8, 17, 64) + address.packed + address.packed
    return bytes(12) + b"\x86\xdd" + header + udp


def write_capture(folder: Path, addresses: list[Address]) -> Path:
    """One UDP packet from each address, all within a minute."""
    packets = [datagram(address) for address in addresses]
    records = [
        struct.pack("<IIII", 1_700_000_000, n, len(p), len(p)) + p for n, p in enumerate(packets)
    ]
    path = folder / "families.pcap"
    path.write_bytes(struct.pack("<IHHiIII", 0xA1B2C3D4, 2, 4, 0, 0, 65535, 1) + b"".join(records))
    return path


def answered(
    query: str, path: Path, variation: Variation, session: SparkSession | None
) -> list[Row]:
    compiled = compile_queries([QueryText(query, "q")], CompileContext(("a",), {}, {}))
    (rows,) = answer(compiled.program, {"a": [path]}, variation, session).values()
    return rows


LOW = [e for e in EXPRESSIONS if "STRING(" not in e]
QUERIES = 5
"""Neighbours in the list may be one expression, which an LFTA computes once and Spark doubles."""


def wrong(expressions: list[str], rows: dict[Address, Row]) -> list[str]:
    """What the columns say where they differ from the oracle."""
    return [
        f"{expression} of {address}: {got}"
        for address, row in rows.items()
        for expression, got in zip(expressions, row, strict=True)
        if got != text(EXPRESSIONS[expression](address))
    ]


@pytest.mark.parametrize("variation", [COMPILED, INTERPRETED], ids=lambda v: v.name)
def test_an_lfta_keeps_the_families_apart(variation: Variation, tmp_path: Path) -> None:
    path = write_capture(tmp_path, ADDRESSES)
    parts = [LOW[first::QUERIES] for first in range(QUERIES)]
    queries = "; ".join(
        f"DEFINE {{ query_name 'q{n}'; }} SELECT time, "
        + ", ".join(f"{e} AS x{place}" for place, e in enumerate(part))
        + " FROM UDP"
        for n, part in enumerate(parts)
    )
    compiled = compile_queries([QueryText(queries, "q")], CompileContext(("a",), {}, {}))
    answers = answer(compiled.program, {"a": [path]}, variation, None)
    for n, part in enumerate(parts):
        rows = [row[1 : len(part) + 1] for row in answers[f"q{n}"]]
        assert wrong(part, dict(zip(ADDRESSES, rows, strict=True))) == []


@pytest.mark.spark
def test_spark_keeps_the_families_apart(tmp_path: Path, spark: SparkSession) -> None:
    path = write_capture(tmp_path, ADDRESSES * 2)
    expressions = list(EXPRESSIONS)
    columns = ", ".join(
        f"{e.replace('len', 'max(len)')} AS x{n}" for n, e in enumerate(expressions)
    )
    query = f"SELECT tb, count(*) AS n, {columns} FROM UDP GROUP BY time/60 AS tb, srcIP"
    rows = answered(query, path, COMPILED, spark)
    assert [row[1] for row in rows] == ["2"] * len(ADDRESSES)
    place = expressions.index("srcIP")
    by_text = {row[2 + place]: row[2:] for row in rows}
    assert wrong(expressions, {a: by_text[shown(a)] for a in ADDRESSES}) == []


def test_the_one_collision_is_the_documented_one(tmp_path: Path) -> None:
    """::fffe:0:0/96 was never assigned; its addresses read as v4-mapped ones of IPv6 headers."""
    path = write_capture(tmp_path, [ipaddress.ip_address("::fffe:a00:1")])
    ((_, address, is_four),) = answered(
        "SELECT time, srcIP, srcIP = '10.0.0.1' AS four FROM UDP", path, COMPILED, None
    )
    assert (address, is_four) == ("::ffff:10.0.0.1", "false")


def test_the_collision_includes_prefixes_of_95_bits(tmp_path: Path) -> None:
    """The network of ::ffff:a.b.c.d of 95 bits is ::fffe:0:0.

    It is the one address that reads otherwise.
    """
    path = write_capture(tmp_path, [ipaddress.ip_address("::ffff:10.0.0.1")])
    columns = ", ".join(f"prefix(srcIP, 32, {bits}) AS p{bits}" for bits in (94, 95, 96))
    (row,) = answered(f"SELECT time, {columns} FROM UDP", path, COMPILED, None)
    assert row[1:] == ("::fffc:0:0", "::ffff:0.0.0.0", "::ffff:0.0.0.0")


@pytest.mark.parametrize("number", ["-1", "4294967296"])
def test_an_integer_that_is_no_ipv4_address_is_refused(number: str) -> None:
    from gscope.errors import TypeMismatchError

    with pytest.raises(TypeMismatchError, match="is not the value of an IPv4 address"):
        compile_queries(
            [QueryText(f"SELECT time FROM IP WHERE srcIP = {number}", "q")],
            CompileContext(("a",), {}, {}),
        )
