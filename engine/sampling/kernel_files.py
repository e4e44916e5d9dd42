"""Kernels of sampling operators on disk: a folder for each, named by a hash of its text.

The folder has the text, ``kernel.py``, and what numba has compiled of it, ``machine_code``. The
text includes every function that it calls. Both are executed, so only folders are used that no
other user can write to.
"""

from __future__ import annotations

import hashlib
import importlib.util
import logging
import os
import shutil
import sys
from contextlib import suppress
from typing import TYPE_CHECKING

from gscope.queries.ownership import ensure_private_folder
from gscope.queries.user_cache import cache_folder, keep_text

if TYPE_CHECKING:
    from pathlib import Path
    from types import ModuleType

_log = logging.getLogger(__name__)

MAX_KEPT = 100
"""The most kernels that are kept on disk: those that were used last."""

_MODULE = "gscope_sampling_"
"""Prefix of the names of modules of kernels, by which numba finds the module of a stored kernel."""


def kernel_module(text: str) -> tuple[ModuleType, Path] | None:
    """Return the module of a kernel, imported from its file, and the folder of its machine code.

    None if this user has no folder for it.
    """
    cache = cache_folder()
    if cache is None:
        return None
    name = hashlib.sha256(text.encode()).hexdigest()[:16]
    try:
        folder = ensure_private_folder(cache / "sampling" / name)
        folder.chmod(0o700)
        path = folder / "kernel.py"
        keep_text(path, text)
        os.utime(folder)
        _remove_old(folder.parent)
    except OSError as error:
        _log.info("cannot keep kernels of sampling operators: %s", error)
        return None
    return _imported(_MODULE + name, path, text), folder / "machine_code"


def _imported(name: str, path: Path, text: str) -> ModuleType:
    """Return a new module of ``text``, whose functions name ``path`` as their file."""
    spec = importlib.util.spec_from_file_location(name, path)
    assert spec is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    exec(compile(text, str(path), "exec"), vars(module))  # our own text
    return module


def _remove_old(kernels: Path) -> None:
    """Remove the kernels that were not used for longest; other processes may do so, too."""
    used: list[tuple[float, Path]] = []
    for folder in kernels.iterdir():
        with suppress(FileNotFoundError):
            used.append((folder.stat().st_mtime, folder))
    for _, old in sorted(used, reverse=True)[MAX_KEPT:]:
        shutil.rmtree(old, ignore_errors=True)
