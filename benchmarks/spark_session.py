"""A Spark session as the HFTA job starts it."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING

from gscope.engine.spark.jvm.class_data_archive import with_archive
from gscope.engine.spark.jvm.gateway import launch_jvm
from gscope.engine.spark.jvm.java import find_java
from gscope.engine.spark.jvm.jvm_settings import JvmSettings
from gscope.engine.spark.jvm.session import SessionSettings, start_session, stop_session

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from pyspark.sql import SparkSession


@contextmanager
def benchmark_session(folder: Path, heap_bytes: int = 2 << 30) -> Iterator[SparkSession]:
    """Return a session with all compilers of Java, whose files are in ``folder``.

    2 GB of heap is the default of runs.
    """
    java = JvmSettings(find_java(), heap_bytes=heap_bytes, only_c1=False)
    with launch_jvm(with_archive(java), folder) as jvm:
        session = start_session(jvm, SessionSettings())
        try:
            yield session
        finally:
            stop_session(session, jvm)
