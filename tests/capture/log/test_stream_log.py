"""The log keeps its promises.

Order, punctuation, acknowledgement, budget, and the time after a crash.
"""

from __future__ import annotations

import errno
import os
import threading
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from gscope.capture.log.batches import BatchLimits, StreamSpec
from gscope.capture.log.budget import Budget, Usage, WaitForRoom
from gscope.capture.log.consumers import Consumer
from gscope.capture.log.log import StreamLog, read_log
from gscope.capture.log.sealing import WRITTEN_AT_ONCE_ROWS
from gscope.capture.log.stream_heartbeat import StreamHeartbeat
from gscope.errors import StreamError
from gscope.queries.expressions.types import Direction
from gscope.queries.streams.messages import (
    Batch,
    EndOfStream,
    Extent,
    Heartbeat,
    Message,
    Punctuation,
    Shed,
)

if TYPE_CHECKING:
    from pathlib import Path

SPECS = [StreamSpec(name, (("tb", Direction.INCREASING),), epoch="tb") for name in ("a", "b")]
JOB = (Consumer("job"),)


def put(log: StreamLog, stream: str, *epochs: int) -> None:
    batch = pa.record_batch({"tb": pa.array(epochs, pa.int64())})
    log.append(stream, batch, (Extent("tb", min(epochs), max(epochs)),))


def beat(log: StreamLog, bound: int, *streams: str) -> None:
    log.write_heartbeat(
        bound,
        bound * 10,
        [StreamHeartbeat(stream, (Punctuation("tb", bound),)) for stream in streams],
    )


def shape(messages: list[Message]) -> list[str]:
    kinds = {Batch: "batch", Heartbeat: "beat", EndOfStream: "end", Shed: "shed"}
    return [f"{m.stream}{m.sequence} {kinds[type(m)]}" for m in messages]


def segments(folder: Path) -> list[Path]:
    return sorted((folder / "segments").iterdir())


def rows(folder: Path, message: Message) -> list[int]:
    assert isinstance(message, Batch)
    table = pq.read_table(folder / message.path)
    assert table.num_rows == message.rows
    return list(table["tb"].to_pylist())


def test_a_heartbeat_seals_what_it_passes_and_nothing_else(tmp_path: Path) -> None:
    log = StreamLog(tmp_path, SPECS)
    put(log, "a", 1, 2, 3)
    put(log, "b", 3)
    beat(log, 3, "a", "b")
    log.end(["a", "b", "a"])
    log.close()
    messages = read_log(tmp_path)
    assert shape(messages) == [
        *["a0 batch", "a1 beat", "b0 beat"],
        *["a2 batch", "a3 end", "b1 batch", "b2 end"],
    ]
    assert rows(tmp_path, messages[0]) == [1, 2]
    assert rows(tmp_path, messages[3]) == [3]


def test_a_large_batch_is_sealed_without_a_heartbeat(tmp_path: Path) -> None:
    log = StreamLog(tmp_path, SPECS, limits=BatchLimits(rows=4))
    put(log, "a", 1, 1, 1)
    assert shape(read_log(tmp_path)) == []
    put(log, "a", 1, 2)
    assert shape(read_log(tmp_path)) == ["a0 batch"]
    assert rows(tmp_path, read_log(tmp_path)[0]) == [1, 1, 1, 1]


def test_all_open_batches_together_are_bounded(tmp_path: Path) -> None:
    log = StreamLog(tmp_path, SPECS, limits=BatchLimits(open_bytes=64))
    put(log, "a", 1, 1, 1, 1, 1)
    put(log, "b", 1, 1, 1)
    assert shape(read_log(tmp_path)) == ["a0 batch"]


def test_messages_are_read_in_the_order_written_from_any_cursor(tmp_path: Path) -> None:
    log = StreamLog(tmp_path, SPECS)
    beat(log, 1, "a")
    beat(log, 1, "b")
    beat(log, 2, "a")
    assert shape(log.read({"a": 0, "b": 0})) == ["a0 beat", "b0 beat", "a1 beat"]
    assert shape(log.read({"a": 0, "b": 0}, limit=2)) == ["a0 beat", "b0 beat"]
    assert shape(log.read({"a": 1, "b": 1})) == ["a1 beat"]
    assert log.read({"a": 2}, timeout_s=0) == []
    with pytest.raises(StreamError, match="not 3"):
        log.read({"a": 3})
    with pytest.raises(StreamError, match="unknown stream"):
        log.read({"x": 0})


