"""Filter expressions (pcap-filter(7)), compiled to classic BPF by libpcap or tcpdump."""

from __future__ import annotations

import ctypes
import ctypes.util
import re
import shutil
import subprocess
from typing import TYPE_CHECKING

from gscope.capture.sources.af_packet.kernel_api import FILTER_INSTRUCTION
from gscope.capture.sources.af_packet.link_type import LINKTYPE_ETHERNET, LINKTYPE_RAW, LinkType
from gscope.errors import CaptureError, UsageError

if TYPE_CHECKING:
    from collections.abc import Iterable

Instruction = tuple[int, int, int, int]
"""Code, jump if true, jump if false, operand."""

MAX_INSTRUCTIONS = 4096
"""The kernel's limit (BPF_MAXINSNS)."""

_DLT = {LINKTYPE_RAW: 12, 14: 12}
"""Link types whose number in libpcap differs from the one in files."""

_TAGS = re.compile(r"\bvlan\b")
"""Keywords that libpcap compiles differently for live packets, and only for a device that is up."""

_REJECTS_ALL = "expression rejects all packets"
"""Report of libpcap on an expression that no packet of a link type can match."""

_RETURN = 0x06
_ERROR_BYTES = 256
_NETMASK_UNKNOWN = 0xFFFFFFFF
_TCPDUMP_SECONDS = 10
_WHOLE_PACKET = 262_144


def accept_all(snaplen: int) -> list[Instruction]:
    """Return the program that accepts every packet and truncates it to ``snaplen`` bytes."""
    return [(_RETURN, 0, 0, snaplen)]


def compile_filter(
    expression: str, *, device: str, link_type: LinkType, snaplen: int
) -> list[Instruction]:
    """Return the program for ``expression``, which truncates packets to ``snaplen`` bytes.

    It is compiled for the device and not only for its link type, so that ``vlan`` reads the tag
    where the kernel puts that of a live packet. A filter of a cooked socket sees packets from their
    network header on, so there the expression cannot refer to the link layer.

    Raises:
        UsageError: the expression is invalid.
        CaptureError: neither libpcap nor tcpdump is installed, or the filter is too long for the
            kernel.
    """
    if not expression.strip():
        return accept_all(snaplen)
    library = ctypes.util.find_library("pcap")
    tcpdump = shutil.which("tcpdump")
    if library is not None:
        program = _by_libpcap(library, expression, device, link_type, snaplen)
    elif tcpdump is not None:
        program = _by_tcpdump(tcpdump, expression, device, link_type, snaplen)
    else:
        message = (
            "filters require libpcap or tcpdump to compile them: install one (such as `sudo "
            "apt-get install libpcap0.8`), or omit -f and filter in WHERE"
        )
        raise CaptureError(message)
    if len(program) > MAX_INSTRUCTIONS:
        message = (
            f"the filter is too long for the kernel: expected at most {MAX_INSTRUCTIONS} "
            f"instructions, got {len(program)}"
        )
        raise CaptureError(message)
    return program


def compile_for_captures(
    expression: str, link_types: Iterable[int]
) -> dict[int, list[Instruction]]:
    """Return the program for ``expression`` on packets of captures, by pcap link type.

    A link type to which the expression does not apply (``ether`` without Ethernet headers) is
    absent. ``vlan`` reads the tag from the packet's bytes, as tcpdump does with a file.

    Raises:
        UsageError: the expression is invalid for every link type, or rejects all Ethernet packets.
        CaptureError: libpcap is not installed.
    """
    name = ctypes.util.find_library("pcap")
    if name is None:
        message = (
            "filters of captures require libpcap to compile them: install it (such as `sudo apt-get"
            " install libpcap0.8`), or omit -f and filter in WHERE"
        )
        raise CaptureError(message)
    pcap = _library(name)
    programs: dict[int, list[Instruction]] = {}
    reasons: dict[int, UsageError] = {}
    for link_type in sorted(link_types):
        handle = pcap.pcap_open_dead(_DLT.get(link_type, link_type), _WHOLE_PACKET)
        try:
            programs[link_type] = _compiled(pcap, handle, expression)
        except UsageError as error:
            reasons[link_type] = error
    ethernet = reasons.get(LINKTYPE_ETHERNET)
    if ethernet is not None and _REJECTS_ALL in str(ethernet):
        # tcpdump refuses such a filter of a file; with other link types it is a mistake as well.
        message = str(ethernet)
        if _TAGS.search(expression):
            message += "; write vlan first, what follows it is within the tag"
        raise UsageError(message)
    if not programs:
        raise ethernet or next(iter(reasons.values()))
    return programs


