"""Pieces in files: read from either end, and as they leave, they are those that were written."""

from __future__ import annotations

import random
from typing import TYPE_CHECKING

import numpy as np
import pytest

from gscope.engine.windows import slice_files
from gscope.engine.windows.layout import Layout
from gscope.engine.windows.pieces import Piece
from gscope.engine.windows.slice_files import OpenFiles, SliceFile, SliceReader, SliceWriter
from gscope.queries.catalog.aggregate.partial_op import PartialOp
from gscope.queries.expressions.types import GsqlType
from gscope.queries.plan.program import Partial

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

LAYOUT = Layout.of(
    (
        Partial("n", PartialOp.SUM, None, GsqlType.INT, is_nullable=False),
        Partial("most", PartialOp.MAX, None, GsqlType.INT, is_nullable=False),
        Partial("least", PartialOp.MIN, None, GsqlType.IP, is_nullable=False),
    )
)
GROUPS = 30

Row = tuple[int, int, tuple[int, ...]]
"""The label, the place and all numbers."""


def random_pieces(chosen: random.Random, *, is_front: bool) -> list[Piece]:
    """Return pieces, the oldest first."""
    made = []
    for label in sorted(chosen.sample(range(-50, 50), 9)):
        places = np.array(chosen.sample(range(GROUPS), chosen.choice([1, 2, 4, 5, 30])))
        numbers = LAYOUT.nothing(len(places))
        numbers.sums[:] = [[1, chosen.getrandbits(40)] for _ in places]
        numbers.stacked[1][:] = [[chosen.getrandbits(9), 7] for _ in places]
        younger = [each + chosen.randrange(99) for each in LAYOUT.nothing(len(places)).stacked]
        made.append(Piece(label, places, numbers, younger if is_front else None))
    return made


def rows(pieces: Iterable[Piece]) -> list[Row]:
    """Return the rows of pieces in the order of labels and groups."""
    made: list[Row] = []
    for piece in pieces:
        values = [piece.numbers.sums, *piece.numbers.stacked, *(piece.younger or [])]
        flat = np.column_stack([each.reshape(len(piece.places), -1) for each in values])
        made += [
            (piece.label, int(place), tuple(row))
            for place, row in zip(piece.places, flat.tolist(), strict=True)
        ]
    return made


@pytest.mark.parametrize("is_front", [False, True])
@pytest.mark.parametrize("seed", range(4))
def test_pieces_of_a_file_are_those_written(
    seed: int, is_front: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    chosen = random.Random(seed)
    monkeypatch.setattr(slice_files, "BATCH_ROWS", (1, 3, 8, slice_files.BATCH_ROWS)[seed])
    pieces = random_pieces(chosen, is_front=is_front)
    ids = 5 + 2 * np.arange(GROUPS)
    writer = SliceWriter(tmp_path, "file", ids, is_front=is_front)
    writer.write(pieces[::-1] if is_front else pieces)
    file = writer.close()
    assert file is not None
    written = rows(pieces)
    assert (file.rows, file.last) == (len(written), pieces[-1].label)

    opened = OpenFiles(tmp_path)

    def reader(left: SliceFile) -> SliceReader:
        return SliceReader(opened, left, LAYOUT, lambda found: np.searchsorted(ids, found))

    for labels in ([51], [-20, 0, 1, 20, 51], list(range(-50, 52))):
        one, before = reader(file), -51
        for label in labels:
            popped = list(one.pop_before(label))
            assert [piece.label for piece in popped] == sorted(piece.label for piece in popped)
            assert sorted(rows(popped)) == sorted(r for r in written if before <= r[0] < label)
            rest = [row for row in written if row[0] >= label]
            stayed = list(reader(one.file).reversed())
            assert [p.label for p in stayed] == sorted((p.label for p in stayed), reverse=True)
            assert sorted(rows(stayed)) == sorted(rest)
            # Another step continues with what has not left.
            one, before = reader(one.file), label


@pytest.mark.parametrize("seed", range(6))
def test_joined_files_hold_what_has_not_left(
    seed: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(slice_files, "BATCH_ROWS", 3)
    chosen, ids, opened = random.Random(seed), np.arange(GROUPS), OpenFiles(tmp_path)
    pieces = random_pieces(chosen, is_front=False)
    readers = []
    for number, part in enumerate((pieces[:4], pieces[4:5], pieces[5:])):
        writer = SliceWriter(tmp_path, f"{number}", ids, is_front=False)
        writer.write(part)
        file = writer.close()
        assert file is not None
        readers.append(SliceReader(opened, file, LAYOUT, lambda found: found))
    label = pieces[2].label
    list(readers[0].pop_before(label))
    writer = SliceWriter(tmp_path, "joined", ids, is_front=False)
    writer.copy(readers)
    joined = writer.close()
    assert joined is not None
    left = [piece for piece in pieces if piece.label >= label]
    found = SliceReader(opened, joined, LAYOUT, lambda found: found).pop_before(51)
    assert sorted(rows(found)) == sorted(rows(left))
    assert (joined.rows, joined.last) == (len(rows(left)), pieces[-1].label)
