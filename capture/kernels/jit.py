"""Kernels: ``kernel`` and its kin mark functions that are compiled when they are first called.

numba compiles them, and is loaded by the first call only: it takes longer to load than a small
replay takes (decision 89). What every replay calls is a ``native_kernel`` instead, which gscope's
own compiler compiles (``capture/kernels/native/``), and whose machine code is loaded without
numba.
"""

from __future__ import annotations

import functools
from enum import Enum
from typing import TYPE_CHECKING, Any, TypeVar, cast

if TYPE_CHECKING:
    from collections.abc import Callable
    from types import FunctionType

    from gscope.capture.kernels.language.kinds import AnyKind

F = TypeVar("F", bound="Callable[..., Any]")


class Role(Enum):
    """How numba compiles a function."""

    KERNEL = 0
    """Called from Python and from kernels, and kept on disk."""
    UNROLLED = 1
    """The same, once for each constant argument."""
    PART = 2
    """Called from kernels, which are kept with it."""


class Kernel:
    """A function that numba compiles when it is first called.

    Attributes:
        py_func: the function itself.
        role: how it is compiled.
    """

    def __init__(self, function: FunctionType, role: Role) -> None:
        functools.update_wrapper(self, function)
        self.py_func = function
        self.role = role

    @property
    def is_unrolled(self) -> bool:
        """Whether it is compiled for each constant argument."""
        return self.role is Role.UNROLLED

    @functools.cached_property
    def dispatcher(self) -> Any:
        """What numba makes of it."""
        from gscope.capture.kernels.numba_kernels import dispatcher_of

        return dispatcher_of(self.py_func, self.role)

    def __call__(self, *arguments: Any) -> Any:
        """Call it, compiled."""
        return self.dispatcher(*arguments)


class NativeKernel:
    """A function that is called as machine code, without numba; see ``native_kernel``.

    Attributes:
        py_func: the function itself.
        kinds: kinds of its parameters.
        result: kind of its result.
    """

    is_unrolled = False

    def __init__(self, function: FunctionType, kinds: tuple[AnyKind, ...], result: AnyKind) -> None:
        functools.update_wrapper(self, function)
        self.py_func = function
        self.kinds = kinds
        self.result = result

    @functools.cached_property
    def _called(self) -> Callable[..., Any]:
        from gscope.capture.kernels.loading import loaded_function

        return loaded_function(self)

    def __call__(self, *words: Any) -> Any:
        """Call it from Python, with the fields of its arguments one by one, and arrays by address.

        In a kernel it is called as it is written.

        Returns:
            A number; for a tuple, however nested, a flat tuple of numbers.
        """
        return self._called(*words)


def kernel(function: F) -> F:
    """Compile ``function`` on its first call, or load it if already compiled.

    A kernel releases the GIL while it runs, wraps on integer overflow, and gives inf or nan for a
    float division by zero instead of raising. The result keeps the function's type for type
    checkers.
    """
    return _marked(function, Role.KERNEL)


def unrolled_kernel(function: F) -> F:
    """Return a kernel that is compiled for each constant argument, as the end of a short loop."""
    return _marked(function, Role.UNROLLED)


def kernel_part(function: F) -> F:
    """Compile ``function`` as a part of the kernels that call it.

    It cannot be called from Python and is not stored itself; a kernel is stored with all its parts.
    """
    return _marked(function, Role.PART)


def native_kernel(*kinds: AnyKind, result: AnyKind) -> Callable[[F], NativeKernel]:
    """Return a decorator for kernels that are compiled and called without numba.

    Such a kernel releases the GIL while it runs, too. It is written in the language of
    ``capture/kernels/native/``: numbers, addresses, tuples, loops.

    Args:
        kinds: kinds of its parameters.
        result: kind of its result: INT, BOOL, NOTHING, or a record of INT, BOOL and such records.
    """

    def marked(function: F) -> NativeKernel:
        return NativeKernel(cast("FunctionType", function), kinds, result)

    return marked


def _marked(function: F, role: Role) -> F:
    return cast("F", Kernel(cast("FunctionType", function), role))
