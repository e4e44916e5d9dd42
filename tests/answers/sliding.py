"""Random window queries, each as GSQL and as brute force in DuckDB.

The brute force generates the ends of windows, joins every packet to all windows that hold it, and
groups. It has no slices, no partial aggregates and no incremental state.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from itertools import accumulate, pairwise
from typing import TYPE_CHECKING, Any

import duckdb
import pyarrow as pa
from tests.differential import addresses
from tests.differential.shown import shown
from tests.differential.sliding import CLOCK, Column, window_over
from tests.differential.syntax import Field, Type
from tests.differential.traffic import SECOND_NS, Traffic, random_traffic

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from random import Random

    from tests.differential.sliding import Window

INTERFACES = ("alpha", "beta", "gamma")
_YEAR_NS = 365 * 86400 * SECOND_NS
_GAPS_NS = (0, SECOND_NS, 40 * SECOND_NS, 3600 * SECOND_NS, _YEAR_NS)
_TABLES = {"PKT": "TRUE", "IP": "ipversion IS NOT NULL", "TCP": "protocol = 6"}
_ORIGIN = 1_600_000_000
_NUMBERED = f"SELECT increasing(time - {_ORIGIN}) AS number, len, protocol FROM alpha.IP"
_PER_TB = (
    "SELECT time/5 AS tb, protocol, count(*) AS n, sum(len) AS bytes FROM IP GROUP BY tb, protocol"
)
QUERIES = "".join(
    f"DEFINE {{ query_name '{name}'; visibility 'internal'; }} {text}; "
    for name, text in (("per_tb", _PER_TB), ("numbered", _NUMBERED))
)
"""The queries over whose results some windows slide: along a quotient of time, and a number."""

_INTS = ("time_ns", "len", "vlan", "ipversion", "protocol", "ttl", "srcPort", "destPort", "flags")

_NUMBERS = pa.schema([(name, pa.int64()) for name in ("number", "len", "protocol")])

_Aggregate = tuple[str, str, Type]
_ANY: tuple[_Aggregate, ...] = (
    ("count(*)", "count(*)", Type.INT),
    ("count({0})", "count({0})", Type.INT),
    ("sum({0})", "sum({0})", Type.INT),
    ("min({0})", "min({0})", Type.INT),
    ("max({0})", "max({0})", Type.INT),
    ("or_aggr({0})", "bit_or({0})", Type.INT),
    ("and_aggr({0})", "bit_and({0})", Type.INT),
    ("xor_aggr({0})", "bit_xor({0})", Type.INT),
    ("avg({0})", "avg({0})", Type.FLOAT),
    (
        "var_pop({0})",
        "(count({0}) * sum({0} * {0}) - sum({0}) * sum({0}))::DOUBLE / count({0}) ** 2",
        Type.FLOAT,
    ),
    ("bool_or({0} % 3 = 0)", "bool_or({0} % 3 = 0)", Type.BOOL),
    ("bool_and({0} % 3 <> 1)", "bool_and({0} % 3 <> 1)", Type.BOOL),
    ("count_distinct({0})", "count(DISTINCT {0})", Type.INT),
    ("count_dups({0})", "count({0}) - count(DISTINCT {0})", Type.INT),
    ("sum(DISTINCT {0})", "sum(DISTINCT {0})", Type.INT),
    ("median({0})", "median({0})", Type.FLOAT),
    ("quantile({0}, 0.25)", "quantile_cont({0}, 0.25)", Type.FLOAT),
    ("sum({0} / 2.0)", "sum({0} / 2.0)", Type.FLOAT),
    ("sum({0}) FILTER (WHERE len > 60)", "sum({0}) FILTER (WHERE len > 60)", Type.INT),
)
"""GSQL, SQL and type; sums of FLOAT are of halves, which are exact in any order."""


@dataclass(frozen=True, slots=True)
class _Source:
    """What windows are over.

    Attributes:
        arguments: columns that aggregates take.
        keys: group-by terms, alike in both languages, with their types.
        conditions: WHERE clauses.
        on: what windows slide along.
    """

    name: str
    arguments: tuple[str, ...]
    keys: tuple[tuple[str, Type], ...]
    conditions: tuple[str, ...]
    on: Column = CLOCK


_SOURCES = (
    _Source(
        "PKT",
        ("len", "vlan"),
        (("interface", Type.STRING), ("vlan", Type.INT), ("len % 5", Type.INT)),
        ("", "", "vlan IS NULL", "len > 60"),
    ),
    _Source(
        "IP",
        ("len", "ttl", "srcPort"),
        (("srcIP", Type.STRING), ("protocol", Type.INT), ("srcPort", Type.INT)),
        ("", "", "ttl = 64", "protocol <> 17"),
    ),
    _Source(
        "TCP",
        ("len", "flags", "destPort"),
        (("destPort", Type.INT), ("flags & 2", Type.INT), ("srcIP", Type.STRING)),
        ("", "", "", "len > 60"),
    ),
    _Source(
        "per_tb",
        ("n", "bytes"),
        (("protocol", Type.INT), ("n % 2", Type.INT)),
        ("", "n > 1"),
        Column("tb", "tb", 5 * SECOND_NS, Type.TIMESTAMP, 5 * SECOND_NS),
    ),
    _Source(
        "numbered",
        ("len",),
        (("protocol", Type.INT), ("len % 3", Type.INT)),
        ("", "len > 60"),
        Column("number", "number", SECOND_NS, None, SECOND_NS),
    ),
)


@dataclass(frozen=True, slots=True)
class Sliding:
    """A query over windows.

    Attributes:
        columns: GSQL, SQL and type of keys and aggregates.
        keys: how many of them are keys.
        having: alike in both languages, as ``condition`` is; empty for none.
    """

    name: str
    source: _Source
    window: Window
    condition: str
    columns: tuple[_Aggregate, ...]
    keys: int
    having: str

    @property
    def gsql(self) -> str:
        """The text for gscope."""
        columns = ", ".join(f"{text} AS c{n}" for n, (text, _, _) in enumerate(self.columns))
        keys = [f"{text} AS c{n}" for n, (text, _, _) in enumerate(self.columns[: self.keys])]
        return (
            f"DEFINE {{ query_name '{self.name}'; }} SELECT window_end, window_start, {columns} "
            f"FROM {self.source.name} {self.window.text}"
            + (f" WHERE {self.condition}" if self.condition else "")
            + (f" GROUP BY {', '.join(keys)}" if keys else "")
            + (f" HAVING {self.having}" if self.having else "")
        )

    @property
    def sql(self) -> str:
        """The brute force for DuckDB, over a table of the source and one of ``bursts``."""
        on, scale = self.window.on.name, self.window.scale
        columns = ", ".join(f"{text} AS c{n}" for n, (_, text, _) in enumerate(self.columns))
        keys = "".join(f", {text}" for _, text, _ in self.columns[: self.keys])
        return (
            f"SELECT window_end * {scale}, window_start * {scale}, {columns} "
            f"FROM ({self._windows}) "
            f"JOIN {self.source.name} ON {on} >= window_start AND {on} < window_end"
            + (f" WHERE {self.condition}" if self.condition else "")
            + f" GROUP BY window_end, window_start{keys}"
            + (f" HAVING {self.having}" if self.having else "")
        )

    @property
    def _windows(self) -> str:
        """All windows about the times of each burst of packets, by generating their ends."""
        first, last = f"first_{self.window.on.name}", f"last_{self.window.on.name}"
        lengths = self.window.lengths
        period = sum(lengths) if self.window.is_slices else lengths[1]
        ends = (
            f"SELECT unnest(range({first} // {period} - 1,"
            f" ({last} + {lengths[0]}) // {period} + 2)) * {period} AS t FROM bursts"
        )
        if not self.window.is_slices:
            return (
                f"SELECT DISTINCT t AS window_end, t - {lengths[0]} AS window_start FROM ({ends})"
            )
        edges = accumulate(lengths, initial=0)
        slices = ", ".join(f"({a}, {b})" for a, b in pairwise(edges))
        return (
            "SELECT DISTINCT t + b AS window_end, t + a AS window_start "
            f"FROM ({ends}), (VALUES {slices}) AS slices(a, b)"
        )

    @property
    def fields(self) -> tuple[Field, ...]:
        """The columns of the answer."""
        edge = self.window.on.kind or Type.INT
        kinds = [edge, edge, *(kind for _, _, kind in self.columns)]
        return tuple(Field(str(n), kind) for n, kind in enumerate(kinds))


def random_sliding(random: Random, count: int) -> list[Sliding]:
    """Return ``count`` queries: one over each source, then others with its condition and keys."""
    made = [_random(random, f"w{n}", source) for n, source in enumerate(_SOURCES)]
    while len(made) < count:
        like = random.choice(made)
        columns = (*like.columns[: like.keys], *_aggregates(random, like.source))
        window = window_over(random, like.source.on)
        made.append(replace(like, name=f"w{len(made)}", window=window, columns=columns, having=""))
    return made


def _random(random: Random, name: str, source: _Source) -> Sliding:
    keys = random.sample(source.keys, random.choice((0, 1, 1, 2)))
    aggregates = _aggregates(random, source)
    having = f"count(*) > {random.choice((1, 3, 8))}" if random.random() < 0.2 else ""
    columns = (*((key, key, kind) for key, kind in keys), *aggregates)
    condition = random.choice(source.conditions)
    window = window_over(random, source.on)
    return Sliding(name, source, window, condition, columns, len(keys), having)


def _aggregates(random: Random, source: _Source) -> list[_Aggregate]:
    known = [a for a in _ANY if "len" in source.arguments or "len" not in a[0]]
    chosen = random.sample(known, random.randint(1, 3))
    arguments = [random.choice(source.arguments) for _ in chosen]
    return [
        (gsql.format(of), sql.format(of), kind)
        for (gsql, sql, kind), of in zip(chosen, arguments, strict=True)
    ]


def bursts_of_traffic(random: Random, count: int) -> Traffic:
    """Return bursts of packets with gaps between them, one of them of a year."""
    skew_ns = random.choice((0, 2 * SECOND_NS))
    gaps = [*random.choices(_GAPS_NS[:-1], k=count - 2), _YEAR_NS]
    random.shuffle(gaps)
    packets = list(random_traffic(random).packets)
    for gap in gaps:
        begin = max((p.time_ns for p in packets), default=0) + gap
        burst = random_traffic(random).packets
        if burst:
            shift = begin - min(p.time_ns for p in burst) if packets else 0
            packets += [replace(p, time_ns=p.time_ns + shift) for p in burst]
    return Traffic(INTERFACES, tuple(packets), skew_ns)


class BruteForce:
    """DuckDB with the packets of ``traffic`` that are not late."""

    def __init__(self, traffic: Traffic) -> None:
        decoded, self.late = traffic.decoded()
        packets = [row for rows in decoded.values() for row in rows]
        table: dict[str, pa.Array] = {
            name: pa.array([row.get(name) for row in packets], pa.int64()) for name in _INTS
        }
        for name in ("srcIP", "destIP"):
            texts = [addresses.shown(p[name]) if name in p else None for p in packets]
            table[name] = pa.array(texts, pa.string())
        table["interface"] = pa.array([p["interface"].decode() for p in packets], pa.string())
        self._db = duckdb.connect()
        self._db.register("packets", pa.table(table))
        times = _bursts([p["time_ns"] for p in packets])
        bursts = {
            f"{edge}_{on}": [time // unit - origin for time in each]
            for edge, each in zip(("first", "last"), times, strict=True)
            for on, unit, origin in (
                (CLOCK.name, 1, 0),
                ("tb", 5 * SECOND_NS, 0),
                ("number", SECOND_NS, _ORIGIN),
            )
        }
        self._db.register("bursts", pa.table(bursts))
        for name, condition in _TABLES.items():
            self._db.execute(f"CREATE VIEW {name} AS FROM packets WHERE {condition}")
        self._db.execute(
            f"CREATE VIEW per_tb AS SELECT time_ns // {5 * SECOND_NS} AS tb, protocol,"
            " count(*) AS n, sum(len)::BIGINT AS bytes FROM IP GROUP BY ALL"
        )
        self._db.register("in_order", pa.Table.from_pylist(_in_order(decoded["alpha"]), _NUMBERS))
        self._db.execute("CREATE VIEW numbered AS FROM in_order")

    def rows(self, query: Sliding) -> list[tuple[str, ...]]:
        """Return the answer as a reader of CSV sees it, in no order."""
        names = [field.name for field in query.fields]
        found = self._db.execute(query.sql).fetchall()
        return shown([dict(zip(names, _plain(row), strict=True)) for row in found], query.fields)


def _in_order(packets: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return the rows of ``numbered``: a packet with a lower number than one before is skipped."""
    rows: list[dict[str, Any]] = []
    for packet in packets:
        number = packet["time_ns"] // SECOND_NS - _ORIGIN
        if "ipversion" in packet and (not rows or number >= rows[-1]["number"]):
            rows.append({"number": number, **{name: packet[name] for name in ("len", "protocol")}})
    return rows


def _plain(row: Sequence[object]) -> Iterator[object]:
    for value in row:
        yield value.encode() if isinstance(value, str) else value


def _bursts(times: list[int]) -> tuple[list[int], list[int]]:
    """Return first and last times of groups of packets with no hour between neighbours."""
    times = sorted(times)
    breaks = [n for n in range(1, len(times)) if times[n] - times[n - 1] > 3000 * SECOND_NS]
    starts = [0, *breaks]
    return [times[n] for n in starts], [times[n - 1] for n in [*breaks, len(times)]]
