"""The class-data archive, with which the gateway JVM starts in a third of the time.

A cold start spends most of its time loading, verifying and linking some 15,000 classes. A JVM that
has run a typical job dumps them to a file when it ends; later JVMs map that file. The dump takes
longer than a cold start, so no run waits for it: a detached process of low priority runs a job of
its own, once for each combination of Java, Spark and options::

    python -m gscope.engine.spark.jvm.class_data_archive

``GSCOPE_NO_ARCHIVE=1`` neither builds nor uses one.
"""

from __future__ import annotations

import fcntl
import hashlib
import logging
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from contextlib import contextmanager, suppress
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from gscope.engine.spark.jvm.class_path import class_path, spark_home
from gscope.engine.spark.jvm.gateway import launch_jvm
from gscope.engine.spark.jvm.java import find_java
from gscope.engine.spark.jvm.jvm_settings import DEFAULT_HEAP_BYTES, JvmSettings, uses_aot_cache
from gscope.errors import EngineError
from gscope.queries.ownership import ensure_private_folder, fault_of_folder, is_trusted_file
from gscope.queries.user_cache import cache_folder

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from gscope.engine.spark.jvm.gateway import JvmProcess

DISABLED_BY = "GSCOPE_NO_ARCHIVE"

BUILD_TIMEOUT_S = 600
"""A build that takes longer is abandoned.

It takes 10 s of an idle core, but runs at the lowest priority: on a machine that is busy for
minutes, a shorter limit would end each build, and each run would start another.
"""

KEPT_ARCHIVES = 3
"""How many archives are kept, of some 200 MB each; the least recently used are deleted first."""

MOST_ARCHIVES = 8
KEPT_S = 24 * 3600
"""Up to ``MOST_ARCHIVES`` archives that were used within this time are kept.

Where more than ``KEPT_ARCHIVES`` installations are used in turn, each would otherwise delete
another's archive, start without its own, and build it again, in every run.
"""

_FORMAT = "2"

# A larger heap lays out objects differently, and an archive holds objects.
_COMPRESSED_POINTERS_BELOW_BYTES = 32 << 30

_log = logging.getLogger(__name__)


def archive_directory(environ: Mapping[str, str]) -> Path:
    """Return the folder of archives, ``jvm`` in the user's cache.

    Raises:
        EngineError: this user has no place for them.
    """
    folder = cache_folder(environ)
    if folder is None:
        message = (
            "no folder for class-data archives:"
            " set XDG_CACHE_HOME to one that only you can write to"
        )
        raise EngineError(message)
    return folder / "jvm"


def archive_path(settings: JvmSettings, environ: Mapping[str, str] | None = None) -> Path:
    """Return the path of the archive for a JVM with ``settings``, whether or not it exists.

    Its name is a hash of all properties for which the JVM may refuse an archive: the build of Java,
    the class path with sizes and times of the jars, and the width of pointers. One archive serves
    both choices of compilers.
    """
    digest = hashlib.sha256(f"{_FORMAT}\0{settings.java.home}\0{settings.java.identity}".encode())
    compressed = settings.heap_bytes < _COMPRESSED_POINTERS_BELOW_BYTES
    digest.update(f"\0{compressed}".encode())
    for jar in class_path(spark_home(), has_managers=settings.has_managers):
        status = jar.stat()
        digest.update(f"\0{jar}\0{status.st_size}\0{status.st_mtime_ns}".encode())
    suffix = "aot" if uses_aot_cache(settings.java) else "jsa"
    directory = archive_directory(os.environ if environ is None else environ)
    return directory / f"{digest.hexdigest()[:32]}.{suffix}"


def with_archive(settings: JvmSettings, environ: Mapping[str, str] | None = None) -> JvmSettings:
    """Return ``settings`` with the archive that fits them, if there is one that can be trusted."""
    environment = os.environ if environ is None else environ
    if environment.get(DISABLED_BY):
        return settings
    try:
        path = archive_path(settings, environment)
    except EngineError:
        return settings
    if fault_of_folder(path.parent) is not None or not is_trusted_file(path):
        return settings
    with suppress(OSError):
        os.utime(path)
    return replace(settings, archive=path)


