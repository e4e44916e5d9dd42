"""An open batch is cut where punctuations pass, and never breaks a promise."""

from __future__ import annotations

import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st

from gscope.capture.log.batches import OpenBatch, Part, StreamSpec, TupleRows, combined
from gscope.queries.expressions.types import Direction
from gscope.queries.streams.messages import Extent, Punctuation

UP = StreamSpec("s", (("tb", Direction.INCREASING),), epoch="tb")


def add(opened: OpenBatch, *epochs: int) -> None:
    batch = pa.record_batch({"tb": pa.array(epochs, pa.int64()), "n": list(range(len(epochs)))})
    opened.add(batch, (Extent("tb", min(epochs), max(epochs)),))


def in_memory(parts: list[Part]) -> list[TupleRows]:
    return [part for part in parts if isinstance(part, TupleRows)]


def values(parts: list[Part]) -> list[int]:
    return [value for part in in_memory(parts) for value in part.batch["tb"].to_pylist()]


def test_rows_are_cut_at_the_bound() -> None:
    opened = OpenBatch(UP)
    add(opened, 1, 3, 2)
    add(opened, 3, 4)
    add(opened, 1)
    (passed,) = opened.take_passed([Punctuation("tb", 3)])
    assert values(passed) == [1, 2, 1]
    assert combined(passed) == (Extent("tb", 1, 2),)
    assert values(opened.take_all()) == [3, 3, 4]
    assert (opened.rows, opened.size_bytes) == (0, 0)


def test_a_bound_that_passes_nothing_leaves_the_batch_open() -> None:
    opened = OpenBatch(UP)
    add(opened, 3, 4)
    assert opened.take_passed([Punctuation("tb", 3), Punctuation("unknown", 9)]) == []
    assert opened.rows == 2


def test_a_decreasing_column_is_cut_from_above() -> None:
    opened = OpenBatch(StreamSpec("s", (("tb", Direction.DECREASING),), epoch="tb"))
    add(opened, 5, 4, 3)
    (passed,) = opened.take_passed([Punctuation("tb", 4)])
    assert values(passed) == [5]
    assert values(opened.take_all()) == [4, 3]


def test_a_batch_keeps_a_copy_of_what_it_was_given() -> None:
    memory = bytearray((7).to_bytes(8, "little"))
    array = pa.Array.from_buffers(pa.int64(), 1, [None, pa.py_buffer(memory)])
    opened = OpenBatch(UP)
    opened.add(pa.record_batch({"tb": array}), (Extent("tb", 7, 7),))
    memory[0] = 9
    assert values(opened.take_all()) == [7]


def test_for_size_the_newest_epoch_stays_open() -> None:
    opened = OpenBatch(UP)
    add(opened, 1, 1, 2, 3)
    assert [values(parts) for parts in opened.take_for_size()] == [[1, 1, 2]]
    assert opened.rows == 1


def test_for_size_a_large_newest_epoch_becomes_a_batch_of_its_own() -> None:
    opened = OpenBatch(UP)
    add(opened, 1, 3, 3, 3)
    assert [values(parts) for parts in opened.take_for_size()] == [[1], [3, 3, 3]]
    assert opened.rows == 0


@given(
    st.lists(
        st.one_of(
            st.lists(st.tuples(st.integers(0, 9), st.integers(0, 9)), min_size=1, max_size=6),
            st.tuples(st.integers(0, 9), st.integers(0, 9)),
        ),
        max_size=8,
    )
)
def test_no_row_is_lost_and_none_that_stays_is_below_a_bound(
    moves: list[list[tuple[int, int]] | tuple[int, int]],
) -> None:
    opened = OpenBatch(
        StreamSpec("s", (("tb", Direction.INCREASING), ("t", Direction.DECREASING)), epoch="tb")
    )
    given_rows: list[tuple[int, int]] = []
    taken: list[tuple[int, int]] = []
    for move in moves:
        if isinstance(move, list):
            given_rows += move
            tb, t = [row[0] for row in move], [row[1] for row in move]
            extents = (Extent("tb", min(tb), max(tb)), Extent("t", min(t), max(t)))
            opened.add(pa.record_batch({"tb": tb, "t": t}), extents)
            continue
        for parts in opened.take_passed([Punctuation("tb", move[0]), Punctuation("t", move[1])]):
            cut = _rows(parts)
            taken += cut
            tb_extent, t_extent = combined(parts)
            assert (tb_extent.least, tb_extent.greatest) == (min(cut)[0], max(cut)[0])
            assert (t_extent.least, t_extent.greatest) == (
                min(row[1] for row in cut),
                max(row[1] for row in cut),
            )
        staying = opened.take_all()
        assert all(tb >= move[0] and t <= move[1] for tb, t in _rows(staying))
        for part in in_memory(staying):
            opened.add(part.batch, part.extents)
    assert sorted(taken + _rows(opened.take_all())) == sorted(given_rows)


def _rows(parts: list[Part]) -> list[tuple[int, int]]:
    return [
        pair
        for part in in_memory(parts)
        for pair in zip(part.batch["tb"].to_pylist(), part.batch["t"].to_pylist(), strict=True)
    ]
