"""Windows by DuckDB: sums of each pair and slide, then a RANGE frame over them, as CSV.

python -m benchmarks.windows.duckdb_peer PARQUET RANGE_MS SLIDE_MS
"""

from __future__ import annotations

import sys

import duckdb


def main() -> None:
    """Write the ten pairs with most bytes of each window to standard output."""
    path, range_ms, slide_ms = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
    duckdb.execute("SET threads = 2")
    duckdb.execute(
        f"""
        COPY (
            WITH panes AS (
                SELECT time_ns // {slide_ms * 10**6} AS pane, src, dst, count(*) AS packets,
                       sum(len) AS bytes
                FROM '{path}' GROUP BY ALL
            ), slid AS (
                SELECT (pane + 1) * {slide_ms} AS window_end, src, dst,
                       sum(packets) OVER w AS packets, sum(bytes) OVER w AS bytes
                FROM panes
                WINDOW w AS (PARTITION BY src, dst ORDER BY pane
                             RANGE BETWEEN {range_ms // slide_ms - 1} PRECEDING AND CURRENT ROW)
            )
            FROM slid
            QUALIFY row_number() OVER (PARTITION BY window_end ORDER BY bytes DESC) <= 10
            ORDER BY window_end, bytes DESC
        ) TO '/dev/stdout' (FORMAT csv)
        """
    )


if __name__ == "__main__":
    main()
