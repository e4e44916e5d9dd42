"""How tables show times."""

from __future__ import annotations

from enum import StrEnum


class TimeStyle(StrEnum):
    """The values of ``--time``."""

    UTC = "utc"
    LOCAL = "local"
    EPOCH = "epoch"
