"""Windows by Spark's window() over columns, as CSV.

python -m benchmarks.windows.spark_peer PARQUET RANGE_MS SLIDE_MS
"""

from __future__ import annotations

import csv
import sys
import tempfile
from pathlib import Path

from benchmarks.spark_session import benchmark_session


def main() -> None:
    """Write the ten pairs with most bytes of each window to standard output."""
    path, range_ms, slide_ms = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
    with (
        tempfile.TemporaryDirectory(prefix="gscope-spark-peer-") as folder,
        benchmark_session(Path(folder)) as session,
    ):
        session.read.parquet(path).createOrReplaceTempView("packets")
        session.sql(
            f"""
            CREATE TEMPORARY VIEW slid AS
            SELECT window.end AS window_end, src, dst, count(*) AS packets, sum(len) AS bytes
            FROM (SELECT timestamp_micros(time_ns DIV 1000) AS t, src, dst, len FROM packets)
            GROUP BY window(t, '{range_ms} milliseconds', '{slide_ms} milliseconds'), src, dst
            """
        )
        rows = session.sql(
            """
            SELECT date_format(window_end, 'yyyy-MM-dd HH:mm:ss.SSS'), src, dst, packets, bytes
            FROM (SELECT *, row_number() OVER (PARTITION BY window_end
                                               ORDER BY bytes DESC) AS place FROM slid)
            WHERE place <= 10 ORDER BY window_end, bytes DESC
            """
        ).collect()
        writer = csv.writer(sys.stdout)
        writer.writerow(["window_end", "src", "dst", "packets", "bytes"])
        writer.writerows(rows)


if __name__ == "__main__":
    main()