def can_archive(settings: JvmSettings) -> bool:
    """Return whether this Java can dump an archive; before AOT caches it needs a base archive."""
    base = settings.java.home / "lib" / "server" / "classes.jsa"
    return uses_aot_cache(settings.java) or base.exists()


def build_later(
    settings: JvmSettings, environ: Mapping[str, str] | None = None
) -> subprocess.Popen[bytes] | None:
    """Start a detached build if the archive is missing, and return at once.

    Call it at the end of a run, so that the build does not delay the user's answer. The process
    runs at the lowest priority, one at a time because of a lock, and for at most
    ``BUILD_TIMEOUT_S``; SIGTERM ends it. It survives this process.

    Returns:
        The process, or None if there is nothing to build.
    """
    environment = os.environ if environ is None else environ
    if environment.get(DISABLED_BY) or not can_archive(settings):
        return None
    try:
        if archive_path(settings, environment).exists():
            return None
    except EngineError:
        return None
    command = [sys.executable, "-P", "-m", "gscope.engine.spark.jvm.class_data_archive", "--idle"]
    command += ["--java-home", str(settings.java.home)]
    command += ["--heap-bytes", str(settings.heap_bytes)]
    try:
        return subprocess.Popen(
            command,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            env=dict(environment),
            cwd="/",
            start_new_session=True,
        )
    except OSError as error:
        _log.warning("cannot build a class-data archive: %s", error)
        return None


def build_archive(settings: JvmSettings, environ: Mapping[str, str] | None = None) -> Path | None:
    """Build the archive now, unless it exists or another process builds it.

    Returns:
        The archive, or None if another process holds the lock.

    Raises:
        EngineError: this Java cannot dump an archive, or the training run or the dump failed.
    """
    environment = os.environ if environ is None else environ
    path = archive_path(settings, environment)
    if path.exists():
        return path
    if not can_archive(settings):
        message = f"Java {settings.java.version} of {settings.java.home} cannot make an archive"
        raise EngineError(message)
    try:
        ensure_private_folder(path.parent)
        with _locked(path.parent / "lock") as is_mine:
            if not is_mine:
                return None
            if not path.exists():
                _build(settings, path)
                _prune(path)
    except OSError as error:
        message = f"the class-data archive {path} could not be built: {error}"
        raise EngineError(message) from error
    return path


@contextmanager
def _locked(path: Path) -> Iterator[bool]:
    """Hold the lock file; yield False at once if another process holds it."""
    with path.open("ab") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            yield False
        else:
            yield True


def _build(settings: JvmSettings, path: Path) -> None:
    for stale in path.parent.glob("build-*"):  # their builders were killed: we hold the lock
        shutil.rmtree(stale, ignore_errors=True)
    with tempfile.TemporaryDirectory(prefix="build-", dir=path.parent) as name:
        directory = Path(name)
        product = directory / path.name
        dump = "AOTCacheOutput" if uses_aot_cache(settings.java) else "ArchiveClassesAtExit"
        training = replace(settings, archive=None, only_c1=True, options=(f"-XX:{dump}={product}",))
        with launch_jvm(training, directory) as jvm:
            _run_training_job(jvm, directory)
            jvm.close_input()
            code = jvm.wait(BUILD_TIMEOUT_S)
        if code != 0 or not product.exists() or product.stat().st_size == 0:
            message = f"the class-data archive was not written (Java's exit code {code})"
            raise EngineError(message)
        product.chmod(0o600)
        with product.open("rb") as file:
            os.fsync(file.fileno())
        product.replace(path)


