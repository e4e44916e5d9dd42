"""The user's cache folder: kernels, parser tables and class-data archives, slow to compute."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

from gscope.queries.ownership import ensure_private_folder

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping


def cache_folder(environ: Mapping[str, str] | None = None) -> Path | None:
    """Return the first candidate that this user, and no other, can write to; None if none is.

    The candidates are ``$XDG_CACHE_HOME/gscope``, ``~/.cache/gscope``, and ``gscope-<uid>/cache``
    among temporary files. The last serves users without a home, such as the numeric users of
    containers.

    Args:
        environ: the environment; by default that of this process.
    """
    for folder in _candidates(os.environ if environ is None else environ):
        try:
            found = ensure_private_folder(folder)
        except OSError:
            continue
        if os.access(
            found, os.W_OK | os.X_OK, effective_ids=os.access in os.supports_effective_ids
        ):
            return found
    return None


def _candidates(environ: Mapping[str, str]) -> Iterator[Path]:
    named = environ.get("XDG_CACHE_HOME", "")
    # The specification says to ignore relative paths.
    if named.startswith("/"):
        yield Path(named) / "gscope"
    elif (home := environ.get("HOME") or _home()).startswith("/"):
        yield Path(home) / ".cache" / "gscope"
    yield Path(tempfile.gettempdir()) / f"gscope-{os.geteuid()}" / "cache"


def _home() -> str:
    try:
        return str(Path.home())
    except RuntimeError:
        # Neither $HOME nor an entry in the user database.
        return ""
