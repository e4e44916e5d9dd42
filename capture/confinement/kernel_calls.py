"""Calls into the kernel that Python has no functions for."""

from __future__ import annotations

import ctypes
import os

_LIBC = ctypes.CDLL(None, use_errno=True)

_PR_SET_DUMPABLE = 4
_PR_SET_NO_NEW_PRIVS = 38

CLONE_NEWNS = 0x00020000
MS_NOSUID, MS_NODEV, MS_BIND, MS_REC, MS_PRIVATE = 0x2, 0x4, 0x1000, 0x4000, 0x40000


def system_call(number: int, *arguments: object) -> int:
    """Make a system call by its number, and return its result.

    Raises:
        OSError: it failed.
    """
    return _checked(_LIBC.syscall(ctypes.c_long(number), *map(_as_long, arguments)))


def process_control(option: int, *arguments: object) -> int:
    """Set an attribute of this process, see prctl(2).

    Raises:
        OSError: it failed.
    """
    padded = (*arguments, 0, 0, 0, 0)[:4]
    return _checked(_LIBC.prctl(option, *map(_as_long, padded)))


def forbid_new_privileges() -> None:
    """Keep this thread, and all that it starts, from gaining privileges by executing a file.

    Raises:
        OSError: the kernel refuses.
    """
    process_control(_PR_SET_NO_NEW_PRIVS, 1)


def stay_dumpable() -> None:
    """Let this process open its own files in /proc, which belong to root after a change of user.

    Raises:
        OSError: the kernel refuses.
    """
    process_control(_PR_SET_DUMPABLE, 1)


def unshare_mounts() -> None:
    """Give this process mounts of its own, which no other process sees.

    Raises:
        OSError: the kernel refuses, most often for want of CAP_SYS_ADMIN.
    """
    _checked(_LIBC.unshare(CLONE_NEWNS))
    mount("none", "/", "", MS_REC | MS_PRIVATE)


def mount(source: str, target: str, kind: str, flags: int, options: str = "") -> None:
    """Attach a file system or folder to a folder.

    Raises:
        OSError: it failed.
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