def test_a_reader_wakes_at_the_next_message_and_at_the_end(tmp_path: Path) -> None:
    log = StreamLog(tmp_path, SPECS)
    seen: list[str] = []

    def follow() -> None:
        cursors = {"a": 0}
        while messages := log.read(cursors):
            seen.extend(shape(messages))
            cursors["a"] += len(messages)

    reader = threading.Thread(target=follow)
    reader.start()
    beat(log, 1, "a")
    log.end(["a"])
    reader.join(10)
    assert seen == ["a0 beat", "a1 end"]


def test_closing_wakes_a_reader(tmp_path: Path) -> None:
    log = StreamLog(tmp_path, SPECS)
    reader = threading.Thread(target=log.read, args=({"a": 0},))
    reader.start()
    log.close()
    reader.join(10)
    assert not reader.is_alive()


def test_segments_go_when_all_have_acknowledged(tmp_path: Path) -> None:
    log = StreamLog(tmp_path, SPECS, consumers=[Consumer("job"), Consumer("sink", ("a",))])
    put(log, "a", 1)
    put(log, "b", 1)
    log.end(["a", "b"])
    log.acknowledge("job", {"a": 1, "b": 2})
    assert len(segments(tmp_path)) == 1
    assert not log.wait_acknowledged(0)
    log.acknowledge("sink", {"a": 2})
    assert segments(tmp_path) == []
    assert log.stats.used_bytes == 0
    log.acknowledge("job", {"a": 0})
    assert not log.wait_acknowledged(0)
    log.acknowledge("job", {"a": 2})
    assert log.wait_acknowledged(0)
    with pytest.raises(StreamError, match="holds messages 2 to 2"):
        log.read({"a": 0})


def test_without_consumers_nothing_is_removed_or_waited_for(tmp_path: Path) -> None:
    log = StreamLog(tmp_path, SPECS)
    put(log, "a", 1)
    log.end(["a", "b"])
    assert log.wait_acknowledged()
    assert len(segments(tmp_path)) == 1


@pytest.mark.parametrize(
    ("consumer", "cursors"),
    [("who", {"a": 0}), ("job", {"x": 0}), ("job", {"a": 1}), ("job", {"a": -1})],
)
def test_a_wrong_acknowledgement_changes_nothing(
    tmp_path: Path, consumer: str, cursors: dict[str, int]
) -> None:
    log = StreamLog(tmp_path, SPECS, consumers=JOB)
    with pytest.raises(StreamError):
        log.acknowledge(consumer, cursors)
    assert not (tmp_path / "acknowledged.json").exists()


def test_after_a_crash_the_index_decides(tmp_path: Path) -> None:
    log = StreamLog(tmp_path, SPECS, consumers=JOB)
    put(log, "a", 1)
    beat(log, 2, "a")
    put(log, "a", 2)
    beat(log, 3, "a")
    log.acknowledge("job", {"a": 1})
    put(log, "a", 3)
    log.close()
    (kept,) = segments(tmp_path)
    (tmp_path / "segments" / "0000-orphan.parquet").write_bytes(b"PAR1")
    with (tmp_path / "index").open("ab") as index:
        index.write(b"\x01\x67\x00")
    again = StreamLog(tmp_path, SPECS, consumers=JOB)
    assert segments(tmp_path) == [kept]
    assert shape(again.read({"a": 1})) == ["a1 beat", "a2 batch", "a3 beat"]
    assert again.stats.used_bytes == kept.stat().st_size
    assert not again.is_empty
    put(again, "a", 4)
    again.end(["a", "b"])
    assert shape(again.read({"a": 4, "b": 0})) == ["a4 batch", "a5 end", "b0 end"]
    assert again.is_ended


def test_a_segment_that_is_missing_or_cut_is_an_error(tmp_path: Path) -> None:
    log = StreamLog(tmp_path, SPECS)
    put(log, "a", 1)
    log.end(["a"])
    log.close()
    (segment,) = segments(tmp_path)
    segment.write_bytes(segment.read_bytes()[:-1])
    with pytest.raises(StreamError, match="expected 169 bytes, got 168"):
        StreamLog(tmp_path)
    segment.unlink()
    with pytest.raises(StreamError, match="is missing"):
        StreamLog(tmp_path)