def _run_training_job(jvm: JvmProcess, directory: Path) -> None:
    """Run a small job with the operators that HFTAs use: its classes become the archive."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    from gscope.engine.spark.jvm.session import INTERPRETED, detach_session, start_session

    table = pa.table(
        {
            "tb": pa.array([i // 500 for i in range(1000)], pa.int64()),
            "port": pa.array([i % 10 for i in range(1000)], pa.int64()),
            "addr": pa.array([bytes(15) + bytes([i % 7]) for i in range(1000)], pa.binary()),
            "name": pa.array([f"eth{i % 2}" for i in range(1000)], pa.string()),
            "cnt": pa.array(range(1000), pa.int64()),
        }
    )
    source = str(directory / "training.parquet")
    pq.write_table(table, source)
    session = start_session(jvm)
    try:
        ddl = "tb BIGINT, port BIGINT, addr BINARY, name STRING, cnt BIGINT"
        rows = session.read.schema(ddl).parquet(source)
        flows = rows.filter("port > 2").groupBy("tb", "port", "addr", "name")
        sums = flows.agg({"cnt": "sum"}).withColumnRenamed("sum(cnt)", "total")
        sums.coalesce(1).toArrow()
        others = rows.groupBy("tb", "port").agg({"cnt": "max"})
        joined = sums.join(others, ["tb", "port"], "full_outer").selectExpr(
            "coalesce(tb, 0) AS tb", "total / `max(cnt)` AS ratio", "CASE WHEN port > 5 THEN 1 END"
        )
        joined.toArrow()
        sums.unionByName(sums).write.parquet(str(directory / "training.out"))
        # Large merges are tasks in Python; small steps are SQL texts that are interpreted.
        session.sparkContext.parallelize([0, 1], 2).map(abs).sum()
        for key, value in INTERPRETED.items():
            session.conf.set(key, value)
        rows.coalesce(1).createOrReplaceTempView("training")
        session.sql(
            "SELECT tb, addr, decode(encode(name, 'ISO-8859-1'), 'ISO-8859-1') AS name, total FROM"
            " (SELECT tb, addr, name, sum(cnt) AS total FROM training GROUP BY 1, 2, 3)"
            " WHERE total > 1L ORDER BY tb"
        ).toArrow()
    finally:
        detach_session(session)


def _prune(newest: Path) -> None:
    archives = [*newest.parent.glob("*.jsa"), *newest.parent.glob("*.aot")]
    by_use = sorted(archives, key=lambda archive: archive.stat().st_mtime, reverse=True)
    now = time.time()
    for number, archive in enumerate(by_use[KEPT_ARCHIVES:], KEPT_ARCHIVES):
        if number >= MOST_ARCHIVES or now - archive.stat().st_mtime > KEPT_S:
            archive.unlink(missing_ok=True)


def main(arguments: Sequence[str] | None = None) -> int:
    """Build the archive for the Java that is found; return exit code 0 if it exists afterwards."""
    # Imported here: a job that only looks for an archive does not need it.
    import argparse

    parser = argparse.ArgumentParser(prog="python -m gscope.engine.spark.jvm.class_data_archive")
    parser.add_argument("--java-home", help="the Java to build for (default: the one found)")
    parser.add_argument("--heap-bytes", type=int, default=DEFAULT_HEAP_BYTES)
    parser.add_argument("--idle", action="store_true", help="run at the lowest priority")
    given = parser.parse_args(arguments)
    if given.idle:
        os.nice(19)
    # Unwinding ends the training JVM; the alarm bounds the life of a detached process.
    signal.signal(signal.SIGTERM, _leave)
    signal.signal(signal.SIGALRM, _leave)
    signal.alarm(BUILD_TIMEOUT_S)
    environ = dict(os.environ)
    if given.java_home:
        environ["JAVA_HOME"] = given.java_home
    try:
        settings = JvmSettings(find_java(environ), heap_bytes=given.heap_bytes)
        built = build_archive(settings)
    except EngineError as error:
        sys.stderr.write(f"gscope: {error}\n")
        return error.exit_code
    finally:
        signal.alarm(0)
    if built is not None:
        sys.stdout.write(f"{built}\n")
    return 0


def _leave(number: int, _frame: object) -> None:
    raise SystemExit(128 + number)


if __name__ == "__main__":
    sys.exit(main())