class PcapProgram(ctypes.Structure):
    """``struct bpf_program`` of pcap/bpf.h."""

    _fields_ = (("length", ctypes.c_uint), ("instructions", ctypes.c_void_p))


def _by_libpcap(
    name: str, expression: str, device: str, link_type: LinkType, snaplen: int
) -> list[Instruction]:
    pcap = _library(name)
    handle = None if link_type.is_cooked else _live_handle(pcap, device, snaplen)
    if handle is None:
        if _TAGS.search(expression) and not link_type.is_cooked:
            message = (
                f"the filter {expression!r} depends on how {device} shows VLAN tags; the device "
                "must be up"
            )
            raise CaptureError(message)
        linktype = LINKTYPE_RAW if link_type.is_cooked else link_type.number
        handle = pcap.pcap_open_dead(_DLT.get(linktype, linktype), snaplen)
    return _compiled(pcap, handle, expression)


def _library(name: str) -> ctypes.CDLL:
    """Return libpcap with the types of the functions that are used here."""
    pcap = ctypes.CDLL(name)
    pcap.pcap_create.restype = pcap.pcap_open_dead.restype = ctypes.c_void_p
    pcap.pcap_geterr.restype = ctypes.c_char_p
    for function in (pcap.pcap_set_snaplen, pcap.pcap_activate, pcap.pcap_close, pcap.pcap_geterr):
        function.argtypes = (ctypes.c_void_p, ctypes.c_int)[
            : 1 + (function is pcap.pcap_set_snaplen)
        ]
    pcap.pcap_compile.argtypes = (
        ctypes.c_void_p,
        ctypes.POINTER(PcapProgram),
        ctypes.c_char_p,
        ctypes.c_int,
        ctypes.c_uint32,
    )
    return pcap


def _compiled(pcap: ctypes.CDLL, handle: int | None, expression: str) -> list[Instruction]:
    """Return the program of ``expression`` for an open handle, which is closed."""
    program = PcapProgram()
    try:
        compiled = pcap.pcap_compile(
            handle, ctypes.byref(program), expression.encode(), 1, _NETMASK_UNKNOWN
        )
        if compiled != 0:
            raise UsageError(_wrong(expression, pcap.pcap_geterr(handle).decode(errors="replace")))
        code = ctypes.string_at(program.instructions or 0, program.length * FILTER_INSTRUCTION.size)
        pcap.pcap_freecode(ctypes.byref(program))
    finally:
        pcap.pcap_close(handle)
    return list(FILTER_INSTRUCTION.iter_unpack(code))


def _live_handle(pcap: ctypes.CDLL, device: str, snaplen: int) -> int | None:
    error = ctypes.create_string_buffer(_ERROR_BYTES)
    handle: int | None = pcap.pcap_create(device.encode(), error)
    if handle is None:
        return None
    pcap.pcap_set_snaplen(handle, snaplen)
    # Positive results are warnings.
    if pcap.pcap_activate(handle) < 0:
        pcap.pcap_close(handle)
        return None
    return handle


def _by_tcpdump(
    command: str, expression: str, device: str, link_type: LinkType, snaplen: int
) -> list[Instruction]:
    of = ["-y", "RAW"] if link_type.is_cooked else ["-i", device]
    arguments = [command, "-ddd", "-p", "-s", str(snaplen), *of, "--", expression]
    try:
        done = subprocess.run(
            arguments, capture_output=True, text=True, timeout=_TCPDUMP_SECONDS, check=False
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        message = f"tcpdump cannot compile the filter: {error}"
        raise CaptureError(message) from error
    if done.returncode != 0:
        last = (done.stderr.strip().splitlines() or ["no error message"])[-1]
        raise UsageError(_wrong(expression, last.removeprefix("tcpdump: ")))
    return _decimal(done.stdout.splitlines())


def _decimal(lines: Iterable[str]) -> list[Instruction]:
    """Parse the output of ``tcpdump -ddd``: a count, then lines of four decimal numbers."""
    program: list[Instruction] = []
    for line in list(lines)[1:]:
        code, if_true, if_false, operand = map(int, line.split())
        program.append((code, if_true, if_false, operand))
    return program


def _wrong(expression: str, reason: str) -> str:
    return f"the filter {expression!r} is invalid: {reason}"
