"""A step that comes in parts, cut anywhere in its windows, has the answers of the whole."""

from __future__ import annotations

import itertools
import random
from typing import TYPE_CHECKING

import pyarrow as pa
import pytest
from tests.engine.sampling import test_samplers
from tests.engine.sampling.sampled import Sampled
from tests.engine.sampling.test_float_superaggregates import QUERY as FLOATS
from tests.engine.sampling.test_kernels import EVERYTHING, stream
from tests.engine.sampling.test_sample_steps import QUERY as STEPS
from tests.engine.sampling.test_sample_steps import Plane, packets_of
from tests.engine.sampling.test_stateful import CODE
from tests.engine.sampling.test_stateful import QUERY as BUDGET
from tests.engine.sampling.test_superaggregates import QUERIES
from tests.engine.sampling.test_wide_sums import QUERY as WIDE

from gscope.engine.sampling.fold import fold, fold_parts, windows_of
from gscope.engine.sampling.tuples import Segment, read_parts, read_tuples
from gscope.engine.sampling.values import SampleRows
from gscope.engine.spark.tasks.sample_task import parts_of
from gscope.queries.analysis.typing.user_code import offer, withdraw
from gscope.queries.catalog.user_functions.files import UserFile

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    import numpy as np

TEXTS = [
    test_samplers.SUBSET_SUM.format(size=3),
    test_samplers.BY_SOURCE.format(size=3),
    test_samplers.HEAVY.format(size=7),
    test_samplers.MIN_HASH.format(size=3),
    test_samplers.RESERVOIR.format(size=4),
    test_samplers.FLOWS.format(size=3),
    EVERYTHING.replace("first(destIP),\n  last(destIP), ", ""),
    *(query.text for query in QUERIES),
    FLOATS,
    WIDE,
    BUDGET,
]


@pytest.fixture(autouse=True)
def _code() -> Iterator[None]:
    offer([UserFile("budget.py", CODE)])
    yield
    withdraw()


def cut(rows: SampleRows, chance: random.Random) -> list[SampleRows]:
    """The rows in parts, some of them empty."""
    places = sorted(chance.randrange(rows.count + 1) for _ in range(chance.randrange(1, 6)))
    edges = [0, *places, rows.count]
    return [
        SampleRows(rows.node, rows.table.slice(start, end - start))
        for start, end in itertools.pairwise(edges)
    ]


@pytest.mark.parametrize("number", range(len(TEXTS)))
def test_parts_have_the_answers_of_the_whole(number: int) -> None:
    query = Sampled(TEXTS[number])
    for seed in range(12):
        chance = random.Random(seed)
        packets = [
            {
                **each,
                "FIN": seed % 2,
                "srcPort": each["destPort"],
                "protocol": 6,
                "ttl": each["ttl"] % (16 if TEXTS[number] in (FLOATS, WIDE) else 256),
            }
            for each in stream(seed, 90)
        ]
        for each in packets:
            each["win"] = each["ttl"] if each["ttl"] > 50 else None
        rows = query.rows([each for each in packets if each["len"] != 13])
        tables: list[pa.Table] = []
        whole = fold(query.node, rows, None, tables.append)
        expected = rows_of(query, tables)

        tables.clear()
        pieces = cut(rows, chance)
        parts = [(piece, windows_of(piece)) for piece in pieces]
        folded = fold_parts(query.node, parts, None, tables.append)
        assert rows_of(query, tables) == expected, seed
        assert (folded.left_out, folded.wrapped) == (whole.left_out, whole.wrapped)
        assert states_of([folded.states]) == states_of([whole.states])

        tables.clear()
        halves = [
            fold_parts(query.node, of_half(pieces, half), None, tables.append) for half in range(2)
        ]
        assert rows_of(query, tables) == expected, seed
        assert states_of([half.states for half in halves]) == states_of([whole.states])


def rows_of(query: Sampled, tables: list[pa.Table]) -> list[str]:
    """The rows of an answer as texts, since NaN does not equal itself."""
    return sorted(repr(row) for table in tables for row in query.plain(table))


def of_half(pieces: list[SampleRows], half: int) -> Iterator[tuple[SampleRows, np.ndarray]]:
    """The tuples of half of the supergroups in each part, with the windows of all."""
    for piece in pieces:
        chosen = pa.array(parts_of(piece.supergroup_keys(), 2) == half)
        yield SampleRows(piece.node, piece.table.filter(chosen)), windows_of(piece)


def states_of(tables: list[pa.Table | None]) -> list[str]:
    return sorted(repr(row) for table in tables if table is not None for row in table.to_pylist())


@pytest.mark.parametrize("seed", range(6))
def test_parts_of_segments_are_in_the_order_of_the_whole(tmp_path: Path, seed: int) -> None:
    chance = random.Random(seed)
    plane = Plane(Sampled(STEPS), tmp_path)
    segments = []
    for every in packets_of(chance).values():
        while every:
            size = chance.randrange(1, 15)
            some, every = every[:size], every[size:]
            chance.shuffle(some)  # packets of a segment need not be in order
            first = min(each["time_ns"] for each in some)
            segments.append(Segment(plane.segment(some), begins=first - chance.randrange(2)))
    node = plane.query.node
    whole = read_tuples(node, segments).table
    for size in (1, 7, 40, 1000):
        parts = list(read_parts(node, segments, size))
        assert pa.concat_tables([part.table for part in parts]).equals(whole)
        assert size >= 1000 or len(parts) > 1
    unknown = [*segments[1:], Segment(segments[0].path)]
    assert len(list(read_parts(node, unknown, 1))) == 1
