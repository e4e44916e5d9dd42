"""Compares answers of the library with those of oracles, over one trace."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING

from tests.golden.driver import Variation, answer
from tests.library import tshark
from tests.library.oracles import FIELD_QUERIES, FIELDS, ORACLES, SECOND, Oracle
from tests.library.trace import Part, write_trace
from tests.reference.reference import when

from gscope.capture.settings import SECOND_NS
from gscope.queries.compile import CompileContext, QueryText, compile_queries

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from pyspark.sql import SparkSession
    from tests.golden.driver import Row
    from tests.library.tshark import Packet

LIBRARY = Path(__file__).parents[2] / "queries" / "library"
DIGITS = 9
"""The digits in which numbers with a point agree; sums in another order differ in the last ones."""

_STEPS_BACK = Variation("library", skew_ns=3600 * SECOND_NS, interprets_plans=True)
"""The captures step back in time, as captures do."""


@dataclass(frozen=True, slots=True)
class Comparison:
    """The rows of a query and of its oracle.

    Attributes:
        query: its name.
        oracle: what it was compared with.
        agreeing: how many rows are equal.
        missing: rows that only the oracle has.
        extra: rows that only gscope has.
        captures: how many shared captures have rows.
        made: number of generated traces that have rows.
        differing: the parts with missing or extra rows, and how many.
    """

    query: str
    oracle: Oracle
    agreeing: int
    missing: list[Row]
    extra: list[Row]
    captures: int
    made: int
    differing: Counter[str]


def compare(folder: Path, spark: SparkSession) -> list[Comparison]:
    """Return the comparison of each query for users; the trace is written into ``folder``."""
    path = folder / "trace.pcapng"
    parts = write_trace(path)
    packets = tshark.read(path)
    texts = [QueryText((LIBRARY / f"{q}.gsql").read_text(), f"{q}.gsql") for q in ORACLES]
    texts.append(QueryText(FIELD_QUERIES, "fields.gsql"))
    program = compile_queries(texts, CompileContext(("trace",))).program
    answers = answer(program, {"trace": [path]}, _STEPS_BACK, spark)
    oracles = [*ORACLES.items(), *FIELDS.items(), *SECOND.items()]
    return [
        _compared(query, answers[query], oracle, packets, parts)
        for query, oracle in sorted(oracles, key=lambda pair: pair[0])
    ]


def _compared(
    query: str,
    rows: Iterable[Row],
    oracle: Oracle,
    packets: Sequence[Packet],
    parts: Sequence[Part],
) -> Comparison:
    wanted = [with_time(values, oracle.seconds) for values in oracle.rows(packets)]
    floats = {n for values in wanted for n, value in enumerate(values) if isinstance(value, float)}
    want = Counter(tuple(map(text_of, values)) for values in wanted)
    have = Counter(
        tuple(text_of(float(v)) if n in floats and v else v for n, v in enumerate(row))
        for row in rows
    )
    missing, extra = want - have, have - want
    seen = {part_of(row, parts) for row in want | have}
    return Comparison(
        query,
        oracle,
        (want & have).total(),
        sorted(missing.elements()),
        sorted(extra.elements()),
        sum(not part.is_made for part in seen),
        sum(part.is_made for part in seen),
        Counter(part_of(row, parts).name for row in (missing + extra).elements()),
    )


def part_of(row: Row, parts: Sequence[Part]) -> Part:
    """Return the part of the trace that a row is about, by the time in its first column."""
    text, _, _ = row[0].partition(".")
    seconds = int(text) if text.isdigit() else datetime.fromisoformat(f"{text}Z").timestamp()
    hour = seconds // 3600
    return max((p for p in parts if p.first_hour <= hour), key=lambda p: p.first_hour)


def with_time(values: Sequence[object], seconds: int | None) -> tuple[object, ...]:
    """Return the values of an oracle, with the time of the first one if that counts ``seconds``."""
    first, *others = values
    if seconds is not None:
        assert isinstance(first, int)
        first = when(first * seconds * 10**9)
    return (first, *others)


def text_of(value: object) -> str:
    """Return a value as text, numbers with a point to ``DIGITS`` digits, NULL as ""."""
    if isinstance(value, float):
        return f"{value:.{DIGITS}g}"
    return "" if value is None else str(value)
