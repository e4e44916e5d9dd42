"""Whether kernels check every access to an array, which only numba's code does (for tests)."""

from __future__ import annotations

import os

_BOUNDSCHECK = os.environ.get("GSCOPE_BOUNDSCHECK", "") not in ("", "0")


def checks_bounds() -> bool:
    """Return whether kernels check every access to an array."""
    return _BOUNDSCHECK
