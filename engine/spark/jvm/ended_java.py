"""How the job's Java ended, and why while it waited for the executors of a cluster."""

from __future__ import annotations

import re
from contextlib import contextmanager
from typing import TYPE_CHECKING

from gscope.engine.spark.cluster.master import MasterKind
from gscope.engine.spark.jvm.cause import cause_in
from gscope.errors import EngineError, JavaGoneError, JavaMemoryError
from gscope.queries.os_errors import ended_with

if TYPE_CHECKING:
    from collections.abc import Iterator

    from gscope.engine.spark.cluster.master import Master
    from gscope.engine.spark.jvm.gateway import JvmProcess

OUT_OF_MEMORY = 52
"""The exit code of a Java in which Spark caught an OutOfMemoryError."""

_DEATH_WAIT_S = 1.0
"""How long to wait for the exit code: connections break before the process has ended."""

_MOST_FAILURES = re.compile(r"Max number of executor failures \((\d+)\) reached")


def how_java_ended(jvm: JvmProcess) -> JavaGoneError | None:
    """Return the error for a Java that has just ended; None if it runs."""
    code = jvm.wait(_DEATH_WAIT_S)
    if code is None:
        return None
    if code == OUT_OF_MEMORY:
        return out_of_memory(jvm)
    return JavaGoneError(f"Spark's Java ended with {ended_with(code)}")


def out_of_memory(jvm: JvmProcess) -> JavaMemoryError:
    """Return the error for a Java that lacked memory."""
    heap_mb = jvm.settings.heap_bytes >> 20
    return JavaMemoryError(f"Spark's Java ran out of memory (heap: {heap_mb} MB)")


@contextmanager
def explained_end(master: Master, jvm: JvmProcess) -> Iterator[None]:
    """Explain the end of Java within the block, in which the job waits for executors.

    Raises:
        EngineError: Java ended; the message says why.
    """
    from py4j.protocol import Py4JNetworkError

    try:
        yield
    except (Py4JNetworkError, ConnectionError) as error:
        raise EngineError(why_java_ended(master, jvm)) from error


def why_java_ended(master: Master, jvm: JvmProcess) -> str:
    """Return why the job's Java ended while it waited for the executors of ``master``.

    Spark ends it when more executors have failed than ``spark.executor.maxNumFailures`` allows.
    """
    lines = jvm.log_since_start()
    if (found := _MOST_FAILURES.search(lines)) is None:
        return (
            f"Java ended before an executor of {master} was ready: {cause_in(lines.splitlines())}"
        )
    message = f"executors of {master} failed more than {found[1]} times before one was ready"
    if master.kind is MasterKind.KUBERNETES:
        message += (
            "; --spark-conf spark.kubernetes.executor.deleteOnTermination=false keeps their pods,"
            " whose logs say why"
        )
    return message
