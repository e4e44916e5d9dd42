"""Where tasks run that read files of the run: on hosts that see them, while these have free cores.

Spark prefers the hosts that an element of an RDD names. A task that starts elsewhere fetches what
it reads; how long Spark waits for a preferred host is ``spark.locality.wait.node``.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeVar

from py4j.protocol import Py4JJavaError
from pyspark import RDD, TaskContext
from pyspark.serializers import CPickleSerializer
from pyspark.sql import DataFrame

from gscope.engine.storage.transfer.run_files import files_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from pyspark import SparkContext
    from pyspark.sql import SparkSession

    from gscope.engine.storage.transfer.access import FileAccess

_T = TypeVar("_T")

_LOOKS = 2
"""Tasks that look for the folder on each host: some of its executors may not see it."""


def one_task_each(session: SparkSession, items: Sequence[_T]) -> RDD[_T]:
    """Return ``items``, at least one, each in a partition of its own, near the files of the run."""
    context = session.sparkContext
    hosts = _near_hosts(session)
    if not hosts:
        return context.parallelize(items, len(items))
    return _placed(context, [(item, hosts) for item in items])


def numbers_in_tasks(session: SparkSession, count: int) -> DataFrame:
    """Return the numbers below ``count`` as one column.

    Each is in a task near the files of the run.
    """
    hosts = _near_hosts(session)
    if not hosts:
        return session.range(0, count, 1, count)
    jvm: Any = session.sparkContext._jvm
    placed = _placed_in_java(session.sparkContext, ((number, hosts) for number in range(count)))
    java: Any = session._jsparkSession
    numbers = DataFrame(java.createDataset(placed, jvm.Encoders.INT()).toDF(), session)
    # An exchange is needed unless Spark knows that there is one partition.
    return numbers.coalesce(1) if count == 1 else numbers


def _near_hosts(session: SparkSession) -> tuple[str, ...]:
    """Return the hosts whose executors see the folder of the run; () if that makes no difference.

    Hosts that are new are looked at.
    """
    files = files_of(session)
    if files is None or files.is_shared:
        return ()
    found = _executor_hosts(session.sparkContext)
    if new := found - files.near.keys():
        files.near.update(_looked_at(session.sparkContext, sorted(new), files.access))
    return tuple(sorted(host for host in found if files.near.get(host)))


def _executor_hosts(context: SparkContext) -> set[str]:
    scala: Any = context._jsc.sc()
    listed = scala.statusStore().executorList(True)
    executors = (listed.apply(number) for number in range(listed.size()))
    found = {str(each.id()): str(each.hostPort()) for each in executors}
    return {place.rpartition(":")[0] for name, place in found.items() if name != "driver"}


def _looked_at(context: SparkContext, hosts: Sequence[str], access: FileAccess) -> dict[str, bool]:
    """Return whether executors see the folder, by host.

    Hosts without a free core may be missing.
    """

    def look(_: str) -> tuple[int, bool]:
        task = TaskContext.get()
        assert task is not None
        return task.stageId(), access.is_here

    looks = _placed(context, [(host, (host,)) for host in hosts for _ in range(_LOOKS)])
    seen = looks.map(look).collect()
    scala: Any = context._jsc.sc()
    try:
        scala.listenerBus().waitUntilEmpty()
    except Py4JJavaError:  # its timeout: Spark cannot say yet where the tasks ran
        return {}
    tasks = scala.statusStore().taskList(seen[0][0], 0, 4 * len(seen))
    found: dict[str, bool] = {}
    for number in range(tasks.size()):
        task = tasks.apply(number)
        if str(task.status()) == "SUCCESS":
            host = str(task.host())
            found[host] = found.get(host, True) and seen[task.index()][1]
    return found


def _placed(context: SparkContext, items: Iterable[tuple[_T, Sequence[str]]]) -> RDD[_T]:
    """Return an RDD with one partition for each item, which prefers the hosts beside the item."""
    pickle: Any = CPickleSerializer()
    pickled = [(pickle.dumps(item), hosts) for item, hosts in items]
    return RDD(_placed_in_java(context, pickled).toJavaRDD(), context, pickle)


def _placed_in_java(context: SparkContext, items: Iterable[tuple[Any, Sequence[str]]]) -> Any:
    jvm: Any = context._jvm
    sequence = jvm.PythonUtils.toSeq
    pairs = [jvm.scala.Tuple2(item, sequence(list(hosts))) for item, hosts in items]
    scala: Any = context._jsc.sc()
    return scala.makeRDD(sequence(pairs), jvm.scala.reflect.ClassTag.Any())
