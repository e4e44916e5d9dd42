"""Watchlists as views, read when the job starts and again when their files change."""

from __future__ import annotations

import logging
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from gscope.engine.spark.sql.watchlist_join import view
from gscope.engine.storage.watchlists import read_watchlist
from gscope.errors import EngineError
from gscope.queries.expressions.types import GsqlType
from gscope.queries.plan.program import WatchlistJoinNode

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from gscope.engine.storage.watchlists import Row
    from gscope.queries.expressions.expressions import Value
    from gscope.queries.plan.logical import Watchlist
    from gscope.queries.plan.program import Program

_log = logging.getLogger(__name__)

_ARROW_TYPES = {
    GsqlType.BOOL: pa.bool_(),
    GsqlType.FLOAT: pa.float64(),
    GsqlType.STRING: pa.string(),
    GsqlType.IP: pa.binary(),
}


class Watchlists:
    """The tables with which a program joins its streams.

    Raises:
        EngineError: a file cannot be read when the job starts.
    """

    def __init__(self, session: SparkSession, program: Program) -> None:
        self._session = session
        self._watchlists = {
            node.watchlist.name: node.watchlist
            for node in program.nodes
            if isinstance(node, WatchlistJoinNode)
        }
        self._versions: dict[str, tuple[int, ...]] = {}
        for watchlist in self._watchlists.values():
            self._versions[watchlist.name] = _version(watchlist)
            self._register(watchlist)

    def refresh(self) -> None:
        """Read files again that have changed; an invalid file leaves its table as it was."""
        for watchlist in self._watchlists.values():
            version = _version(watchlist)
            if version == self._versions[watchlist.name]:
                continue
            self._versions[watchlist.name] = version
            try:
                self._register(watchlist)
            except EngineError as error:
                _log.warning("watchlist %s unchanged: %s", watchlist.name, error)

    def _register(self, watchlist: Watchlist) -> None:
        table = _table(watchlist, read_watchlist(watchlist))
        self._session.createDataFrame(table).createOrReplaceTempView(view(watchlist))


def _version(watchlist: Watchlist) -> tuple[int, ...]:
    """Return inode, size and time of a file, which show a change; () if it is missing."""
    try:
        status = Path(watchlist.path).stat()
    except OSError:
        return ()
    return status.st_ino, status.st_size, status.st_mtime_ns


def _table(watchlist: Watchlist, rows: list[Row]) -> pa.Table:
    columns = watchlist.schema.columns
    arrays = [
        pa.array([_stored(row[n], c.type) for row in rows], _ARROW_TYPES.get(c.type, pa.int64()))
        for n, c in enumerate(columns)
    ]
    return pa.table(arrays, names=list(watchlist.schema.names))


def _stored(value: Value, kind: GsqlType) -> Any:
    if kind is GsqlType.IP and isinstance(value, int):
        return value.to_bytes(16, "big")
    return value.decode("iso-8859-1") if isinstance(value, bytes) else value
