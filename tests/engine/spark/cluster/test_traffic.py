"""Exchanges between tasks are counted by what Spark's stages have written."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from gscope.engine.spark.cluster.traffic import TrafficMeter
from gscope.engine.storage.transfer.run_files import RunFiles, attach, detach, marked

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import SparkSession


@pytest.mark.spark
def test_exchanges_are_counted_from_the_construction_on(
    spark: SparkSession, tmp_path: Path
) -> None:
    assert TrafficMeter.of(spark) is None, "tasks run in the job's own Java"
    attach(spark, RunFiles(marked(tmp_path, tmp_path)))
    try:
        spark.range(0, 5_000, 1, 2).repartition(2).collect()
        meter = TrafficMeter.of(spark)
        assert meter is not None
        spark.range(0, 5_000, 1, 2).toArrow()
        assert meter.bytes_by_kind() == dict.fromkeys(
            ("segments", "carried", "returned", "exchanged"), 0
        )
        # Random values cannot be compressed to less than they have.
        spark.range(0, 5_000, 1, 2).selectExpr("xxhash64(id) AS h").repartition(2).collect()
        exchanged = meter.bytes_by_kind()["exchanged"]
        assert 8 * 5_000 <= exchanged < 6 * 8 * 5_000
        assert meter.bytes_by_kind()["exchanged"] == exchanged
    finally:
        detach(spark)
