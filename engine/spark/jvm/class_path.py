"""The class path of the gateway JVM: Spark's jars without those that gscope never uses.

Java opens each jar of the class path while it starts, to look for service providers. Half of their
entries belong to machine learning, Hive, Kubernetes and YARN; those of the last two are there for
sessions on such a cluster. Worse, the machine-learning jar has an extension that each new session
loads, which reflects over Scala types for half a second.
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
    # Spark's shell, Connect server and pipelines
    "spark-connect_",
    "spark-pipelines",
    "spark-repl",
    "scala-compiler",
)
"""The prefixes of the jars that are left out; jars that a later Spark adds stay in."""

_OF_MANAGERS = (
    "spark-kubernetes",
    "spark-yarn",
    "curator-",
    "kubernetes-",
    "vertx-",
    "volcano-",
    "zookeeper",
)
"""The prefixes of the jars of YARN and Kubernetes, which only sessions on these need."""


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


def class_path(home: Path, *, has_managers: bool = False) -> list[Path]:
    """Return the jars of the Spark in ``home``, in the fixed order that an archive needs.

    Args:
        home: the folder of pyspark.
        has_managers: whether the jars of YARN and Kubernetes are among them.
    """
    unused = _UNUSED if has_managers else (*_UNUSED, *_OF_MANAGERS)
    jars = sorted((home / "jars").glob("*.jar"))
    return [jar for jar in jars if not jar.name.startswith(unused)]


def scala_version(home: Path) -> str:
    """Return the version of Scala in the names of Spark's jars, such as 2.13.

    Raises:
        EngineError: no jar shows it.
    """
    for jar in (home / "jars").glob("spark-core_*.jar"):
        return jar.name.removeprefix("spark-core_").partition("-")[0]
    message = f"{home / 'jars'} holds no jar of Spark's core: reinstall pyspark"
    raise EngineError(message)
