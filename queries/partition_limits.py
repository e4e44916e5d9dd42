"""How many partitions the rows of a run may have (``queries/plan/program_partitioning.py``)."""

DEFAULT_PARTITIONS = 64
"""Partitions of a run: more than it has hosts and cores, so that they can be shared out evenly."""

MAX_PARTITIONS = 1024
"""Most partitions of a run: each host and task owns several."""
