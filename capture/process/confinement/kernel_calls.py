"""System calls for which Python has no functions."""

from __future__ import annotations

import ctypes
import os

_LIBC = ctypes.CDLL(None, use_errno=True)

_PR_SET_DUMPABLE = 4

CLONE_NEWNS = 0x00020000
MS_NOSUID, MS_NODEV, MS_BIND, MS_REC, MS_PRIVATE = 0x2, 0x4, 0x1000, 0x4000, 0x40000


def system_call(number: int, *arguments: object) -> int:
    """Make a system call by its number, and return its result.

    Raises:
        OSError: the call failed.
    """
    return _checked(_LIBC.syscall(ctypes.c_long(number), *map(_as_long, arguments)))


def process_control(option: int, *arguments: object) -> int:
    """Set an attribute of this process; see prctl(2).

    Raises:
        OSError: the call failed.
    """
    padded = (*arguments, 0, 0, 0, 0)[:4]
    return _checked(_LIBC.prctl(option, *map(_as_long, padded)))


def stay_dumpable() -> None:
    """Allow this process to open its files in /proc, which belong to root after a change of user.

    Raises:
        OSError: the kernel refuses.
    """
    process_control(_PR_SET_DUMPABLE, 1)


def unshare_mounts() -> None:
    """Give this process a mount namespace of its own.

    Raises:
        OSError: the kernel refuses, most often for lack of CAP_SYS_ADMIN.
    """
    _checked(_LIBC.unshare(CLONE_NEWNS))
    mount("none", "/", "", MS_REC | MS_PRIVATE)


def mount(source: str, target: str, kind: str, flags: int, options: str = "") -> None:
    """Mount a file system or folder on a folder.

    Raises:
        OSError: the call failed.
    """
    _checked(
        _LIBC.mount(
            os.fsencode(source),
            os.fsencode(target),
            os.fsencode(kind),
            ctypes.c_ulong(flags),
            os.fsencode(options),
        )
    )


def _as_long(value: object) -> object:
    return ctypes.c_long(value) if isinstance(value, int) else value


def _checked(result: int) -> int:
    if result < 0:
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number))
    return result
