"""Looked-up values in answers: groups by address become groups by name.

The oracle is a plain loop.
"""

from __future__ import annotations

import ipaddress
from collections import Counter
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest
from tests.answers.test_address_families import ADDRESSES, write_capture
from tests.engine.lookups.maxmind_writer import ALIASES, database
from tests.golden.driver import COMPILED, RESTLESS, answer

from gscope.errors import ResolveError, UnsupportedError
from gscope.queries.analysis.typing import lookups
from gscope.queries.compile import CompileContext, QueryText, compile_queries
from gscope.queries.lookup_files import LOOKUP_NAMES
from gscope.queries.plan.lookups import with_lookups

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from pyspark.sql import SparkSession
    from tests.golden.driver import Variation

    from gscope.queries.plan.program import Program

NETWORKS = {
    "10.0.0.0/8": "ten",
    "10.0.0.64/26": "lab",
    "192.168.0.0/16": "home",
    "0.0.0.0/0": "world",
    "::ffff:0:0/96": "mapped",
    "2001:db8::/32": "documents",
    "fe80::/10": "link",
}
COUNTRIES: dict[str, dict[str, Any]] = {
    "8.0.0.0/8": {"autonomous_system_number": 15169, "country": {"iso_code": "US"}},
    "8.8.0.0/16": {"autonomous_system_number": 4200000000, "country": {"iso_code": "DE"}},
    "192.168.0.0/16": {"country": {"iso_code": "DE"}},
    "2001:db8::/48": {"autonomous_system_number": 64496, "country": {}},
}
TIMES = 3


@pytest.fixture(autouse=True)
def _offered() -> Iterator[None]:
    lookups.offer(LOOKUP_NAMES)
    yield
    lookups.offer(())


def compiled(query: str, folder: Path, partitions: int = 1) -> Program:
    networks, services = folder / "networks.csv", folder / "services"
    networks.write_text("".join(f"{n},{name}\n" for n, name in NETWORKS.items()), encoding="utf-8")
    services.write_text("compressnet 2/tcp\nmanagement 2/udp\n", encoding="utf-8")
    context = replace(CompileContext(("a",), {}, {}), partitions=partitions)
    program = compile_queries([QueryText(query, "q")], context).program
    files = {"networks": networks, "services": services}
    if "vendor" in query:
        files["vendors"] = folder / "manuf"
        files["vendors"].write_text("00:00:00\tXerox\tXerox Corporation\n", encoding="utf-8")
    if "country" in query:
        files["asn"] = files["country"] = folder / "db.mmdb"
        records = {ipaddress.ip_network(text): record for text, record in COUNTRIES.items()}
        (folder / "db.mmdb").write_bytes(database(records, aliases=ALIASES))
    return with_lookups(program, {name: str(path) for name, path in files.items()})


def name_of(address: ipaddress.IPv4Address | ipaddress.IPv6Address) -> str:
    """The name of the narrowest network that has the address."""
    networks = {ipaddress.ip_network(text): name for text, name in NETWORKS.items()}
    holding = [n for n in networks if n.version == address.version and address in n]
    return networks[max(holding, key=lambda n: n.prefixlen)] if holding else ""


def queried(query: str, folder: Path, session: SparkSession, way: Variation) -> list[list[str]]:
    path = write_capture(folder, ADDRESSES * TIMES)
    (rows,) = answer(compiled(query, folder), {"a": [path]}, way, session).values()
    return sorted([list(row[1:]) for row in rows])


@pytest.mark.spark
@pytest.mark.parametrize("variation", [COMPILED, RESTLESS], ids=lambda v: v.name)
def test_groups_by_name_are_those_of_single_packets(
    variation: Variation, tmp_path: Path, spark: SparkSession
) -> None:
    """The LFTA groups by address.

    All addresses with one name, and those with none, are one group.
    """
    query = (
        "SELECT tb, coalesce(network(srcIP), '?') AS net, service(destPort, protocol) AS s,"
        " count(*) AS n, sum(len) AS bytes, count_distinct(srcIP) AS addresses FROM UDP"
        " GROUP BY time/3600 AS tb, network(srcIP), service(destPort, protocol)"
    )
    (lfta,) = compiled(query, tmp_path).lftas
    assert [key.name for key in lfta.keys] == ["tb", "srcIP", "destPort", "protocol"]
    names = Counter(name_of(address) or "?" for address in ADDRESSES)
    lengths = Counter[str]()
    for address in ADDRESSES:
        lengths[name_of(address) or "?"] += TIMES * (14 + (28 if address.version == 4 else 48))
    expected = [
        [name, "management", str(TIMES * count), str(lengths[name]), str(count)]
        for name, count in names.items()
    ]
    assert queried(query, tmp_path, spark, variation) == sorted(expected)


