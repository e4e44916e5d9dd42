"""The folders into which the rows of an answer are partitioned."""

from __future__ import annotations

from enum import StrEnum

PARTITION_OPTION = "--partition-by"


class PartitionUnit(StrEnum):
    """The values of ``--partition-by``."""

    NONE = "none"
    MONTH = "month"
    DAY = "day"
    HOUR = "hour"
    MINUTE = "minute"
