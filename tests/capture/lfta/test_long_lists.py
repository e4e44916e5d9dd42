"""Long IN lists: found by search in a table, in a kernel whose source does not know the list."""

from __future__ import annotations

import random
from ipaddress import ip_address
from typing import TYPE_CHECKING

import pytest
from tests.capture.lfta.lfta_builders import block_of, ipv4, ipv6, udp
from tests.capture.lfta.lfta_collect import answer, compiled, interpreted, run

from gscope.capture.lfta.codegen.generate import generate
from gscope.queries.compile import CompileContext, QueryText, compile_queries

if TYPE_CHECKING:
    from gscope.queries.plan.program import Lfta

QUERY = "SELECT time, srcIP, destIP, srcPort, destPort FROM UDP WHERE "


def lfta_of(where: str) -> Lfta:
    compiled_set = compile_queries(
        [QueryText(QUERY + where, "test")], CompileContext(interfaces=("main",))
    )
    (lfta,) = compiled_set.program.lftas
    return lfta


def test_3000_ports_are_found_and_no_others() -> None:
    chance = random.Random(6)
    ports = chance.sample(range(1, 65536), 3000)
    lfta = lfta_of(f"srcPort IN ({', '.join(map(str, ports))}) AND destPort NOT IN (7, {ports[0]})")
    sent = chance.sample(range(65536), 2000) + ports[:500]
    block = block_of([(0, ipv4(1, 2, udp(port, 7 + port % 2))) for port in sent])
    expected, _ = run(interpreted(), [lfta], [block])
    rows, _ = run(compiled(), [lfta], [block])
    assert answer(lfta, rows[lfta.name]) == answer(lfta, expected[lfta.name])
    wanted = sorted(p for p in sent if p in set(ports) and 7 + p % 2 not in {7, ports[0]})
    assert sorted(row["srcPort"] for row in rows[lfta.name]) == wanted


def test_100_000_addresses_of_both_versions_are_found_and_no_others() -> None:
    chance = random.Random(7)
    narrow = [chance.getrandbits(32) for _ in range(80_000)]
    broad = [0x2001 << 112 | chance.getrandbits(80) for _ in range(20_000)]
    texts = [str(ip_address(n)) for n in narrow]
    texts += [ip_address(n).compressed for n in broad]
    chance.shuffle(texts)
    listed = "', '".join(texts)
    lfta = lfta_of(f"srcIP IN ('{listed}')")
    others = [chance.getrandbits(32) for _ in range(1000)]
    packets = [ipv4(a, 2, udp(1, 2)) for a in (*narrow[:1000], *others, 0, 2**32 - 1)]
    strangers = [chance.getrandbits(128) for _ in range(1000)] + [n + 1 for n in broad[:500]]
    packets += [ipv6(a, 2, udp(1, 2)) for a in (*broad[:1000], *strangers)]
    rows, _ = run(compiled(), [lfta], [block_of([(0, packet) for packet in packets])])
    held = set(texts)
    asked = [str(ip_address(n)) for n in (*narrow[:1000], *others, 0, 2**32 - 1)]
    asked += [ip_address(n).compressed for n in (*broad[:1000], *strangers)]
    assert len(rows[lfta.name]) == sum(text in held for text in asked) >= 2000


@pytest.mark.parametrize("field", ["srcPort", "srcIP"])
def test_the_source_of_a_kernel_does_not_depend_on_the_list(field: str) -> None:
    few, many = (
        generate([lfta_of(f"{field} IN ({', '.join(map(str, range(1, count)))})")])
        for count in (100, 20_000)
    )
    assert few.source == many.source
    assert len(few.literals) < len(many.literals)
