"""All pieces in the window, oldest first: those of earlier steps in files, those of this one."""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING, Any

from gscope.engine.windows.slice_files import SliceReader, SliceWriter

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from numpy.typing import NDArray

    from gscope.engine.windows.layout import Layout
    from gscope.engine.windows.live import LiveTable
    from gscope.engine.windows.pieces import Piece
    from gscope.engine.windows.slice_files import OpenFiles, SliceFile

    Array = NDArray[Any]

FAN = 16
"""This number of files become one, unless one of them is larger than all the others together."""


class SliceStore:
    """The pieces in the window.

    Args:
        opened: reads the files; new ones are written to its folder.
        name: the beginning of the names of new files.
        files: the files that the steps before left, oldest first.
        layout: the numbers of a row.
        ids: the identity of the group at each place.
        place_of: returns the places of identities.
    """

    def __init__(
        self,
        opened: OpenFiles,
        name: str,
        files: Sequence[SliceFile],
        layout: Layout,
        ids: Array,
        place_of: Callable[[Array], Array],
    ) -> None:
        self._opened = opened
        self._name = name
        self._layout = layout
        self._ids = ids
        self._place_of = place_of
        self._written = 0
        self._readers = deque(map(self._reader, files))
        self._pieces: deque[Piece] = deque()

    def add(self, piece: Piece) -> None:
        """Add the youngest piece."""
        self._pieces.append(piece)

    @property
    def last(self) -> int:
        """The label of the youngest piece; there is one."""
        return self._pieces[-1].label if self._pieces else self._readers[-1].file.last

    def holds_below(self, label: int) -> bool:
        """Return whether any piece that is older than ``label`` may be left."""
        return bool(self._readers) or (bool(self._pieces) and self._pieces[0].label < label)

    def is_below(self, label: int) -> bool:
        """Return whether all pieces are older than ``label``."""
        return not (self._pieces or self._readers) or self.last < label

    def pop_before(self, label: int) -> Iterator[Piece]:
        """Yield and forget the pieces that are older than ``label``, oldest first."""
        while self._readers:
            reader = self._readers[0]
            yield from reader.pop_before(label)
            if reader.file.last >= label:
                return
            self._readers.popleft()
        while self._pieces and self._pieces[0].label < label:
            yield self._pieces.popleft()

    def clear(self) -> None:
        """Forget all pieces."""
        self._readers.clear()
        self._pieces.clear()

    def flip(self, table: LiveTable) -> None:
        """Build the front of ``table`` from all pieces; those in files move to a new file."""
        if not self._readers:
            for piece in reversed(self._pieces):
                table.flip(piece)
            return
        writer = self._writer("front", is_front=True)
        for piece in self._from_youngest():
            table.flip(piece)
            writer.write([piece])
        self._pieces.clear()
        self._readers.clear()
        if (file := writer.close()) is not None:
            self._readers.append(self._reader(file))

    def save(self) -> list[SliceFile]:
        """Write the pieces of this step, and return all files, oldest first."""
        files = [reader.file for reader in self._readers]
        front = [piece for piece in self._pieces if piece.younger is not None]
        back = [piece for piece in self._pieces if piece.younger is None]
        for pieces, is_front in ((front[::-1], True), (back, False)):
            writer = self._writer("slices", is_front=is_front)
            writer.write(pieces)
            if (file := writer.close()) is not None:
                files.append(file)
        return self._joined(files)

    def _joined(self, files: list[SliceFile]) -> list[SliceFile]:
        """Return ``files``, the last of which are joined if there are many of similar size.

        A row is written again only if its file at least doubles, so a logarithmic number of times.
        """
        last = files[-FAN:]
        rows = [file.rows for file in last]
        if len(last) < FAN or last[0].is_front or 2 * max(rows) > sum(rows):
            return files
        writer = self._writer("joined", is_front=False)
        writer.copy(map(self._reader, last))
        made = writer.close()
        assert made is not None
        return self._joined([*files[:-FAN], made])

    def _from_youngest(self) -> Iterator[Piece]:
        yield from reversed(self._pieces)
        for reader in reversed(self._readers):
            yield from reader.reversed()

    def _reader(self, file: SliceFile) -> SliceReader:
        return SliceReader(self._opened, file, self._layout, self._place_of)

    def _writer(self, kind: str, *, is_front: bool) -> SliceWriter:
        self._written += 1
        name = f"{self._name}{kind}{self._written}.arrow"
        return SliceWriter(self._opened.folder, name, self._ids, is_front=is_front)
