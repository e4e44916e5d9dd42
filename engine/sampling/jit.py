"""The import of numba for kernels of sampling operators; see decision 51.

numba unpickles the machine code that it has kept, so it is kept in a folder that only this user can
write to, whatever ``NUMBA_CACHE_DIR`` says.
"""

from __future__ import annotations

import inspect
import logging
import shutil
import threading
from typing import TYPE_CHECKING, Any

import numba

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from pathlib import Path

_njit: Any = numba.njit
_typeof: Any = numba.typeof
_config: Any = numba.config
_NumbaError: Any = numba.errors.NumbaError
_log = logging.getLogger(__name__)

_choosing_folder = threading.Lock()
"""Held while numba's folder is that of one kernel."""


def compiled(
    fold: Callable[..., int], arguments: Sequence[Any], folder: Path | None = None
) -> Callable[..., int] | None:
    """Return ``fold`` compiled for arguments of these types, or loaded; None if numba cannot.

    Args:
        fold: a function of a module of kernel text. The functions of its module that it calls are
            replaced by compiled ones.
        arguments: examples of its arguments.
        folder: where numba keeps machine code, which is private to the user; what it cannot load
            from there is removed and compiled again. None to compile for this process only.
    """
    space = fold.__globals__
    functions = {n: f for n, f in space.items() if inspect.isfunction(f) and f is not fold}
    for name, function in functions.items():
        meant = functions.get(f"compiled_{name}", function)
        space[name] = _njit(error_model="numpy")(meant)
    signature = tuple(_typeof(argument) for argument in arguments)
    try:
        for _ in range(0 if folder is None else 2):
            assert folder is not None
            if (found := _kept(fold, folder, signature)) is not None:
                return found
            shutil.rmtree(folder, ignore_errors=True)
        dispatcher: Callable[..., int] = _njit(error_model="numpy", nogil=True)(fold)
        dispatcher.compile(signature)  # type: ignore[attr-defined]
    except _NumbaError as error:
        _log.info("cannot compile a kernel of a sampling operator: %s", error)
        return None
    return dispatcher


def _kept(
    fold: Callable[..., int], folder: Path, signature: tuple[Any, ...]
) -> Callable[..., int] | None:
    """Return ``fold`` loaded from ``folder``, or compiled and kept there; None if neither works."""
    with _choosing_folder:
        before, _config.CACHE_DIR = _config.CACHE_DIR, str(folder)
        try:
            folder.mkdir(mode=0o700, exist_ok=True)
            dispatcher: Callable[..., int] = _njit(error_model="numpy", nogil=True, cache=True)(
                fold
            )
            dispatcher.compile(signature)  # type: ignore[attr-defined]
        except _NumbaError:
            raise
        except Exception as error:  # numba raises whatever unpickling raises
            _log.info("cannot keep or load a kernel of a sampling operator: %s", error)
            return None
        finally:
            _config.CACHE_DIR = before
    return dispatcher