@pytest.mark.spark
def test_countries_numbers_of_systems_and_makers(tmp_path: Path, spark: SparkSession) -> None:
    query = (
        "SELECT tb, country(srcIP) AS country, asn(srcIP) AS asn, vendor(srcMAC) AS maker,"
        " count(*) AS n FROM UDP GROUP BY time/3600 AS tb, country(srcIP), asn(srcIP),"
        " vendor(srcMAC)"
    )
    networks = [ipaddress.ip_network(text) for text in COUNTRIES]
    groups = Counter[tuple[str, str]]()
    for address in ADDRESSES:
        # Files of MaxMind have IPv4 also as ::ffff:a.b.c.d and as ::a.b.c.d.
        bits = int(address)
        is_four = address.version == 4 or bits >> 32 in (0, 0xFFFF)
        plain = ipaddress.IPv4Address(bits & 0xFFFFFFFF) if is_four else address
        holding = [n for n in networks if n.version == plain.version and plain in n]
        record: dict[str, Any] = {}
        if holding:
            record = COUNTRIES[str(max(holding, key=lambda n: n.prefixlen))]
        number = str(record.get("autonomous_system_number", ""))
        groups[record.get("country", {}).get("iso_code", ""), number] += TIMES
    assert len(groups) == 4
    expected = sorted([*group, "Xerox Corporation", str(count)] for group, count in groups.items())
    assert queried(query, tmp_path, spark, RESTLESS) == expected


@pytest.mark.spark
def test_names_of_rows_conditions_and_constants(tmp_path: Path, spark: SparkSession) -> None:
    query = (
        "SELECT time, srcIP, network(srcIP) AS net, service(srcPort, 17) AS none,"
        " network('10.0.0.70') AS lab, service(2, 6) AS two FROM UDP"
        " WHERE network(srcIP) IS NOT NULL AND network(srcIP) <> 'world'"
    )
    rows = queried(query, tmp_path, spark, COMPILED)
    named = [name for address in ADDRESSES for name in [name_of(address)] * TIMES]
    kept = sorted(name for name in named if name and name != "world")
    assert sorted(row[1] for row in rows) == kept
    assert {tuple(row[2:]) for row in rows} == {("", "lab", "compressnet")}


@pytest.mark.spark
def test_windows_have_names_as_epochs_have(tmp_path: Path, spark: SparkSession) -> None:
    query = (
        "SELECT window_end, network(srcIP) AS net, count(*) AS n FROM UDP [RANGE 60 SLIDE 60]"
        " GROUP BY network(srcIP)"
    )
    names = Counter(name_of(address) for address in ADDRESSES * TIMES)
    expected = sorted([name, str(count)] for name, count in names.items())
    assert queried(query, tmp_path, spark, RESTLESS) == expected


def test_an_lfta_ships_rows_if_a_term_has_a_part_that_it_cannot_group_by(tmp_path: Path) -> None:
    query = (
        "SELECT tb, count(*) FROM TCP GROUP BY time/60 AS tb,"
        " coalesce(network(srcIP), http_host(TCP_data))"
    )
    (lfta,) = compiled(query, tmp_path).lftas
    assert not lfta.is_aggregation
    assert [column.name for column in lfta.columns] == ["tb", "srcIP", "c"]


def test_a_function_without_its_file_is_refused_with_the_remedy(tmp_path: Path) -> None:
    lookups.offer(("services",))
    with pytest.raises(ResolveError, match="network needs the file of the lookup networks") as said:
        compiled("SELECT network(srcIP) FROM IP", tmp_path)
    assert "--lookup networks=FILE" in str(said.value)
    assert dict(compiled("SELECT service(srcPort, 6) FROM IP", tmp_path).lookups).keys() == {
        "services"
    }


@pytest.mark.parametrize(
    "query",
    [
        "SELECT tb, network(srcIP), running_sum(len) FROM IP GROUP BY time/60 AS tb, srcIP"
        " CLOSING_WHEN count(*) = 0",
        "SELECT tb, srcIP FROM IP GROUP BY time/60 AS tb, srcIP CLOSING_WHEN network(srcIP) = 'x'",
        "SELECT tb, network(srcIP), count(*) FROM IP GROUP BY time/60 AS tb, network(srcIP)"
        " SUPERGROUP tb CLEANING_WHEN count_distinct$(*) > 10 CLEANING_BY count(*) > 1",
    ],
    ids=["running", "closing", "sampling"],
)
def test_what_spark_does_not_evaluate_is_refused(query: str, tmp_path: Path) -> None:
    with pytest.raises(UnsupportedError, match="q calls network in") as said:
        compiled(query, tmp_path)
    assert "call it in a query that reads the answer" in str(said.value)
