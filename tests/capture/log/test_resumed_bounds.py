"""Promises made before a log was opened are kept by what is written to it later."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.compute as pc
from hypothesis import given
from hypothesis import strategies as st

from gscope.capture.log.batches import StreamSpec
from gscope.capture.log.log import StreamLog, read_log
from gscope.capture.log.resumed_bounds import ResumedBounds
from gscope.capture.log.stream_heartbeat import StreamHeartbeat
from gscope.queries.expressions.types import Direction
from gscope.queries.streams.messages import Extent, Heartbeat, Punctuation

if TYPE_CHECKING:
    from pathlib import Path

VALUES = st.lists(st.integers(-9, 9), min_size=1, max_size=20)


def rows(up: list[int], down: list[int]) -> tuple[pa.RecordBatch, tuple[Extent, ...]]:
    batch = pa.record_batch({"up": up, "down": down})
    return batch, tuple(Extent(c, min(v), max(v)) for c, v in (("up", up), ("down", down)))


@given(VALUES, st.data(), st.integers(-9, 9), st.integers(-9, 9))
def test_rows_that_break_a_promise_are_left_out_and_counted(
    up: list[int], data: st.DataObject, rising: int, falling: int
) -> None:
    down = data.draw(st.lists(st.integers(-9, 9), min_size=len(up), max_size=len(up)))
    bounds = ResumedBounds([Punctuation("up", rising), Punctuation("-down", -falling)])
    batch, extents = bounds.kept(*rows(up, down))
    wanted = [(u, d) for u, d in zip(up, down, strict=True) if u >= rising and d <= falling]
    assert list(zip(batch["up"].to_pylist(), batch["down"].to_pylist(), strict=True)) == wanted
    assert bounds.late_tuples == len(up) - len(wanted)
    for extent in extents if wanted else ():
        bounds = pc.min_max(batch[extent.column]).as_py()
        assert bounds == {"min": extent.least, "max": extent.greatest}


def test_a_promise_is_never_taken_back() -> None:
    bounds = ResumedBounds([Punctuation("up", 5), Punctuation("-down", 2)])
    assert set(bounds.raised([Punctuation("up", 3), Punctuation("new", 1)])) == {
        Punctuation("up", 5),
        Punctuation("-down", 2),
        Punctuation("new", 1),
    }


def test_a_log_opened_again_keeps_what_it_promised(tmp_path: Path) -> None:
    specs = [StreamSpec("a", (("up", Direction.INCREASING), ("down", Direction.DECREASING)))]
    log = StreamLog(tmp_path, specs)
    log.write_heartbeat(1, 1, [StreamHeartbeat("a", (Punctuation("up", 5),))])
    log.append("a", *rows([1], [1]))
    log.close()
    again = StreamLog(tmp_path, specs)
    again.append("a", *rows([1, 5, 6], [0, 0, 0]))
    assert again.late_tuples("a") == 1
    again.write_heartbeat(2, 2, [StreamHeartbeat("a", ())])
    again.end(["a"])
    again.close()
    beats = [message for message in read_log(tmp_path) if isinstance(message, Heartbeat)]
    assert [beat.punctuations for beat in beats] == [(Punctuation("up", 5),)] * 2
