"""Makers of network devices: the longest prefix counts in each format, and errors name the line."""

from __future__ import annotations

import random

import pyarrow as pa
import pytest

from gscope.engine.lookups.vendors_file import mac_keys, read_vendors
from gscope.errors import EngineError

MANUF = """\
# Wireshark
00:00:0C\tCisco\tCisco Systems, Inc
00:1B:C5\tIEEERegi\tIEEE Registration Authority
00:1B:C5:00:10:00/36\tOpenRBco\tOpenRB.com, Direct SIA
00-1B-C5-70-00-00/28\tShort
01:00:0C:CC:CC:CC\tCDP/VTP\t# a comment

00:00:0C\tOther\tOther
02:00:00/7\tLocal\tLocally administered\t# wide
"""
NAMES = {
    0x00000CFFFFFF: "Cisco Systems, Inc",
    0x00000BFFFFFF: None,
    0x00000D000000: None,
    0x001BC5000FFF: "IEEE Registration Authority",
    0x001BC5001000: "OpenRB.com, Direct SIA",
    0x001BC5001FFF: "OpenRB.com, Direct SIA",
    0x001BC5002000: "IEEE Registration Authority",
    0x001BC57FFFFF: "Short",
    0x001BC5800000: "IEEE Registration Authority",
    0x01000CCCCCCB: None,
    0x01000CCCCCCC: "CDP/VTP",
    0x01FFFFFFFFFF: None,
    0x02ABCDEF0123: "Locally administered",
    0x040000000000: None,
    0xFFFFFFFFFFFF: None,
    0: None,
}


def found(text: str, addresses: list[int | None]) -> list[str | None]:
    table = read_vendors(text, "manuf")
    return list(table.find(mac_keys(pa.array(addresses, pa.int64()))).to_pylist())


def test_the_longest_prefix_of_wireshark_counts() -> None:
    assert found(MANUF, list(NAMES)) == list(NAMES.values())


def test_nmap_and_the_ieee_say_the_same() -> None:
    nmap = "# Nmap\n00000C Cisco Systems, Inc\n001BC5 IEEE\n001BC5001 OpenRB, SIA\n001BC57 X\n"
    ieee = (
        "Registry,Assignment,Organization Name,Organization Address\r\n"
        'MA-L,00000C,"Cisco Systems, Inc","170 West ""T"" Drive\r\nSan Jose"\r\n'
        "MA-L,001BC5,IEEE,\r\n"
        'MA-S,001BC5001,"OpenRB, SIA",Riga\r\n'
        "MA-M,001BC57,X ,Y\r\n"
    )
    addresses: list[int | None] = [*NAMES, None]
    expected = ["Cisco Systems, Inc", "IEEE", "OpenRB, SIA", "X"]
    assert [name for name in dict.fromkeys(found(nmap, addresses)) if name] == expected
    assert found(nmap, addresses) == found(ieee, addresses)


@pytest.mark.parametrize("seed", range(3))
def test_random_prefixes_give_what_comparing_digits_gives(seed: int) -> None:
    chance = random.Random(seed)
    digits = ["".join(chance.choices("01EF", k=chance.choice((6, 7, 9, 12)))) for _ in range(200)]
    text = "".join(f"{prefix} maker {n % 50}\n" for n, prefix in enumerate(digits))
    names = {prefix: f"maker {n % 50}" for n, prefix in reversed(list(enumerate(digits)))}
    asked = [int(prefix.ljust(12, fill), 16) for prefix in digits for fill in "0F"]
    asked += [min(each + 1, (1 << 48) - 1) for each in asked]
    expected = []
    for address in asked:
        shown = f"{address:012X}"
        holding = [prefix for prefix in names if shown.startswith(prefix)]
        expected.append(names[max(holding, key=len)] if holding else None)
    assert found(text, list(asked)) == expected


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("00:00:0C\tA\n00:00\tB\n", "manuf:2: invalid prefix '00:00': expected one such as"),
        ("00:00:0G\tA\n", "manuf:1: invalid prefix '00:00:0G'"),
        ("00:00:0C:01/24\tA\n", "manuf:1: invalid prefix '00:00:0C:01/24'"),
        ("00:00:0C/49\tA\n", "manuf:1: invalid prefix '00:00:0C/49'"),
        ("# x\n00:00:0C\n", "manuf:2: expected a prefix and a name, got '00:00:0C'"),
        ("Registry,Assignment,Organization Name\nMA-L,1\n", "manuf:2: expected Registry,"),
        ("Registry,Assignment,Organization Name\nMA-L,00000C,\n", "manuf:2: the prefix 00000C"),
    ],
)
def test_an_invalid_line_is_named(text: str, message: str) -> None:
    with pytest.raises(EngineError) as refused:
        read_vendors(text, "manuf")
    assert str(refused.value).startswith(message)
