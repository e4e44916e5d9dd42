"""When a step is divided into partitions, and into what portions."""

from __future__ import annotations

SPLIT_ROWS = 400_000
"""With fewer rows in its largest epoch, a step is not divided into partitions."""

LABELLED_SHARE = 0.5
"""With a smaller share of rows in row groups of few partitions, a step is not divided: every task
would read and hash all rows."""

PORTION_ROWS = 200_000
"""About how many rows of streams a task computes at a time."""