def test_a_damaged_index_is_an_error_with_its_offset(tmp_path: Path) -> None:
    log = StreamLog(tmp_path, SPECS)
    beat(log, 1, "a")
    log.close()
    index = tmp_path / "index"
    index.write_bytes(index.read_bytes()[:-1] + b"x")
    with pytest.raises(StreamError, match=r"index is damaged: the record at offset 0"):
        StreamLog(tmp_path)


def test_a_gap_in_a_stream_is_an_error(tmp_path: Path) -> None:
    log = StreamLog(tmp_path, SPECS)
    beat(log, 1, "a")
    log.close()
    index = tmp_path / "index"
    index.write_bytes(index.read_bytes() * 2)
    with pytest.raises(StreamError, match="out of sequence"):
        StreamLog(tmp_path)


@pytest.mark.parametrize("stored", ["[]", "{", '{"job": 3}', '{"job": {"a": "x"}}'])
def test_damaged_acknowledgements_are_an_error(tmp_path: Path, stored: str) -> None:
    (tmp_path / "acknowledged.json").write_text(stored)
    with pytest.raises(StreamError, match="damaged"):
        StreamLog(tmp_path)


def test_two_processes_cannot_write_one_log(tmp_path: Path) -> None:
    log = StreamLog(tmp_path, SPECS)
    with pytest.raises(StreamError, match="in use by another process"):
        StreamLog(tmp_path, SPECS)
    log.close()
    StreamLog(tmp_path, SPECS).close()


