"""LIMIT and ORDER BY of selections in delivery: over steps, portions and kills."""

from __future__ import annotations

import random
from typing import TYPE_CHECKING

import pyarrow as pa
import pytest
from tests.cli.delivery.test_delivery import Job, Killed, ScriptedSink

from gscope.cli.delivery import rows_until_end
from gscope.cli.delivery.checkpoint import DeliveryCheckpoint, StreamPosition
from gscope.cli.delivery.delivery import Delivery
from gscope.cli.delivery.rows_until_end import RowsUntilEnd
from gscope.errors import EngineError
from gscope.queries.expressions.schema import ColumnSchema, Schema
from gscope.queries.expressions.types import GsqlType
from gscope.queries.plan.program import Program, QueryInput, SelectionNode
from gscope.queries.plan.row_order import Order, SortKey

if TYPE_CHECKING:
    from pathlib import Path

SCHEMA = Schema((ColumnSchema("n", GsqlType.INT),))


def program(*orders: Order | None) -> Program:
    names = ["q", "r", "s"][: len(orders)]
    nodes = tuple(SelectionNode(n, QueryInput(""), None, (), SCHEMA) for n in names)
    return Program(
        ("a",),
        (),
        nodes,
        tuple((n, QueryInput(n)) for n in names),
        tuple((n, SCHEMA) for n in names),
        orders=tuple((n, o) for n, o in zip(names, orders, strict=True) if o is not None),
    )


HEAD = Order((), 3, is_selection=True)


def table(*values: int) -> pa.Table:
    return pa.table({"n": pa.array(values, pa.int64())})


def rows_of(answers: Delivery, query: str, *values: int) -> None:
    answers.on_rows([(query, [table(*values)])], {"s": StreamPosition()}, lambda _: None)


def test_an_answer_is_complete_after_its_limit(tmp_path: Path) -> None:
    sink = ScriptedSink([])
    answers = Delivery(program(HEAD), tmp_path, sink)
    answers.begin()
    rows_of(answers, "q", 1, 2)
    assert not answers.is_complete
    rows_of(answers, "q", 3, 4)
    rows_of(answers, "q", 5)
    answers.finish()
    assert (sink.rows, answers.rows, answers.is_complete) == ([1, 2, 3], {"q": 3}, True)


def test_rows_beyond_the_limit_are_not_read(tmp_path: Path) -> None:
    sink = ScriptedSink([])
    answers = Delivery(program(HEAD), tmp_path, sink)

    def tables() -> object:
        yield table(1, 2, 3)
        pytest.fail("read on")

    answers.on_rows([("q", tables())], {}, lambda _: None)  # type: ignore[list-item]
    assert sink.rows == [1, 2, 3]


@pytest.mark.parametrize("other", [None, Order((SortKey("n"),), 1, is_selection=True)])
def test_a_run_goes_on_while_one_answer_may_get_rows(tmp_path: Path, other: Order | None) -> None:
    answers = Delivery(program(HEAD, other), tmp_path, ScriptedSink([]))
    rows_of(answers, "q", 1, 2, 3)
    assert not answers.is_complete


@pytest.mark.parametrize("dies", ["write", "settle", "publish"])
def test_killed_at_any_moment_no_more_rows_than_the_limit_are_delivered(
    tmp_path: Path, dies: str
) -> None:
    job = Job(tmp_path)
    limited = program(HEAD)

    def resumed(dies: str = "") -> tuple[Delivery, ScriptedSink]:
        delivered = DeliveryCheckpoint(tmp_path)
        sink = ScriptedSink(delivered.position.sink.get("rows", []), dies=dies)
        return Delivery(limited, job.folder, sink, delivered), sink

    answers, _ = resumed()
    answers.begin()
    answers.on_commit(1, job.commit(1))
    answers.on_commit(2, job.commit(2))
    answers, _ = resumed(dies)
    with pytest.raises(Killed):
        answers.on_commit(3, job.commit(3))
    answers, sink = resumed()
    answers.begin()
    for step in (1, 2, 3):
        answers.on_commit(step, job.reported(step))
    answers.on_commit(4, job.commit(4))
    assert sink.rows == [1, 2, 3]
    assert answers.is_complete
    assert job.left == []
    answers, sink = resumed()
    assert answers.is_complete


@pytest.mark.parametrize("limit", [1, 7, 100, None])
def test_rows_in_an_order_of_their_own_come_at_the_end(
    tmp_path: Path, limit: int | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(rows_until_end, "ROWS_BETWEEN_CUTS", 5)
    order = Order((SortKey("n", is_descending=True),), limit, is_selection=True)
    sink = ScriptedSink([])
    answers = Delivery(program(order), tmp_path, sink)
    chance = random.Random(limit)
    values = [chance.randrange(40) for _ in range(60)]
    for begin in range(0, 60, 4):
        rows_of(answers, "q", *values[begin : begin + 4])
    assert sink.rows == []
    answers.finish()
    assert sink.rows == sorted(values, reverse=True)[:limit]


def test_a_run_that_failed_delivers_no_order_of_its_own(tmp_path: Path) -> None:
    order = Order((SortKey("n"),), 2, is_selection=True)
    sink = ScriptedSink([])
    answers = Delivery(program(order), tmp_path, sink)
    rows_of(answers, "q", 2, 1)
    answers.finish(has_ended=False)
    assert sink.rows == []


def test_more_rows_than_fit_into_memory_are_a_sentence(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rows_until_end, "MOST_BYTES", 100)
    held = RowsUntilEnd([SortKey("n")], None)
    held.add(table(*range(10)))
    with pytest.raises(EngineError, match="add LIMIT"):
        held.add(table(*range(10)))
