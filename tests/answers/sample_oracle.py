"""The keyed hash of samples in SQL, and the packets of captures as DuckDB tables.

The hash is written down a second time, from the text of ``plan/sampling_hash.py``, in numbers of
128 bits. Packets are those that tshark reads.
"""

from __future__ import annotations

import hashlib
import ipaddress
from dataclasses import dataclass
from itertools import count
from typing import TYPE_CHECKING

import duckdb
import pyarrow as pa
from tests.newcomer.oracle import MACROS, packet_table

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from pathlib import Path

WORD = 1 << 64
_V4, _MAPPED = 0xFFFF, 0xFFFE
_NET_BITS = 24
"""The bits of the prefix of IPv4 addresses in the columns ``net…``; of IPv6 it is the address."""

_MACROS = (
    "product(a, b) AS ((a::UHUGEINT * b::UHUGEINT) & 18446744073709551615::UHUGEINT)::UBIGINT",
    "folded(h, bits) AS xor(h::UBIGINT, h::UBIGINT >> bits)",
    "finish(h, k) AS folded(product(folded(h, 32), k.second), 29)",
    "mixed(h, k) AS finish(product(h, k.first), k)",
    "step(h, word, k) AS product(xor(h::UBIGINT, word::UBIGINT), k.first)",
    f"number_word(x) AS coalesce(x::UBIGINT, {0x5DEECE66D1CE4E5B}::UBIGINT)",
    "address_word(high, low, k) AS "
    "xor(low::UBIGINT, mixed(xor(high::UBIGINT, k.address::UBIGINT), k))",
    "packet_hash(number, link, k) AS mixed(xor(link::UBIGINT, number::UBIGINT), k)",
)


@dataclass(frozen=True)
class Term:
    """A term of a sample: the column of the answer in SQL, and whether it holds addresses."""

    column: str
    is_address: bool = False

    @property
    def word(self) -> str:
        """The word that is hashed, in SQL."""
        if self.is_address:
            return f"address_word(f.{self.column}_high, f.{self.column}_low, k)"
        return f"number_word(f.{self.column})"

    @property
    def columns(self) -> tuple[str, ...]:
        """The columns that it is read from."""
        names = ("_high", "_low") if self.is_address else ("",)
        return tuple(f"{self.column}{name}" for name in names)


def hash_of(terms: tuple[Term, ...]) -> str:
    """Return the hash of the terms of rows ``f`` by the key ``k``, in SQL."""
    result = "k.start"
    for term in terms:
        result = f"step({result}, {term.word}, k)"
    return f"finish({result}, k)"


def open_packets(captures: Mapping[str, Path]) -> duckdb.DuckDBPyConnection:
    """Return a database with the packets of all captures, and their addresses in halves.

    Its table ``packet`` has the columns of ``tests.newcomer.oracle`` and ``link``, ``number`` (on
    the link, from 0), and for each address and its ``net`` the halves of 128 bits.
    """
    database = duckdb.connect()
    tables = []
    for link, capture in captures.items():
        rows = packet_table(capture)
        named = rows.append_column("link", pa.array([link] * len(rows)))
        tables.append(named.append_column("number", pa.array(range(len(rows)))))
    database.register("every", pa.concat_tables(tables, promote_options="permissive"))
    texts = {
        text for table in tables for name in ("src", "dst") for text in table[name].to_pylist()
    }
    known = [_halves(text) for text in sorted(text for text in texts if text)]
    database.register("addresses", pa.Table.from_pylist(known, schema=_ADDRESSES))
    sides = [
        f"{side}s.{own} AS {side}{own}"
        for side in ("src", "dst")
        for own in ("_high", "_low", "_net", "_net_high", "_net_low")
    ]
    database.execute(
        f"CREATE TABLE packet AS SELECT e.*, {', '.join(sides)} FROM every e "
        "LEFT JOIN addresses srcs ON srcs.text = e.src "
        "LEFT JOIN addresses dsts ON dsts.text = e.dst"
    )
    for macro in (*MACROS, *_MACROS):
        database.execute(f"CREATE MACRO {macro}")
    return database


_ADDRESSES = pa.schema(
    [
        *(("text", pa.string()), ("_high", pa.uint64()), ("_low", pa.uint64())),
        *(("_net", pa.string()), ("_net_high", pa.uint64()), ("_net_low", pa.uint64())),
    ]
)


def _halves(text: str) -> dict[str, str | int]:
    address = ipaddress.ip_address(text)
    net = ipaddress.ip_network(f"{text}/{_NET_BITS if address.version == 4 else 128}", strict=False)
    found: dict[str, str | int] = {"text": text, "_net": str(net.network_address)}
    for name, one in (("", address), ("_net", net.network_address)):
        high, low = divmod(int(one), WORD)
        if one.version == 4:
            low |= _V4 << 32
        elif (high, low >> 32) == (0, _V4):
            low ^= (_V4 ^ _MAPPED) << 32
        found |= {f"{name}_high": high, f"{name}_low": low}
    return found


def add_keys(database: duckdb.DuckDBPyConnection, seeds: range, links: tuple[str, ...]) -> None:
    """Create the table ``keys``: for each seed the constants of the hash, and those of links."""
    rows = [_key(seed, links) for seed in seeds]
    schema = pa.schema([(name, pa.uint64()) for name in rows[0]])
    database.register("all_keys", pa.Table.from_pylist(rows, schema=schema))
    database.execute("CREATE OR REPLACE TABLE keys AS SELECT * FROM all_keys")


def _key(seed: int, links: tuple[str, ...]) -> dict[str, int]:
    words = _words(f"gscope sampling {seed}")
    start, address, packet = (next(words) for _ in range(3))
    odd = (word | 1 for word in words)
    factors = (word for word in odd if 24 <= word.bit_count() <= 40)
    first, second = next(factors), next(factors)
    key = {"seed": seed, "start": start, "address": address, "first": first, "second": second}
    for link in links:
        digest = hashlib.blake2b(link.encode(), digest_size=8).digest()
        mixed = (packet ^ int.from_bytes(digest, "little")) * first % WORD
        mixed = (mixed ^ mixed >> 32) * second % WORD
        key[f"link_{link}"] = mixed ^ mixed >> 29
    return key


def _words(prefix: str) -> Iterator[int]:
    for number in count():
        digest = hashlib.blake2b(f"{prefix} {number}".encode(), digest_size=8).digest()
        yield int.from_bytes(digest, "little")
