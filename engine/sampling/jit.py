"""The import of numba for kernels of sampling operators; see decision 51."""

from __future__ import annotations

import inspect
import logging
from typing import TYPE_CHECKING, Any

import numba

if TYPE_CHECKING:
    from collections.abc import Callable

_njit: Any = numba.njit
_typeof: Any = numba.typeof
_log = logging.getLogger(__name__)


def compiled(fold: Callable[..., int], *, is_kept: bool) -> Callable[..., int]:
    """Return ``fold`` compiled, with the functions of its module that it calls.

    A kernel that numba cannot compile is run by Python.

    Args:
        fold: a function of a module of kernel text.
        is_kept: whether numba keeps the machine code beside the file of the module. A file that it
            cannot load is left alone, and the kernel compiled for this process.
    """
    space = fold.__globals__
    for name, function in list(space.items()):
        if inspect.isfunction(function) and function is not fold:
            space[name] = _njit(error_model="numpy")(function)
    dispatchers = [_njit(error_model="numpy", nogil=True)(fold)]
    if is_kept:
        dispatchers.insert(0, _njit(error_model="numpy", nogil=True, cache=True)(fold))
    chosen: list[Callable[..., int]] = []

    def run(*arguments: Any) -> int:
        if not chosen:
            chosen.append(_first_compiled(dispatchers, arguments) or fold)
        return int(chosen[0](*arguments))

    return run


def _first_compiled(dispatchers: list[Any], arguments: tuple[Any, ...]) -> Any:
    """Return the first of ``dispatchers`` that numba compiles or loads; None if it cannot."""
    signature = tuple(_typeof(argument) for argument in arguments)
    for dispatcher in dispatchers:
        try:
            dispatcher.compile(signature)
        except Exception as error:  # numba raises whatever unpickling raises
            _log.info("cannot compile or load a kernel of a sampling operator: %s", error)
        else:
            return dispatcher
    return None
