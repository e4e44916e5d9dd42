"""Windows by DuckDB: every tuple is joined to each window that holds it, as CSV.

python -m benchmarks.windows.brute_force PARQUET KEY RANGE/SLIDE …
"""

from __future__ import annotations

import sys

import duckdb


def main() -> None:
    """Write the rows of all windows to standard output; KEY is a column, or empty."""
    path, key, *windows = sys.argv[1:]
    duckdb.execute("SET threads = 2")
    duckdb.execute(f"CREATE TABLE tuples AS FROM '{path}'")
    keys = f"{key}, " if key else ""
    for number, window in enumerate(windows):
        range_s, slide_s = map(int, window.split("/"))
        duckdb.execute(
            f"""
            COPY (
                SELECT {number} AS query, window_end, {keys}count(*) AS cnt
                FROM (SELECT unnest(range({slide_s}, (SELECT max(t) FROM tuples) + {range_s} + 1,
                                          {slide_s})) AS window_end)
                JOIN tuples ON t >= window_end - {range_s} AND t < window_end
                GROUP BY ALL
            ) TO '/dev/stdout' (FORMAT csv)
            """
        )


if __name__ == "__main__":
    main()
