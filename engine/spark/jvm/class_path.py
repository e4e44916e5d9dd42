"""The class path of the gateway JVM: Spark's jars without those that gscope never uses.

Java opens each jar of the class path while it starts, to look for service providers. Half of their
entries belong to machine learning, Hive, Kubernetes and YARN. Worse, the machine-learning jar has
an extension that each new session loads, which reflects over Scala types for half a second.
"""

from __future__ import annotations

import importlib.util
from pathlib import Path

from gscope.errors import EngineError

_UNUSED = (
    # machine learning and graphs
    "spark-mllib",
    "spark-graphx",
    "algebra_",
    "arpack",
    "blas-",
    "breeze",
    "cats-kernel",
    "JLargeArrays",
    "JTransforms",
    "lapack-",
    "spire",
    # Hive, its metastore and its server; ORC needs hive-storage-api, which stays
    "spark-hive",
    "datanucleus-",
    "derby",
    "HikariCP",
    "hive-beeline",
    "hive-cli",
    "hive-common",
    "hive-exec",
    "hive-jdbc",
    "hive-metastore",
    "hive-serde",
    "hive-service",
    "hive-shims",
    "javax.jdo",
    "jdo-api",
    "libfb303",
    "libthrift",
    # cluster managers
    "spark-kubernetes",
    "spark-yarn",
    "curator-",
    "kubernetes-",
    "vertx-",
    "volcano-",
    "zookeeper",
    # Spark's shell, Connect server and pipelines
    "spark-connect_",
    "spark-pipelines",
    "spark-repl",
    "scala-compiler",
)
"""The prefixes of the jars that are left out; jars that a later Spark adds stay in."""


def spark_home() -> Path:
    """Return the folder of the pyspark package, found without importing it.

    Raises:
        EngineError: pyspark is not installed.
    """
    spec = importlib.util.find_spec("pyspark")
    if spec is None or spec.origin is None:
        message = "pyspark is not installed: run `pip install pyspark`"
        raise EngineError(message)
    return Path(spec.origin).parent


def class_path(home: Path) -> list[Path]:
    """Return the jars of the Spark in ``home``, in the fixed order that an archive needs."""
    jars = sorted((home / "jars").glob("*.jar"))
    return [jar for jar in jars if not jar.name.startswith(_UNUSED)]
