from __future__ import annotations

from itertools import permutations

import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st

from gscope.cli.delivery.answer_order import AnswerOrder
from gscope.cli.delivery.reorder import Reorder
from gscope.queries.plan.row_order import SortKey

_values = st.lists(st.one_of(st.none(), st.integers(0, 30)), max_size=8)


@given(st.lists(st.tuples(_values, st.integers(0, 5)), max_size=8))
def test_rows_leave_in_order_once_and_none_before_its_time(
    deliveries: list[tuple[list[int | None], int]],
) -> None:
    reorder = Reorder("t")
    bound = 0
    left: list[int | None] = []
    came: list[int | None] = []
    for values, step in deliveries:
        kept = [v for v in values if v is None or v >= bound]
        came += kept
        reorder.add(pa.table({"t": pa.array(kept, pa.int64())}))
        bound += step
        table = reorder.release(bound)
        if table is not None:
            assert all(v is None or v < bound for v in table["t"].to_pylist())
            left += table["t"].to_pylist()
    rest = reorder.rest()
    left += rest["t"].to_pylist() if rest is not None else []
    times = [v for v in left if v is not None]
    assert times == sorted(v for v in came if v is not None)
    assert len(left) == len(came)


def test_without_a_column_rows_stay_as_they_came() -> None:
    reorder = Reorder(None)
    reorder.add(pa.table({"t": [2, 1]}))
    rest = reorder.rest()
    assert rest is not None
    assert rest["t"].to_pylist() == [2, 1]
    assert reorder.rest() is None


def test_answers_of_one_time_are_in_the_order_of_their_values() -> None:
    rows = [(3, 1, "b"), (1, 2, "a"), (3, 1, "a"), (2, 9, "c"), (3, 0, "z"), (2, 9, "b")]
    for number, shuffled in enumerate(permutations(rows)):
        reorder = Reorder("t", AnswerOrder(("t",)))
        for each in shuffled[:3], shuffled[3:]:
            names = ("t", "x", "y")
            reorder.add(pa.table({n: [row[i] for row in each] for i, n in enumerate(names)}))
        first, rest = reorder.release(3), reorder.rest()
        assert first is not None
        assert rest is not None
        found = [tuple(row.values()) for row in (*first.to_pylist(), *rest.to_pylist())]
        assert found == sorted(rows), number


def test_answers_of_one_epoch_are_in_the_order_of_their_query() -> None:
    rows = [(3, 1, "b"), (1, 2, "a"), (3, 1, "a"), (2, 9, "c"), (3, 0, "z"), (2, 9, "b")]
    for shuffled in permutations(rows):
        reorder = Reorder("t", AnswerOrder(("t",), (SortKey("x", is_descending=True),)))
        names = ("t", "x", "y")
        reorder.add(pa.table({n: [row[i] for row in shuffled] for i, n in enumerate(names)}))
        first, rest = reorder.release(3), reorder.rest()
        assert first is not None
        assert rest is not None
        found = [tuple(row.values()) for row in (*first.to_pylist(), *rest.to_pylist())]
        assert found == sorted(rows, key=lambda row: (row[0], -row[1], row[2]))
