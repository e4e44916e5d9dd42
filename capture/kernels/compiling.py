"""What this process has compiled: noted by all compilers of kernels, for reports and pruning."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING, ClassVar

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path


class _Noted:
    """What was noted in this process."""

    has_compiled = False
    on_miss: ClassVar[Callable[[Path], object] | None] = None
    """Called with the source of a kernel that is about to be compiled."""


def has_compiled() -> bool:
    """Return whether this process has compiled a kernel that was not in the cache."""
    return _Noted.has_compiled


def note_missing(source: Path) -> None:
    """Record that a kernel of ``source`` is about to be compiled."""
    if _Noted.on_miss is not None:
        _Noted.on_miss(source)


def note_compiled() -> None:
    """Record that a kernel was compiled and is about to be kept."""
    _Noted.has_compiled = True


@contextmanager
def compiling_reported(on_compile: Callable[[Path], object]) -> Iterator[None]:
    """Call ``on_compile`` with the source of each kernel that is compiled meanwhile.

    Kernels that numba compiles and no folder can keep are compiled without a call.
    """
    _Noted.on_miss = on_compile
    try:
        yield
    finally:
        _Noted.on_miss = None
