"""The state of a window from step to step: the file of the live table, which names all others.

The process that wrote a state keeps its live table and open files, and reads them only after a
restart.
"""

from __future__ import annotations

import json
from dataclasses import astuple
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from gscope.engine.windows.live import LiveTable
from gscope.engine.windows.slice_files import (
    OpenFiles,
    SliceFile,
    as_array,
    as_column,
    number_columns,
    numbers_of,
)
from gscope.errors import EngineError
from gscope.records import dataclass

if TYPE_CHECKING:
    from pathlib import Path

    from numpy.typing import NDArray

    from gscope.engine.windows.layout import Layout

    Array = NDArray[Any]

_MANIFEST = b"window"


@dataclass(frozen=True, slots=True)
class SavedWindow:
    """What a step leaves for the next.

    Attributes:
        window: the number of the next window.
        span: the first slice of that window, and the label of the youngest piece.
        next_id: the identity of the next group that comes.
        keys: the keys of the live groups.
        ids: their identities, ascending.
        table: the live table; its places are the rows of ``keys``.
        files: the files of the pieces in the window, oldest first.
    """

    window: int
    span: tuple[int, int]
    next_id: int
    keys: pa.Table
    ids: Array
    table: LiveTable
    files: tuple[SliceFile, ...]


class WindowStates:
    """The states that the steps of one window leave.

    Args:
        folder: the folder to which the names of files are relative.
        layout: the numbers of a group.

    Attributes:
        opened: the files of slices that are open.
    """

    def __init__(self, folder: Path, layout: Layout) -> None:
        self.opened = OpenFiles(folder)
        self._layout = layout
        self._last: tuple[str, SavedWindow] | None = None

    def read(self, name: str, rows: int) -> SavedWindow:
        """Return a state of ``rows`` groups.

        It is then no longer cached, and other files are closed: a caller that repeats a failed step
        may have left other files of the same names.

        Raises:
            EngineError: see ``read_saved``.
        """
        last = self._last
        if last is not None and last[0] == name:
            saved = last[1]
        else:
            saved = read_saved(self.opened.folder, name, self._layout, rows)
        self._last = None
        self.opened.keep(file.name for file in saved.files)
        return saved

    def write(self, name: str, saved: SavedWindow) -> int:
        """Write a state, and return the size of its file."""
        size = write_saved(self.opened.folder, name, saved)
        self._last = name, saved
        self.opened.keep(file.name for file in saved.files)
        return size

    def forget(self) -> None:
        """Forget the state, and close its files."""
        self._last = None
        self.opened.keep(())


def write_saved(folder: Path, name: str, saved: SavedWindow) -> int:
    """Write the live table and return the size of its file."""
    manifest = {
        "window": saved.window,
        "span": saved.span,
        "next_id": saved.next_id,
        "files": [astuple(file) for file in saved.files],
    }
    columns: dict[str, pa.Array | pa.ChunkedArray] = {
        "id": pa.array(saved.ids),
        **number_columns(saved.table.totals),
        **{f"f{n}": as_column(values) for n, values in enumerate(saved.table.front)},
    }
    columns |= {f"key {key}": saved.keys[key] for key in saved.keys.column_names}
    table = pa.table(columns).replace_schema_metadata({_MANIFEST: json.dumps(manifest)})
    path = folder / name
    with pa.OSFile(str(path), "wb") as sink, pa.ipc.new_file(sink, table.schema) as writer:
        writer.write_table(table)
    return path.stat().st_size


def read_saved(folder: Path, name: str, layout: Layout, rows: int) -> SavedWindow:
    """Return what ``write_saved`` wrote.

    Raises:
        EngineError: the file is missing, unreadable, or does not hold ``rows`` groups.
    """
    path = folder / name
    try:
        with pa.OSFile(str(path)) as source, pa.ipc.open_file(source) as reader:
            table = reader.read_all()
    except (OSError, pa.ArrowException) as error:
        message = f"cannot read the state of {rows} groups in {path}: {error}"
        raise EngineError(message) from error
    if table.num_rows != rows:
        message = f"expected the state of {rows} groups in {path}, got {table.num_rows}"
        raise EngineError(message)
    manifest = json.loads(table.schema.metadata[_MANIFEST])
    fronts = [as_array(table[f"f{n}"]) for n in range(len(layout.stacked))]
    live = LiveTable(layout, numbers_of(table, layout), fronts, np.arange(rows))
    names = [name for name in table.column_names if name.startswith("key ")]
    keys = pa.table({name.removeprefix("key "): table[name] for name in names})
    return SavedWindow(
        manifest["window"],
        tuple(manifest["span"]),
        manifest["next_id"],
        keys,
        table["id"].to_numpy(),
        live,
        tuple(SliceFile(*file) for file in manifest["files"]),
    )
