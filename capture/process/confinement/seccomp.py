"""seccomp: refuses system calls that a process which reads packets does not need; see seccomp(2).

The filter lists refused calls, not permitted ones, because the calls of numba, Arrow and Python
change from version to version. A refused call returns EPERM instead of ending the process. The
filter is assembled here because pyseccomp needs the system's libseccomp, which slim images lack,
for a dozen instructions.
"""

from __future__ import annotations

import ctypes
import os
import socket
import struct

from gscope.capture.process.confinement.kernel_calls import process_control

_PR_SET_SECCOMP, _MODE_FILTER = 22, 2
_ALLOW, _REFUSE = 0x7FFF0000, 0x00050000
_EPERM = 1

_LOAD, _JUMP_EQUAL, _JUMP_AT_LEAST, _RETURN = 0x20, 0x15, 0x35, 0x06
_NUMBER_AT, _ARCHITECTURE_AT, _FIRST_ARGUMENT_AT = 0, 4, 16
_X32_CALLS = 0x40000000
"""First call number of x86-64's 32-bit pointer mode (x32): the same calls with other numbers."""

_ARCHITECTURES = {"x86_64": 0xC000003E, "aarch64": 0xC00000B7}

_COLUMNS = ("x86_64", "aarch64")
_CALLS: dict[str, tuple[int, int]] = {
    "socket": (41, 198),
    "execve": (59, 221),
    "execveat": (322, 281),
    "ptrace": (101, 117),
    "process_vm_readv": (310, 270),
    "process_vm_writev": (311, 271),
    "pidfd_getfd": (438, 438),
    "mount": (165, 40),
    "umount2": (166, 39),
    "pivot_root": (155, 41),
    "chroot": (161, 51),
    "move_mount": (429, 429),
    "open_tree": (428, 428),
    "fsopen": (430, 430),
    "fsconfig": (431, 431),
    "fsmount": (432, 432),
    "mount_setattr": (442, 442),
    "setns": (308, 268),
    "unshare": (272, 97),
    "bpf": (321, 280),
    "perf_event_open": (298, 241),
    "userfaultfd": (323, 282),
    "keyctl": (250, 219),
    "add_key": (248, 217),
    "request_key": (249, 218),
    "init_module": (175, 105),
    "finit_module": (313, 273),
    "delete_module": (176, 106),
    "kexec_load": (246, 104),
    "kexec_file_load": (320, 294),
    "open_by_handle_at": (304, 265),
    "io_uring_setup": (425, 425),
    "io_uring_enter": (426, 426),
    "io_uring_register": (427, 427),
    "swapon": (167, 224),
    "swapoff": (168, 225),
    "reboot": (169, 142),
    "acct": (163, 89),
    "quotactl": (179, 60),
}
"""Numbers of refused calls, by architecture. ``socket`` is refused only for some families."""

_EXECUTIONS = frozenset({"execve", "execveat"})


class SeccompProgram(ctypes.Structure):
    """``struct sock_fprog`` of linux/filter.h."""

    _fields_ = [("length", ctypes.c_ushort), ("instructions", ctypes.c_char_p)]


def is_supported() -> bool:
    """Return whether the numbers of system calls are known for this architecture."""
    return os.uname().machine in _ARCHITECTURES


def refuse_calls(*, may_execute: bool, has_internet: bool) -> None:
    """Refuse unneeded calls to this thread and its children, permanently.

    "No new privileges" must be set.

    Args:
        may_execute: whether files may be executed.
        has_internet: whether TCP and UDP sockets may be opened, besides unix and netlink ones.

    Raises:
        OSError: the kernel refuses, or has no seccomp.
    """
    families = [socket.AF_UNIX, socket.AF_NETLINK]
    if has_internet:
        families += [socket.AF_INET, socket.AF_INET6]
    refused = [name for name in _CALLS if not (may_execute and name in _EXECUTIONS)]
    filter_ = instructions(os.uname().machine, refused, [int(family) for family in families])
    program = SeccompProgram(len(filter_) // 8, filter_)
    process_control(_PR_SET_SECCOMP, _MODE_FILTER, ctypes.byref(program))


def instructions(machine: str, refused: list[str], families: list[int]) -> bytes:
    """Return the filter as the kernel expects it.

    Args:
        machine: name of the architecture.
        refused: names of refused calls; ``socket`` stands for sockets outside ``families``.
        families: permitted socket families.
    """
    column = _COLUMNS.index(machine)
    refuse = _RETURN, 0, 0, _REFUSE | _EPERM
    allow = _RETURN, 0, 0, _ALLOW
    made = [
        (_LOAD, 0, 0, _ARCHITECTURE_AT),
        (_JUMP_EQUAL, 1, 0, _ARCHITECTURES[machine]),
        refuse,
        (_LOAD, 0, 0, _NUMBER_AT),
    ]
    if machine == "x86_64":
        made += [(_JUMP_AT_LEAST, 0, 1, _X32_CALLS), refuse]
    for name in refused:
        if name != "socket":
            made += [(_JUMP_EQUAL, 0, 1, _CALLS[name][column]), refuse]
    if "socket" in refused:
        made += [
            (_JUMP_EQUAL, 1, 0, _CALLS["socket"][column]),
            allow,
            (_LOAD, 0, 0, _FIRST_ARGUMENT_AT),
        ]
        for family in families:
            made += [(_JUMP_EQUAL, 0, 1, family), allow]
        made.append(refuse)
    else:
        made.append(allow)
    return b"".join(struct.pack("=HBBI", *each) for each in made)
