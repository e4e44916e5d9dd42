"""ORDER BY and LIMIT: a query that keeps ten rows against the same query that keeps all.

    python -m benchmarks.top_rows [--packets N] [--runs 5] [--only 'pairs of 10 s']

Packets are grouped by pair of addresses, in epochs of 10 s and over the whole capture; answers go
to CSV. The difference in CPU of two contestants is the cost of choosing the first rows, less that
of the rows that are not written.
"""

from __future__ import annotations

import sys
from pathlib import Path

from benchmarks.measure import Contestant
from benchmarks.replay_race import race_over_capture
from benchmarks.trace import OUT

_COLUMNS = "srcIP, destIP, count(*) AS packets, sum(len) AS bytes"
_EPOCHS = f"SELECT tb, {_COLUMNS} FROM IP GROUP BY time/10 AS tb, srcIP, destIP"
_WHOLE = f"SELECT {_COLUMNS} FROM IP GROUP BY srcIP, destIP"
_TOP = "ORDER BY bytes DESC LIMIT 10"
QUERIES = {
    "pairs of 10 s": _EPOCHS,
    "top 10 of 10 s": f"{_EPOCHS} {_TOP}",
    "pairs of all": _WHOLE,
    "top 10 of all": f"{_WHOLE} {_TOP}",
}


def contestants(capture: Path) -> list[Contestant]:
    """Return each query as a contestant."""
    gscope = str(Path(sys.executable).parent / "gscope")
    return [
        Contestant(
            name,
            ((gscope, "replay", str(capture), "-e", query, "-o", "csv"),),
            OUT / f"{name.replace(' ', '-')}.csv",
        )
        for name, query in QUERIES.items()
    ]


if __name__ == "__main__":
    race_over_capture(__doc__, contestants, "top_rows")
