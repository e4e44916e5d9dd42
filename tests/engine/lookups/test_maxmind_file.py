"""MaxMind DB files: tables give what a search of all networks gives; damaged files are refused."""

from __future__ import annotations

import base64
import ipaddress
import random
import zlib
from typing import TYPE_CHECKING, Any

import pytest
from tests.engine.lookups.maxmind_writer import ALIASES, database, encoded
from tests.engine.lookups.test_networks_file import asked, found

from gscope.engine.lookups.maxmind_file import read_asn, read_country
from gscope.engine.lookups.maxmind_records import Records
from gscope.errors import EngineError

if TYPE_CHECKING:
    from tests.engine.lookups.maxmind_writer import Network
    from tests.engine.lookups.test_networks_file import Address

Entries = dict["Network", dict[str, Any]]

OTHERS = ["2002:a01:203::1", "2001:0:a01:203::5", "2001:0:a63::", "::ffff:10.1.2.3", "::10.1.2.3"]
"""Addresses of IPv6 that have the IPv4 address 10.1.2.3, or one near it, inside."""


def random_entries(chance: random.Random, count: int, family: int) -> Entries:
    made: Entries = {}
    for _ in range(count):
        if family == 4 or chance.random() < 0.6:
            bits = chance.choice((10, 172, 255)) << 24 | chance.getrandbits(20)
            network: Network = ipaddress.IPv4Network((bits, chance.randint(1, 32)), strict=False)
        else:
            bits = 0x20010DB8 << 96 ^ chance.getrandbits(20) << chance.choice((0, 60, 100))
            network = ipaddress.IPv6Network((bits, chance.randint(33, 128)), strict=False)
        code = chance.choice(("DE", "FR", "US", "XK"))
        made[network] = {
            "autonomous_system_number": chance.choice((1, 64496, (1 << 32) - 1)),
            "autonomous_system_organization": "x" * chance.choice((3, 28, 29, 284, 285, 70_000)),
            "country": {"geoname_id": 1, "names": {"en": code * 20}, "iso_code": code},
            "list": [1, {"a": True, "b": 0.5}, 1 << 60],
        }
    return made


def searched(entries: Entries, address: Address, aliases: tuple[str, ...]) -> dict[str, Any]:
    """The record of the narrowest network, found by asking each of them."""
    bits = int(address)
    if address.version == 6:
        for text in ("::/96", *aliases) if aliases else ("::/96",):
            alias = ipaddress.IPv6Network(text)
            if address in alias:
                four = bits >> (96 - alias.prefixlen) & 0xFFFFFFFF
                return searched(entries, ipaddress.IPv4Address(four), ())
    holding = [n for n in entries if n.version == address.version and address in n]
    return entries[max(holding, key=lambda n: n.prefixlen)] if holding else {}


@pytest.mark.parametrize("width", [24, 28, 32])
@pytest.mark.parametrize(("family", "aliases"), [(4, ()), (6, ()), (6, ALIASES)])
def test_the_narrowest_network_counts(width: int, family: int, aliases: tuple[str, ...]) -> None:
    chance = random.Random(width + family + len(aliases))
    entries = random_entries(chance, 120, family)
    entries[ipaddress.IPv4Network("10.1.2.0/24")] = {"asn": "AS64500", "country": "AT"}
    data = database(entries, width=width, family=family, aliases=aliases)
    addresses = [
        a for a in asked(chance, dict.fromkeys(entries, "")) if not aliases or a.version == 4
    ]
    addresses += [ipaddress.ip_address(text) for text in OTHERS]
    if aliases:
        four = [int(a) for a in addresses if a.version == 4]
        addresses += [ipaddress.IPv6Address(0x2002 << 112 | a << 80 | 7) for a in four]
        addresses += [ipaddress.IPv6Address(0xFFFF << 32 | a) for a in four]
    records = [
        {} if family == 4 and a.version == 6 else searched(entries, a, aliases) for a in addresses
    ]
    numbers = [64500 if "asn" in r else r.get("autonomous_system_number") for r in records]
    countries = [r["country"]["iso_code"] if "list" in r else r.get("country") for r in records]
    assert {None, 64500} < set(numbers)
    assert found(read_asn(data, "a.mmdb"), addresses) == numbers
    assert found(read_country(data, "a.mmdb"), addresses) == countries
    plain = database(entries, width=width, family=family, aliases=aliases, has_pointers=False)
    assert found(read_country(plain, "a.mmdb"), addresses) == countries


