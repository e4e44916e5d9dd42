"""What tests need of the machine: each condition once, with the reason for which it skips a test.

Where ``CI`` is set, a run that skips a test other than a live one fails (``tests/conftest.py``).
"""

from __future__ import annotations

import ctypes.util
import os
import shutil
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, NoReturn

import pytest

from gscope.capture.process.confinement.landlock import landlock_version

if TYPE_CHECKING:
    from collections.abc import Sequence

ROOT = Path(__file__).parents[2]
"""The folder of the project."""

SHARED = ROOT.parent / "shared"
CAPTURES = SHARED / "captures"
EXPECTED = SHARED / "expected"
"""What programs other than gscope read in each of the captures."""


@cache
def captures() -> list[Path]:
    """Return all shared captures, sorted by name; none where they are missing."""
    return sorted(path for path in CAPTURES.glob("*") if path.suffix != ".tsv")


needs_captures = pytest.mark.skipif(not CAPTURES.is_dir(), reason=f"{CAPTURES} does not exist")
needs_root = pytest.mark.skipif(os.geteuid() != 0, reason="not run as root")


def needs(*programs: str) -> pytest.MarkDecorator:
    """Return a mark that skips a test where one of the programs is not installed."""
    return pytest.mark.skipif(bool(_missing(programs)), reason=_reason(programs))


def needs_module(name: str) -> pytest.MarkDecorator:
    """Return a mark that skips a test where a Python module is not installed."""
    return pytest.mark.skipif(find_spec(name) is None, reason=f"not installed: {name}")


def needs_libpcap() -> pytest.MarkDecorator:
    """Return a mark that skips a test where libpcap is not installed."""
    return pytest.mark.skipif(
        ctypes.util.find_library("pcap") is None, reason="libpcap is not installed"
    )


def needs_landlock(version: int) -> pytest.MarkDecorator:
    """Return a mark that skips a test where Landlock is older than a version."""
    return pytest.mark.skipif(
        landlock_version() < version, reason=f"this kernel has no Landlock of version {version}"
    )


CLUSTER_PROGRAMS = ("unshare", "openssl")
"""The programs that a cluster of ``tests/support/spark_apart.py`` needs, besides root."""


def lacking_for_cluster() -> list[str]:
    """Return what is missing for such a cluster."""
    missing = [] if os.geteuid() == 0 else ["the rights of root"]
    return [*missing, *_missing(CLUSTER_PROGRAMS)]


def require(*programs: str) -> None:
    """Skip the running test, or what is left of it, if one of the programs is not installed."""
    if _missing(programs):
        pytest.skip(_reason(programs))


def skip_as_refused(what: str) -> NoReturn:
    """Skip the running test because the machine has refused what the test needs."""
    pytest.skip(f"refused here: {what}")


def _missing(programs: Sequence[str]) -> list[str]:
    return [program for program in programs if shutil.which(program) is None]


def _reason(programs: Sequence[str]) -> str:
    return f"not installed: {', '.join(_missing(programs))}"
