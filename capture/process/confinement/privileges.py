"""Dropping privileges: opening raw sockets needs a capability, reading packets should have none.

Capabilities belong to threads, and a thread inherits those of the thread that starts it. A process
with one thread that calls ``drop_privileges`` loses them for good; other existing threads must call
it themselves.
"""

from __future__ import annotations

import ctypes
import os
from contextlib import suppress
from pathlib import Path

from gscope.errors import CaptureError

_PR_CAPBSET_DROP = 24
_PR_SET_NO_NEW_PRIVS = 38
_PR_CAP_AMBIENT = 47
_PR_CAP_AMBIENT_CLEAR_ALL = 4
_CAPABILITY_VERSION_3 = 0x20080522
_LAST_CAPABILITY = Path("/proc/sys/kernel/cap_last_cap")


_CHOWN, _DAC_OVERRIDE, _DAC_READ_SEARCH, _FOWNER, _KILL, _SETGID, _SETUID, _SETPCAP = (
    0,
    1,
    2,
    3,
    5,
    6,
    7,
    8,
)
_NET_BIND_SERVICE, _NET_ADMIN, _NET_RAW, _IPC_LOCK = 10, 12, 13, 14
_SYS_ADMIN, _SYS_RESOURCE = 21, 24

OF_SUPERVISORS = frozenset(
    {
        # Folders and processes of the user that it hands the work to.
        *(_CHOWN, _DAC_OVERRIDE, _DAC_READ_SEARCH, _FOWNER, _KILL, _SETGID, _SETUID, _SETPCAP),
        # Sockets, ports and rings of a daemon that is started again.
        *(_NET_BIND_SERVICE, _NET_ADMIN, _NET_RAW, _IPC_LOCK),
        # Mounts that make closed folders reachable for that user, and the limit of open files.
        *(_SYS_ADMIN, _SYS_RESOURCE),
    }
)
"""Capabilities that the supervisor of a run keeps if it has them."""


class _Header(ctypes.Structure):
    _fields_ = [("version", ctypes.c_uint32), ("pid", ctypes.c_int)]


class _Sets(ctypes.Structure):
    _fields_ = [
        ("effective", ctypes.c_uint32),
        ("permitted", ctypes.c_uint32),
        ("inheritable", ctypes.c_uint32),
    ]


def drop_bounding_set() -> None:
    """Prevent executed files from giving this process a capability.

    Has no effect without CAP_SETPCAP.
    """
    libc = ctypes.CDLL(None, use_errno=True)
    for number in range(_last_capability() + 1):
        libc.prctl(_PR_CAPBSET_DROP, number, 0, 0, 0)


def keep_only(numbers: frozenset[int]) -> None:
    """Drop all capabilities of this thread but ``numbers``, for files that it executes, too.

    Raises:
        CaptureError: the kernel refuses.
    """
    libc = ctypes.CDLL(None, use_errno=True)
    for number in range(_last_capability() + 1):
        if number not in numbers:
            libc.prctl(_PR_CAPBSET_DROP, number, 0, 0, 0)
    header, sets = _Header(_CAPABILITY_VERSION_3, 0), (_Sets * 2)()
    if libc.capget(ctypes.byref(header), sets) != 0:
        raise _refused()
    for word, each in enumerate(sets):
        mask = sum(1 << (number - 32 * word) for number in numbers if number // 32 == word)
        each.effective &= mask
        each.permitted &= mask
        each.inheritable &= mask
    if libc.capset(ctypes.byref(header), sets) != 0:
        raise _refused()


def drop_privileges() -> None:
    """Drop all capabilities of this thread permanently, and those that an executed file could add.

    See prctl(2) and capset(2).

    Raises:
        CaptureError: the kernel refuses.
    """
    libc = ctypes.CDLL(None, use_errno=True)
    # Only a thread with CAP_SETPCAP may do this; for others, no_new_privs below is enough.
    drop_bounding_set()
    # Kernels before 4.3 have no ambient set.
    libc.prctl(_PR_CAP_AMBIENT, _PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0)
    if libc.prctl(_PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0:
        raise _refused()
    header = _Header(_CAPABILITY_VERSION_3, 0)
    nothing = (_Sets * 2)()
    if libc.capset(ctypes.byref(header), nothing) != 0:
        raise _refused()


def capabilities(pid: int | None = None) -> dict[int, int]:
    """Return the effective and permitted capabilities of each thread of a process, as one bit set.

    Skips threads that end meanwhile.

    Args:
        pid: id of the process; by default this one.
    """
    found: dict[int, int] = {}
    for task in Path(f"/proc/{pid or os.getpid()}/task").iterdir():
        # The folder of a thread disappears with it, even between opening and reading.
        with suppress(FileNotFoundError, ProcessLookupError):
            found[int(task.name)] = _of_thread(task)
    return found


def has_no_new_privileges(pid: int | None = None) -> bool:
    """Return whether executed files cannot give a process capabilities; see prctl(2).

    Args:
        pid: id of the process; by default this one.
    """
    return _status(Path(f"/proc/{pid or os.getpid()}")).get("NoNewPrivs") == "1"


def _of_thread(task: Path) -> int:
    fields = _status(task)
    return int(fields["CapEff"], 16) | int(fields["CapPrm"], 16)


def _status(task: Path) -> dict[str, str]:
    lines = (task / "status").read_text().splitlines()
    return dict(line.split(":\t", 1) for line in lines if ":\t" in line)


def _last_capability() -> int:
    try:
        return int(_LAST_CAPABILITY.read_text())
    except (OSError, ValueError):
        return 63


def _refused() -> CaptureError:
    message = f"cannot give up privileges: {os.strerror(ctypes.get_errno()).lower()}"
    return CaptureError(message)
