"""Groups of several hosts as one: every fold, every type, NULLs, against a plain loop."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.capture.relay.lftas import FOLDS, VALUES, aggregation, folded, rows_of, table

from gscope.capture.log.stream_rows import conformed, extents_of
from gscope.capture.relay.partials import merged_groups
from gscope.errors import StreamError
from gscope.queries.catalog.aggregate.partial_op import PartialOp
from gscope.queries.expressions.types import GsqlType
from gscope.queries.streams.messages import Extent

KEYS = tuple(VALUES)

SAMPLES = {
    **dict.fromkeys(VALUES, (5, -3)),
    GsqlType.BOOL: (True, False),
    GsqlType.FLOAT: (1.5, -2.0),
    GsqlType.IP: (bytes(15) + b"\5", b"\xff" * 16),
}


@st.composite
def partial_tuples(draw: st.DrawFn) -> tuple[Any, list[tuple[Any, ...]]]:
    """An LFTA with some keys and folds, and tuples of it whose keys recur."""
    lfta = aggregation(
        draw(st.lists(st.sampled_from(KEYS), max_size=2)),
        draw(st.lists(st.sampled_from(FOLDS), min_size=1, max_size=4)),
        is_nullable=draw(st.booleans()),
        has_interface=draw(st.booleans()),
    )

    def values(kind: GsqlType, is_nullable: bool) -> st.SearchStrategy[Any]:
        return st.one_of(st.none(), VALUES[kind]) if is_nullable else VALUES[kind]

    epochs = st.integers(0, 2)
    row = st.tuples(
        epochs,
        epochs,
        *(values(c.type, c.is_nullable) for c in lfta.schema.columns[2:]),
        *([st.sampled_from([b"eth0", b"eth1"])] if lfta.has_interface_column else []),
    )
    return lfta, draw(st.lists(row, max_size=30))


@given(partial_tuples())
def test_groups_are_those_of_a_plain_loop(drawn: Any) -> None:
    lfta, rows = drawn
    merged = rows_of(merged_groups(table(lfta, rows), lfta))
    assert folded(lfta, merged) == folded(lfta, rows)
    assert len(merged) == len(folded(lfta, rows))
    assert [row[0] for row in merged] == sorted(row[0] for row in merged)


@pytest.mark.parametrize("fold", FOLDS, ids=lambda fold: f"{fold[0].value}-{fold[1].value}")
def test_a_fold_skips_nulls_and_is_null_without_a_value(fold: tuple[PartialOp, GsqlType]) -> None:
    op, kind = fold
    lfta = aggregation((), [fold])
    values = [SAMPLES[kind][n] for n in range(2)]
    nothing = 0 if op is PartialOp.COUNT else None
    rows = [(1, 1, values[0]), (2, 2, nothing), (1, 1, nothing), (1, 1, values[1]), (2, 2, nothing)]
    merged = rows_of(merged_groups(table(lfta, rows), lfta))
    assert folded(lfta, merged) == folded(lfta, rows)
    assert merged[1] == (2, 2, nothing)


def test_rows_of_narrow_integers_and_words_are_read_as_those_of_the_lfta() -> None:
    lfta = aggregation([GsqlType.STRING], [(PartialOp.COUNT, GsqlType.INT)], has_interface=True)
    sent = pa.table(
        {
            "interface": pa.DictionaryArray.from_arrays(pa.array([0], pa.int32()), [b"eth0"]),
            "tb": pa.array([7], pa.int32()),
            "fine": pa.array([70], pa.int64()),
            "k0": pa.array([b"x"]),
            "p0": pa.array([3], pa.int64()),
        }
    )
    rows = conformed(sent, lfta)
    assert rows_of(rows) == [(7, 70, b"x", 3, b"eth0")]
    assert extents_of(rows, lfta) == (Extent("tb", 7, 7), Extent("fine", 70, 70))


@pytest.mark.parametrize(
    ("column", "values", "complaint"),
    [
        ("p0", pa.array([1.5]), "expected p0 as int64, got 'double'"),
        ("p0", pa.array([None], pa.int64()), "p0 is NULL, which it cannot be"),
        ("other", pa.array([1]), "expected the columns tb, fine, p0, got 'tb, fine, p0, other'"),
        ("tb", pa.array([1], pa.uint64()), "expected tb as int64, got 'uint64'"),
    ],
)
def test_rows_of_another_shape_are_refused(column: str, values: pa.Array, complaint: str) -> None:
    lfta = aggregation((), [(PartialOp.COUNT, GsqlType.INT)])
    columns = {"tb": pa.array([1]), "fine": pa.array([1]), "p0": pa.array([1])}
    with pytest.raises(StreamError, match=complaint):
        conformed(pa.table({**columns, column: values}), lfta)
