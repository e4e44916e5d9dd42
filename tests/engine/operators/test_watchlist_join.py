"""What a join with a watchlist releases: every batch in the next step; the table has no time."""

from __future__ import annotations

import math

from tests.engine.operators.driven import Driven, batches

TEXT = """
DEFINE { query_name 'bad'; filename 'bad.csv'; } WATCHLIST FIELDS { IP addr; uint time; };
Query q: SELECT x.time, bad.time AS since FROM a.TCP x, bad WHERE x.srcIP = bad.addr
"""


def test_the_stream_is_its_only_side_and_holds_back_no_row() -> None:
    query = Driven(TEXT)
    assert len(query.operator.sides) == 1
    rows = query.batch(0, 7, 9)
    (work,) = query.released()
    assert batches(work) == [rows]
    assert query.waiting() == []


def test_columns_of_the_table_are_promised_nothing() -> None:
    """The table has a column of the same name as the stream's, and no order."""
    query = Driven(TEXT)
    query.beat(7)
    assert query.operator.output_bounds() == {"time": 7}
    query.batch(0, 7, 9)
    (work,) = query.released()
    assert [(extent.column, extent.least, extent.greatest) for extent in work.extents] == [
        ("time", 7, 9)
    ]


def test_it_is_finished_when_the_stream_has_ended_and_is_read() -> None:
    query = Driven(TEXT)
    query.batch(0, 7, 9)
    query.end(0)
    query.released()
    assert query.operator.watermark == math.inf