def test_a_folder_that_cannot_be_made_is_one_sentence(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(StreamError, match=r"^cannot make the folder .*: not a directory$"):
        StreamLog(tmp_path / "file" / "log")


def test_a_full_disk_is_one_sentence_and_leaves_no_segment(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    log = StreamLog(tmp_path, SPECS)
    put(log, "a", 1)

    def full(*_: object, **__: object) -> None:
        raise OSError(errno.ENOSPC, "Error writing bytes to file. Detail: [errno 28] …")

    monkeypatch.setattr(pq.ParquetWriter, "write_table", full)
    with pytest.raises(
        StreamError, match=r"^cannot write the segment .*: no space left on device$"
    ):
        beat(log, 2, "a")
    assert segments(tmp_path) == []


def test_an_index_that_cannot_grow_stays_as_it_was(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    log = StreamLog(tmp_path, SPECS)
    beat(log, 1, "a")
    real_write = os.write

    def half(descriptor: int, data: bytes) -> int:
        if len(data) < 40:
            raise OSError(errno.ENOSPC, "No space left on device")
        return real_write(descriptor, data[:-39])

    monkeypatch.setattr(os, "write", half)
    with pytest.raises(StreamError, match="no space left on device"):
        beat(log, 2, "a")
    monkeypatch.undo()
    assert shape(read_log(tmp_path)) == ["a0 beat"]


def test_a_full_log_waits_for_an_acknowledgement(tmp_path: Path) -> None:
    log = StreamLog(tmp_path, SPECS, consumers=JOB, budget=WaitForRoom(350, patience_s=10))
    put(log, "a", 1)
    beat(log, 2, "a")
    put(log, "a", *range(2, 30))

    writer = threading.Thread(target=beat, args=(log, 99, "a"))
    writer.start()
    writer.join(0.05)
    assert writer.is_alive()
    log.acknowledge("job", {"a": 2})
    writer.join(10)
    assert not writer.is_alive()
    assert shape(log.read({"a": 2})) == ["a2 batch", "a3 beat"]


def test_a_full_log_that_no_reader_empties_is_an_error(tmp_path: Path) -> None:
    patient = StreamLog(tmp_path / "x", SPECS, consumers=JOB, budget=WaitForRoom(350, patience_s=0))
    put(patient, "a", 1)
    beat(patient, 2, "a")
    put(patient, "a", *range(2, 30))
    with pytest.raises(StreamError, match="no reader has acknowledged anything"):
        beat(patient, 99, "a")
    alone = StreamLog(tmp_path / "y", SPECS, budget=WaitForRoom(10))
    put(alone, "a", *range(30))
    with pytest.raises(StreamError, match=r"full: 0 of 10 bytes .* raise its limit with --log"):
        beat(alone, 99, "a")


def test_what_a_budget_sheds_is_counted(tmp_path: Path) -> None:
    class ShedAll(Budget):
        is_lossy = True
        limit_bytes = 0

        def admit(self, size_bytes: int, usage: Usage) -> bool:
            return False

    log = StreamLog(tmp_path, SPECS, budget=ShedAll())
    put(log, "a", 1, 2, 3)
    beat(log, 3, "a")
    assert shape(read_log(tmp_path)) == ["a0 shed", "a1 beat"]
    assert log.stats.shed_tuples_total == 2


def test_a_segment_is_plain_parquet(tmp_path: Path) -> None:
    log = StreamLog(tmp_path, SPECS)
    columns: dict[str, Any] = {
        "tb": pa.array([1, 1], pa.int64()),
        "srcIP": pa.array([b"0" * 16, None], pa.binary(16)),
        "interface": pa.DictionaryArray.from_arrays(pa.array([0, 0], pa.int32()), [b"main1"]),
        "name": pa.array([b"x", b"\xff"], pa.binary()),
    }
    log.append("a", pa.record_batch(columns), (Extent("tb", 1, 1),))
    log.end(["a"])
    (segment,) = segments(tmp_path)
    file = pq.ParquetFile(segment)
    group = file.metadata.row_group(0)
    assert file.metadata.num_row_groups == 1
    for number, name in enumerate(columns):
        column = group.column(number)
        assert column.compression == "UNCOMPRESSED"
        assert ("RLE_DICTIONARY" in column.encodings) == (name == "interface")
        assert column.statistics is None
    table = file.read()
    assert table.schema.field("srcIP").type == pa.binary(16)
    assert table["interface"].to_pylist() == [b"main1", b"main1"]
    assert table["name"].to_pylist() == [b"x", b"\xff"]


MANY = WRITTEN_AT_ONCE_ROWS
FLAT = pa.schema([pa.field("tb", pa.int64(), nullable=False)])


def put_many(log: StreamLog, stream: str, epoch: int, rows: int = MANY) -> None:
    batch = pa.record_batch([pa.array([epoch] * rows, pa.int64())], schema=FLAT)
    log.append(stream, batch, (Extent("tb", epoch, epoch),))


def test_many_rows_are_written_at_once_and_sealed_when_a_punctuation_passes(tmp_path: Path) -> None:
    log = StreamLog(tmp_path, SPECS, consumers=JOB)
    put_many(log, "a", 1)
    put_many(log, "a", 2)
    put_many(log, "a", 1, rows=3)
    put_many(log, "a", 1)
    assert len(segments(tmp_path)) == 2
    assert log.used_bytes == 0
    beat(log, 2, "a")
    put_many(log, "a", 2, rows=5)
    log.end(["a"])
    first, _, second, _ = messages = read_log(tmp_path)
    assert shape(messages) == ["a0 batch", "a1 beat", "a2 batch", "a3 end"]
    assert rows(tmp_path, first) == [1] * (2 * MANY + 3)
    assert rows(tmp_path, second) == [2] * (MANY + 5)
    assert isinstance(first, Batch)
    assert first.extents == (Extent("tb", 1, 1),)
    assert first.size_bytes == (tmp_path / first.path).stat().st_size
    assert log.used_bytes == sum(path.stat().st_size for path in segments(tmp_path))


def test_what_grows_is_gone_when_the_log_is_closed_or_after_a_crash(tmp_path: Path) -> None:
    log = StreamLog(tmp_path, SPECS)
    put_many(log, "a", 1)
    (growing,) = segments(tmp_path)
    left = growing.read_bytes()
    log.close()
    assert segments(tmp_path) == []
    growing.write_bytes(left)
    StreamLog(tmp_path, SPECS)
    assert segments(tmp_path) == []


def test_a_segment_that_grows_is_shed_as_a_whole(tmp_path: Path) -> None:
    class ShedAll(Budget):
        is_lossy = True
        limit_bytes = 0

        def admit(self, size_bytes: int, usage: Usage) -> bool:
            return False

    log = StreamLog(tmp_path, SPECS, budget=ShedAll())
    put_many(log, "a", 1)
    put_many(log, "a", 1, rows=3)
    beat(log, 3, "a")
    assert shape(read_log(tmp_path)) == ["a0 shed", "a1 beat"]
    assert log.stats.shed_tuples_total == MANY + 3
    assert segments(tmp_path) == []


def test_a_full_disk_leaves_nothing_of_what_grew(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    log = StreamLog(tmp_path, SPECS)
    put_many(log, "a", 1)

    def full(*_: object) -> int:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(os, "writev", full)
    with pytest.raises(StreamError, match=r"^cannot write the segment .*: no space left on device"):
        put_many(log, "a", 1)
    assert segments(tmp_path) == []
