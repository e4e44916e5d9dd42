"""The network namespace of the test process, in which every test begins and ends."""

from __future__ import annotations

import ctypes
import os
import threading
from contextlib import suppress
from pathlib import Path

_CLONE_NEWNET = 0x40000000
_WITHOUT_SOCKETS = ("optimise kernel", "LLVM_0", "prune kernels")
"""Threads that end by themselves, and may do so anywhere."""


class HomeNetwork:
    """The network namespace in which the calling thread is at the construction."""

    def __init__(self) -> None:
        self._home = os.open("/proc/thread-self/ns/net", os.O_RDONLY | os.O_CLOEXEC)

    def ensure_here(self) -> None:
        """Move the calling thread back if a test has left it in another namespace.

        Raises:
            AssertionError: it was in another; later tests are in the right one all the same.
        """
        left_in = network_of("thread-self")
        if left_in != _identity(os.fstat(self._home)):
            enter(self._home)
            message = f"the test has left its thread in another network namespace, {left_in}"
            raise AssertionError(message)

    def close(self) -> None:
        os.close(self._home)


def enter(descriptor: int) -> None:
    """Move the calling thread to the network namespace of an open file.

    Raises:
        OSError: it is not allowed to.
    """
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.setns(descriptor, _CLONE_NEWNET) != 0:
        number = ctypes.get_errno()
        raise OSError(number, f"cannot return to a network namespace: {os.strerror(number)}")


def leave_home() -> int:
    """Move the calling thread to a new network namespace; the error number, 0 for none."""
    libc = ctypes.CDLL(None, use_errno=True)
    return 0 if libc.unshare(_CLONE_NEWNET) == 0 else ctypes.get_errno()


def network_of(task: str) -> tuple[int, int]:
    """Return what identifies the network namespace of a task of /proc."""
    return _identity(Path(f"/proc/{task}/ns/net").stat())


def threads_here() -> list[str]:
    """Return the names of this process's other Python threads that use this thread's network."""
    here, found = network_of("thread-self"), []
    for thread in threading.enumerate():
        if thread is not threading.current_thread() and thread.name not in _WITHOUT_SOCKETS:
            with suppress(OSError):  # it has just ended
                if network_of(f"self/task/{thread.native_id}") == here:
                    found.append(thread.name)
    return found


def _identity(status: os.stat_result) -> tuple[int, int]:
    return status.st_dev, status.st_ino
