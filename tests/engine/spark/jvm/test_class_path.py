"""Which jars the gateway JVM gets."""

from __future__ import annotations

from typing import TYPE_CHECKING

from gscope.engine.spark.jvm.class_path import class_path, spark_home

if TYPE_CHECKING:
    from pathlib import Path


def test_products_that_are_never_used_stay_out(tmp_path: Path) -> None:
    (tmp_path / "jars").mkdir()
    for name in ("spark-sql_2.13-4.3.0.jar", "spark-mllib_2.13-4.3.0.jar", "notes.txt"):
        (tmp_path / "jars" / name).touch()
    assert class_path(tmp_path) == [tmp_path / "jars" / "spark-sql_2.13-4.3.0.jar"]


def test_a_jar_that_is_not_known_stays_in(tmp_path: Path) -> None:
    (tmp_path / "jars").mkdir()
    (tmp_path / "jars" / "hive-storage-api-2.8.1.jar").touch()
    (tmp_path / "jars" / "a-new-one-1.0.jar").touch()
    assert [jar.name for jar in class_path(tmp_path)] == [
        "a-new-one-1.0.jar",
        "hive-storage-api-2.8.1.jar",
    ]


def test_the_installed_spark_has_its_sql_and_neither_hive_nor_machine_learning() -> None:
    names = [jar.name for jar in class_path(spark_home())]
    assert any(name.startswith("spark-sql_") for name in names)
    assert not any(name.startswith(("spark-hive", "spark-mllib", "kubernetes")) for name in names)
