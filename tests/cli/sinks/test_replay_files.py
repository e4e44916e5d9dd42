from __future__ import annotations

import io
import json
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from gscope.cli.sinks.replay_files import FolderSink, StreamSink
from gscope.errors import GscopeError, UsageError

TABLE = pa.table({"n": [1, 2], "t": ["a", None]})


def _written(folder: Path, kind: str) -> Path:
    sink = FolderSink(folder, kind, ["q"])
    sink.begin("q", TABLE.schema)
    sink.write("q", TABLE)
    sink.write("q", TABLE)
    sink.close(is_complete=True)
    return folder / f"q.{kind}"


def test_each_format_reads_back(tmp_path: Path) -> None:
    assert _written(tmp_path, "csv").read_text() == "n,t\n1,a\n2,\n1,a\n2,\n"
    lines = _written(tmp_path, "ndjson").read_text().splitlines()
    assert [json.loads(line)["n"] for line in lines] == [1, 2, 1, 2]
    assert pq.read_table(_written(tmp_path, "parquet"))["n"].to_pylist() == [1, 2, 1, 2]
    with pa.memory_map(str(_written(tmp_path, "arrow"))) as source:
        assert pa.ipc.open_file(source).read_all().num_rows == 4


@pytest.mark.parametrize("kind", ["csv", "ndjson", "parquet", "arrow"])
def test_an_empty_answer_is_a_file(tmp_path: Path, kind: str) -> None:
    sink = FolderSink(tmp_path, kind, ["q"])
    sink.begin("q", TABLE.schema)
    sink.close(is_complete=True)
    assert (tmp_path / f"q.{kind}").exists()


@pytest.mark.parametrize("kind", ["csv", "parquet"])
def test_an_incomplete_answer_leaves_nothing(tmp_path: Path, kind: str) -> None:
    sink = FolderSink(tmp_path, kind, ["q"])
    sink.begin("q", TABLE.schema)
    sink.write("q", TABLE)
    sink.close(is_complete=False)
    assert list(tmp_path.iterdir()) == []


def test_what_a_killed_run_left_never_looks_like_an_answer(tmp_path: Path) -> None:
    sink = FolderSink(tmp_path, "csv", ["q"])
    sink.begin("q", TABLE.schema)
    sink.write("q", TABLE)
    assert [path.name for path in tmp_path.iterdir()] == [".q.csv.partial"]
    sink.close(is_complete=False)
    (tmp_path / ".q.csv.partial").write_text("n,t\n9,9\n")
    assert "9,9" not in _written(tmp_path, "csv").read_text()


def test_two_runs_cannot_write_one_file(tmp_path: Path) -> None:
    first = FolderSink(tmp_path, "csv", ["q"])
    with pytest.raises(UsageError, match="another run is writing"):
        FolderSink(tmp_path, "csv", ["q"])
    first.close(is_complete=False)


def test_a_folder_that_cannot_be_made_is_a_sentence(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(UsageError, match="cannot write to"):
        FolderSink(tmp_path / "file" / "below", "csv", ["q"])


def test_a_full_disk_is_a_sentence() -> None:
    with Path("/dev/full").open("wb", buffering=0) as full:
        sink = StreamSink(full, "csv", ["q"])
        with pytest.raises(GscopeError, match="cannot write the answer: no space left"):
            sink.write("q", TABLE)


def test_results_are_distinguished_on_one_stream() -> None:
    file = io.BytesIO()
    sink = StreamSink(file, "ndjson", ["a", "b"])
    sink.write("b", TABLE.slice(0, 1))
    sink.settle(is_last=False)
    assert file.getvalue() == b'{"query": "b", "n": 1, "t": "a"}\n'


@pytest.mark.parametrize(
    ("kind", "queries", "complaint"),
    [("csv", ["a", "b"], "holds one result"), ("parquet", ["a"], "-w DIR")],
)
def test_what_a_stream_cannot_hold_is_refused(
    kind: str, queries: list[str], complaint: str
) -> None:
    with pytest.raises(UsageError, match=complaint):
        StreamSink(io.BytesIO(), kind, queries)


def test_a_table_is_no_file(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="tables cannot be written to files"):
        FolderSink(tmp_path, "table", ["q"])
