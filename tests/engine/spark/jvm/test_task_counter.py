"""Tasks of Spark are counted as they end."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from tests.support.gscope_command import wait_for

from gscope.engine.spark.jvm.task_counter import ended_tasks

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.spark


def test_each_task_that_ends_is_counted(spark: SparkSession) -> None:
    before = ended_tasks(spark)
    spark.range(0, 100, 1, 5).write.format("noop").mode("overwrite").save()
    wait_for(lambda: ended_tasks(spark) >= before + 5, "the end of five tasks")
