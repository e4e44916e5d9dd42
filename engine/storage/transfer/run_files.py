"""The files of a run on a cluster, on the side of the job: their server, and who sees them."""

from __future__ import annotations

import secrets
from dataclasses import field
from typing import TYPE_CHECKING
from weakref import WeakKeyDictionary

from gscope.engine.storage.transfer.access import IDENTITY_FILE, FileAccess
from gscope.errors import EngineError
from gscope.queries.os_errors import os_reason
from gscope.records import dataclass

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark import SparkContext
    from pyspark.sql import SparkSession

    from gscope.engine.storage.transfer.server import FileServer


@dataclass(slots=True)
class RunFiles:
    """The files of a run.

    Attributes:
        access: what tasks need to reach them.
        is_shared: whether all executors see the folder; else those that do not use the server.
        server: the server; None if there is none.
        near: where only some executors see the folder, whether those of a host do, by the name of
            the host for Spark (``engine/spark/cluster/placement.py``).
    """

    access: FileAccess
    is_shared: bool = True
    server: FileServer | None = None
    near: dict[str, bool] = field(default_factory=dict)

    def stop(self) -> None:
        """End the server."""
        if self.server is not None:
            self.server.stop()


_LOOPBACK = "127."

_of_contexts: WeakKeyDictionary[SparkContext, RunFiles] = WeakKeyDictionary()


def files_of(session: SparkSession) -> RunFiles | None:
    """Return the files that tasks of ``session`` use; None if tasks run in the job's own Java."""
    return _of_contexts.get(session.sparkContext)


def attach(session: SparkSession, files: RunFiles) -> None:
    """Make tasks of ``session`` use ``files``."""
    _of_contexts[session.sparkContext] = files


def detach(session: SparkSession) -> None:
    """Undo ``attach``."""
    _of_contexts.pop(session.sparkContext, None)


def marked(root: Path, folder: Path) -> FileAccess:
    """Give a folder a new identity, by which executors that share it recognize it.

    Args:
        root: the folder of all files of the run.
        folder: the folder of it to which tasks write.

    Raises:
        EngineError: it cannot be written.
    """
    identity = secrets.token_hex(16)
    try:
        (folder / IDENTITY_FILE).write_text(identity, encoding="utf-8")
    except OSError as error:
        message = f"cannot write to {folder}: {os_reason(error)}"
        raise EngineError(message) from error
    return FileAccess(str(root), str(folder / IDENTITY_FILE), identity)


def prepare_files(
    session: SparkSession,
    root: Path,
    folder: Path,
    host: str,
    port: int = 0,
    tls: tuple[str, str] | None = None,
) -> RunFiles:
    """Find out whether executors see the files of a run, and serve them if not.

    Args:
        session: the session, with executors.
        root: the folder of all files of the run.
        folder: the folder of it to which tasks write.
        host: the name or address under which executors reach this host.
        port: the port of the server; 0 for a free one.
        tls: certificate chain and key of the server, in PEM; None if there are none.

    Raises:
        EngineError: executors do not see the folder, and it cannot be served safely.
    """
    access = marked(root, folder)
    tasks = max(1, 2 * session.sparkContext.defaultParallelism)
    seen = session.sparkContext.parallelize(range(tasks), tasks).map(lambda _: access.is_here)
    if all(seen.collect()):
        files = RunFiles(access)
    elif tls is None and not host.startswith(_LOOPBACK):
        message = (
            f"executors do not see the run's folder {root}, or may not write to it: put --work-dir"
            " on a filesystem that all hosts share and let executors run as the user of the job, or"
            " let the job send files over TLS with --tls-certificate and --tls-key"
            " (docs/cluster.md)"
        )
        raise EngineError(message)
    else:
        files = serve(access, root, host, port, tls)
    attach(session, files)
    return files


def serve(
    access: FileAccess, root: Path, host: str, port: int, tls: tuple[str, str] | None
) -> RunFiles:
    """Serve the files of ``root`` to executors that do not see it.

    Args:
        access: of ``marked``.
        root: the folder.
        host: the name or address under which executors reach this host.
        port: the port; 0 for a free one.
        tls: certificate chain and key, in PEM; None without TLS, on loopback only.

    Raises:
        EngineError: the port cannot be used.
    """
    from gscope.engine.storage.transfer.server import FileServer

    scheme = "grpc" if tls is None else "grpc+tls"
    address = host if tls is None else "0.0.0.0"
    token = secrets.token_hex(32)
    pair = None if tls is None else (tls[0].encode(), tls[1].encode())
    server = FileServer(root, token, f"{scheme}://{address}:{port}", pair)
    served = FileAccess(
        access.root,
        access.marker,
        access.identity,
        f"{scheme}://{host}:{server.port}",
        token,
        "" if tls is None else tls[0],
    )
    return RunFiles(served, is_shared=False, server=server)