FOREIGN = """
eNql09uTDGccxvHfrCWRk3OQbOIdZxYJIUc5aMauHRMs1nHT6Zl5d/Xa7p5097CzOchRDg5JkGCR7C62SrnLfxBcuFGlyq0b
XHEjhapUcZPub6ajwqWZrs88/b7PvN39To1ISmRApAYHiXwnUksejEPwMXwch+IT+CQ+hU/jMzgMh+MIHImjcDSOwWdxLI7D
8fgcPo91+AK+iBNQYRon4iScjFNwKk7D6TgDZ2I9zsLZOAdfwpdxLs7DV3A+LsBX8TV8Hd/AN/EtXIhv4zv4Lr6Hi9DAxbgE
M7gUG7ARl2ETZnE55vB9XIErcRU242pcg2uxBdfhetyAG3ETbsZW/ABN/BAtkZJInlzAIkaHFmlLcrvIFoItqY9EOnArdqKD
Lnqx8XGEr0QjPiHAEMu4DbdjF1awGz/GT/BT/Ax34Of4BX6JX+HX+E1y5ztFvq3m1BmR78k/4C7cjXtwL/6IP+HPuA/344Fk
5V9EfiUcxEN4OJntwWgHjiYjx/A3kd+TkV7sw36R44QTeJIbviE10Z/u/6/1Vjn0XM/xyoEZVIJQO6ZbdvLa77/3V2vq4UnP
b7dcu9sKbc9trc90WU6pU6tH/WwoeGU39CuNduCZBa+ojSWZjGs5OjC0a0SnZ09cVb3qePQeuKr2qoOqR526pkSNV3Vqodqp
/jh3t+WGGEubjTY/bl5Mmhei5qW4eb7avNyXMtauNspBXPs7qd2Janfj2q1/a+lB/fduG00rjY5S1EtPqPbSdaonPTHqpasX
TtefTckww2g28vF1041JMRMVs3FxUbW45vSFmzmrK2e7xTkFz7ne5EaPafLcfw5kfV3w/KIZ2N26b1yTXTK3aT+ItrhvSK5o
hVbeCrQZVko616C95Xao581ebIeVZZ2W21622nWQqo02alPedi2/YrZ5vmOFpmN1eP5/C9U8OGu792d7s0UdFHy7FP+sV6Kl
Wrb7dhhqV+UrynGKeTM+1342X7Y7i6YueYUttTVbB29o+AdAmH6O
"""
"""A file that another program wrote (mmdb_writer 0.2.7), with answers of MaxMind's own reader."""


def test_a_file_of_another_writer_gives_what_another_reader_read() -> None:
    data = zlib.decompress(base64.b64decode(FOREIGN))
    answers = {
        "9.255.255.255": (None, None),
        "10.0.0.0": (64496, "DE"),
        "10.1.0.0": (4200000000, "FR"),
        "10.1.255.255": (4200000000, "FR"),
        "10.2.0.0": (64496, "DE"),
        "192.0.2.127": (None, None),
        "192.0.2.128": (1, "US"),
        "192.0.2.255": (1, "US"),
        "2001:db8::1": (64499, "JP"),
        "2001:db8:7fff:ffff::": (64499, "JP"),
        "2001:db8:8000::": (65551, "BR"),
        "2001:db9::": (None, None),
        "::10.1.2.3": (4200000000, "FR"),
        "::ffff:10.1.2.3": (None, None),
        "::1": (None, None),
    }
    addresses = [ipaddress.ip_address(text) for text in answers]
    assert found(read_asn(data, "a.mmdb"), addresses) == [asn for asn, _ in answers.values()]
    assert found(read_country(data, "a.mmdb"), addresses) == [c for _, c in answers.values()]


def test_a_file_of_another_kind_says_what_it_is() -> None:
    data = database({ipaddress.IPv4Network("10.0.0.0/8"): {"a": 1}}, kind="GeoLite2-Country")
    with pytest.raises(EngineError) as refused:
        read_asn(data, "c.mmdb")
    assert str(refused.value) == "c.mmdb has no AS numbers: it is of the type 'GeoLite2-Country'"


@pytest.mark.parametrize("seed", range(4))
def test_damage_gives_an_error_or_a_table_and_nothing_else(seed: int) -> None:
    """Bytes that change, and files that are cut off anywhere."""
    chance = random.Random(seed)
    whole = database(random_entries(chance, 8, 6), aliases=ALIASES)
    refused = 0
    for _ in range(60):
        data = bytearray(whole)
        if chance.random() < 0.3:
            del data[chance.randrange(len(data)) :]
        else:
            for _ in range(chance.randint(1, 20)):
                # The tree is at the beginning, the metadata at the end.
                place = chance.choice((chance.randrange(len(data)), chance.randrange(300)))
                data[place if chance.random() < 0.6 else -1 - place % 250] = chance.getrandbits(8)
        for read in (read_asn, read_country):
            try:
                read(bytes(data), "a.mmdb")
            except EngineError as error:
                refused += 1
                assert str(error).startswith("a.mmdb ")  # noqa: PT017  # both are right
    assert refused > 20


@pytest.mark.parametrize("width", [1, 2, 3, 4])
def test_pointers_of_each_width_reach_both_ends(width: int) -> None:
    """The ends are those that the format states for each width."""
    first, last = ((0, 2047), (2048, 526335), (526336, 134744063), (0, 4294967295))[width - 1]
    for target in (first, min(last, 1 << 20)):
        size = 0 if width == 4 else target - first
        low = size.to_bytes(width + 1, "big") if width < 4 else target.to_bytes(5, "big")
        pointer = bytes([0x20 | (width - 1) << 3 | low[0]]) + low[1:]
        data = bytes(target) + encoded("here") + pointer
        assert Records(data).at(len(data) - len(pointer)) == "here"


def test_a_tree_with_a_cycle_is_refused() -> None:
    data = bytearray(database({ipaddress.IPv6Network("8000::/1"): {"asn": 1}}, width=24))
    data[0:3] = b"\0\0\0"
    with pytest.raises(EngineError, match=r"a\.mmdb is not a MaxMind DB, or is damaged"):
        read_asn(bytes(data), "a.mmdb")
