"""Positions in the files of an answer: nothing is skipped without a word, whatever is removed."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from gscope.cli.serve import answer_parts
from gscope.cli.serve.answer_parts import Position, batches_of, find_answers, unread
from gscope.errors import GscopeError

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path


def part(folder: Path, number: int, rows: Sequence[int], kind: str = "parquet") -> Path:
    """A file as a live run names it."""
    path = folder / f"q-20261124T1015{number % 60:02}Z-{number:06d}.{kind}"
    table = pa.table({"n": list(rows)})
    if kind == "parquet":
        pq.write_table(table, path, row_group_size=3)
    else:
        with pa.ipc.new_file(path, table.schema) as writer:
            writer.write_table(table, max_chunksize=3)
    return path


def pulled(folder: Path, after: str | None) -> tuple[list[int], list[str]]:
    """The rows after a position, and the position after each batch."""
    position = None if after is None else Position.parse("q", after)
    found = unread(find_answers(folder).get("q", ()), position)
    batches = [each for file, begin in found.parts for each in batches_of(file, begin)]
    rows = [n for batch, _ in batches for n in batch["n"].to_pylist()]
    if found.gap:
        message = f"{rows}; {found.gap}"
        raise GscopeError(message)
    return rows, [str(position) for _, position in batches]


@pytest.mark.parametrize("kind", ["parquet", "arrow"])
def test_pulling_goes_on_behind_every_position(
    tmp_path: Path, kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(answer_parts, "BATCH_ROWS", 2)
    part(tmp_path, 1, range(7), kind)
    part(tmp_path, 2, (), kind)
    part(tmp_path, 3, range(7, 12), kind)
    rows, positions = pulled(tmp_path, None)
    assert rows == list(range(12))
    assert len(positions) >= 6
    for position in positions:
        rest, _ = pulled(tmp_path, position)
        assert [n for n in rows if n not in rest] == list(range(12 - len(rest)))
        assert rest == list(range(12 - len(rest), 12))
    lengths = [len(pulled(tmp_path, each)[0]) for each in positions]
    assert lengths == sorted(set(lengths), reverse=True)
    assert lengths[-1] == 0


def test_batches_are_small(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(answer_parts, "BATCH_BYTES", 32)
    path = part(tmp_path, 1, range(100))
    pq.write_table(pa.table({"n": list(range(100))}), path)
    assert pulled(tmp_path, None)[0] == list(range(100))
    (file,) = find_answers(tmp_path)["q"]
    assert max(batch.num_rows for batch, _ in batches_of(file, 0)) <= 4


def test_a_file_that_was_removed_before_it_was_pulled_is_reported(tmp_path: Path) -> None:
    files = [part(tmp_path, number, [number]) for number in range(1, 6)]
    _, positions = pulled(tmp_path, None)
    files[0].unlink()
    # What was pulled already may go.
    assert pulled(tmp_path, positions[0])[0] == [2, 3, 4, 5]
    files[2].unlink()
    with pytest.raises(GscopeError, match=r"\[2\]; the files 3 to 3 were removed") as error:
        pulled(tmp_path, positions[0])
    with pytest.raises(GscopeError, match=r"\[\]; the files 3 to 3 were removed"):
        pulled(tmp_path, positions[1])
    assert pulled(tmp_path, positions[2])[0] == [4, 5]
    # The message names a position from which pulling goes on.
    assert pulled(tmp_path, str(error.value).rpartition("begins after ")[2])[0] == [4, 5]
    with pytest.raises(GscopeError, match=r"\[2\]; the files 3 to 3"):
        pulled(tmp_path, None)


def test_files_that_are_numbered_again_are_not_taken_for_those_of_before(tmp_path: Path) -> None:
    files = [part(tmp_path, number, [number]) for number in range(1, 4)]
    _, positions = pulled(tmp_path, None)
    for each in files:
        each.unlink()
    assert pulled(tmp_path, positions[2]) == ([], [])
    part(tmp_path, 1, [10])
    with pytest.raises(
        GscopeError, match="was removed, and files are numbered from the beginning, up to 1"
    ):
        pulled(tmp_path, positions[2])
    (tmp_path / "q-20270101T000000Z-000003.parquet").touch()
    with pytest.raises(GscopeError, match=r"was replaced by q-20270101T000000Z-000003\.parquet"):
        pulled(tmp_path, positions[2])


def test_the_file_of_a_replay_has_a_position_until_it_is_replaced(tmp_path: Path) -> None:
    path = tmp_path / "q.parquet"
    pq.write_table(pa.table({"n": [1, 2]}), path)
    rows, (position,) = pulled(tmp_path, None)
    assert rows == [1, 2]
    part(tmp_path, 1, [3])
    assert pulled(tmp_path, position)[0] == [3]
    new = tmp_path / "new"
    pq.write_table(pa.table({"n": [4, 5]}), new)
    new.rename(path)
    with pytest.raises(GscopeError, match=r"was replaced by q\.parquet@"):
        pulled(tmp_path, position)


def test_a_look_that_misses_a_file_does_not_skip_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    part(tmp_path, 1, [1])
    late = part(tmp_path, 2, [2])
    part(tmp_path, 3, [3])
    late.rename(tmp_path / ".late")
    look, looks = answer_parts._look, []

    def first_misses(folder: Path) -> dict[str, list[answer_parts.Part]]:
        """As a folder that is read while files 2, 3 and 4 appear in it, in this order."""
        looks.append(look(folder))
        if len(looks) == 1:
            (folder / ".late").rename(late)
            part(folder, 5, [5])
        return looks[-1]

    monkeypatch.setattr(answer_parts, "_look", first_misses)
    assert pulled(tmp_path, None)[0] == [1, 2, 3]


def test_other_files_are_not_taken_for_answers(tmp_path: Path) -> None:
    part(tmp_path, 1, [1])
    (tmp_path / ".q-20261124T101502Z-000002.parquet.partial").touch()
    (tmp_path / ".hidden.parquet").touch()
    (tmp_path / "q.csv").touch()
    (tmp_path / "folder.parquet").mkdir()
    assert list(find_answers(tmp_path)) == ["q"]
    part(tmp_path, 1, [1], "arrow")
    with pytest.raises(GscopeError, match="two files of one number; serve one format at a time"):
        pulled(tmp_path, None)


@pytest.mark.parametrize(
    "text", ["", "x", "q.parquet@1", ":3", "r.parquet@1:3", "../q.parquet:1", "q.parquet:-1"]
)
def test_a_position_of_something_else_is_refused(text: str) -> None:
    with pytest.raises(GscopeError, match="expected one that came with rows of q"):
        Position.parse("q", text)
