"""Spark configuration that users may not set, because answers or the job depend on it."""

from __future__ import annotations

_PLANS = "the job decides how its plans are executed, and its checks of what tasks wrote rely on it"
_MEANING = "it would change what queries mean"
_SECRET = "it is set from spark.secret_file (--spark-secret-file), so that no process list shows it"
_STARTED = "the Java of the job has started before Spark reads it"
_WORKERS = "the job starts the Python workers in its own way"
_OWN_SETTING = "gscope has a setting of its own: {}"

REFUSED: dict[str, str] = {
    "spark.master": _OWN_SETTING.format("spark.master (--master)"),
    "spark.submit.deployMode": "the job is the driver, and runs where gscope runs",
    "spark.driver.host": _OWN_SETTING.format("spark.driver_host (--spark-driver-host)"),
    "spark.driver.memory": _OWN_SETTING.format("spark.memory (--spark-memory)"),
    "spark.driver.extraJavaOptions": _STARTED,
    "spark.driver.defaultJavaOptions": _STARTED,
    "spark.driver.extraClassPath": _STARTED,
    "spark.driver.extraLibraryPath": _STARTED,
    "spark.app.name": "gscope finds its application by this name",
    "spark.local.dir": "the run's folder holds the job's temporary files; workers have settings of"
    " their own (SPARK_LOCAL_DIRS)",
    "spark.authenticate": "executors run code that the driver sends: without authentication, others"
    " could send it as well",
    "spark.authenticate.secret": _SECRET,
    "spark.authenticate.secret.file": _SECRET,
    "spark.authenticate.secret.driver.file": _SECRET,
    "spark.authenticate.secret.executor.file": _SECRET,
    "spark.network.crypto.enabled": "the programs and rows that it encrypts are private",
    "spark.pyspark.python": _OWN_SETTING.format("spark.python (--spark-python)"),
    "spark.pyspark.driver.python": "the driver is gscope itself",
    "spark.python.daemon.module": _WORKERS,
    "spark.python.worker.module": _WORKERS,
    "spark.python.use.daemon": _WORKERS,
    "spark.serializer": "the job's Python objects have one form",
    "spark.ui.showConsoleProgress": "the terminal belongs to gscope",
    "spark.driver.maxResultSize": "the job bounds what its tasks return",
}
"""Settings by name, with the reason why they are refused."""

REFUSED_PREFIXES: dict[str, str] = {
    "spark.sql.": _MEANING + ", or how the job executes it",
    "spark.sql.adaptive.": _PLANS,
    "spark.connect.": "the job does not use Spark Connect",
    "spark.streaming.": "the job does not use Spark's streaming",
}
"""Prefixes of settings that are refused; the longest one that fits gives the reason."""

ALLOWED = frozenset(
    {
        "spark.sql.shuffle.partitions",
        "spark.sql.autoBroadcastJoinThreshold",
        "spark.sql.files.maxPartitionBytes",
        "spark.sql.files.openCostInBytes",
    }
)
"""Settings of speed alone, in spite of ``REFUSED_PREFIXES``."""


def refusal(name: str) -> str | None:
    """Return why the setting ``name`` is refused; None if it is accepted."""
    if not name.startswith("spark.") or name == "spark.":
        return "names of Spark's settings begin with spark."
    if name in ALLOWED:
        return None
    if name in REFUSED:
        return REFUSED[name]
    fitting = [prefix for prefix in REFUSED_PREFIXES if name.startswith(prefix)]
    return REFUSED_PREFIXES[max(fitting, key=len)] if fitting else None
