"""Interfaces of a replay, from the command line and the configuration file."""

from __future__ import annotations

import re
import stat
from dataclasses import replace
from itertools import chain
from pathlib import Path, PurePath
from typing import TYPE_CHECKING

from gscope.capture.packet.link_names import READ_LINK_TYPES
from gscope.capture.settings import FilterProgram, InterfaceSettings
from gscope.capture.sources.af_packet.filter import compile_for_captures
from gscope.cli.config.quantities import parse_duration
from gscope.cli.config.settings import DEFAULT_SKEW_NS
from gscope.errors import CaptureError, UsageError
from gscope.queries.os_errors import os_reason

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping, Sequence

    from gscope.cli.config.yaml_file import ConfiguredInterface

_ENDINGS = re.compile(r"(?i)(\.(pcap|pcapng|cap|dmp|ntar|trace|gz|zst|zstd|lz4))+[0-9]*$")
_NAMED = re.compile(r"([A-Za-z_][A-Za-z0-9_.-]*)=(.+)", re.DOTALL)
STDIN = "-"


def chosen_interfaces(
    captures: Sequence[str],
    names: Sequence[str],
    skews: Sequence[str],
    configured: Mapping[str, ConfiguredInterface],
) -> tuple[InterfaceSettings, ...]:
    """Return the interfaces of a replay.

    Args:
        captures: ``FILE`` or ``NAME=FILE``; () for the configured interfaces.
        names: the interfaces to read; () for all.
        skews: ``DURATION`` for all or ``NAME=DURATION``.
        configured: the interfaces of the configuration file.

    Raises:
        UsageError: there is no interface, a name is unknown or a duration invalid.
    """
    files = interfaces_of(captures) if captures else _configured_files(configured)
    for name in names:
        if name not in files:
            message = f"unknown interface {name!r}; available: {', '.join(files) or 'none'}"
            raise UsageError(message)
    if not files:
        message = "nothing to read: name a capture, such as gscope replay trace.pcap …"
        raise UsageError(message)
    skew_ns = given_skews(skews, files, configured)
    return tuple(
        InterfaceSettings(
            name,
            paths,
            skew_ns.get(name, DEFAULT_SKEW_NS),
            is_latent=name in configured and configured[name].is_latent,
            finds_skew=name not in skew_ns,
        )
        for name, paths in files.items()
        if not names or name in names
    )


def filtered_interfaces(
    interfaces: Sequence[InterfaceSettings], expression: str | None
) -> tuple[InterfaceSettings, ...]:
    """Return ``interfaces`` with the filter ``expression`` of pcap-filter(7); None for none.

    Raises:
        UsageError: the expression is invalid.
        CaptureError: there is no libpcap to compile it.
    """
    if expression is None or not expression.strip():
        return tuple(interfaces)
    programs = compile_for_captures(expression, READ_LINK_TYPES)
    filters = tuple(
        FilterProgram(link_type, tuple(chain.from_iterable(program)))
        for link_type, program in programs.items()
    )
    return tuple(replace(each, filters=filters) for each in interfaces)


def ensure_countable(interfaces: Sequence[InterfaceSettings]) -> None:
    """Refuse a limit of packets over several interfaces of which one is not a regular file.

    Which packets are the first ones is found by reading the captures before the replay.

    Raises:
        UsageError: an input cannot be read twice.
    """
    if len(interfaces) < 2:
        return
    for file in (file for interface in interfaces for file in interface.files):
        if file == STDIN or (Path(file).exists() and not Path(file).is_file()):
            message = (
                f"-c over several interfaces requires regular files: {file} cannot be read twice;"
                " give one capture, or omit -c"
            )
            raise UsageError(message)


def interfaces_of(arguments: Sequence[str]) -> dict[str, tuple[str, ...]]:
    """Return the files of each interface, in the order given.

    ``a/main1.pcap.gz`` is the interface ``main1``, a second file of that name ``main1_2``.
    ``NAME=FILE`` names the interface; files with the same NAME form one interface and are read in
    that order.

    Raises:
        UsageError: standard input is named more than once.
    """
    if sum(argument.split("=", 1)[-1] == STDIN for argument in arguments) > 1:
        message = "standard input (-) can be read only once"
        raise UsageError(message)
    named: dict[str, list[str]] = {}
    plain: list[tuple[str, str]] = []
    order: list[str] = []
    for argument in arguments:
        match = _NAMED.fullmatch(argument)
        if match is not None:
            name, file = match.groups()
            if name not in named:
                order.append(name)
            named.setdefault(name, []).append(file)
        else:
            plain.append((_base_name(argument), argument))
            order.append("")
    taken = set(named)
    names = iter([(_unique(base, taken), file) for base, file in plain])
    result: dict[str, tuple[str, ...]] = {}
    for name in order:
        if name:
            result[name] = tuple(named[name])
        else:
            unique, file = next(names)
            result[unique] = (file,)
    return result


def ensure_there(interfaces: Sequence[InterfaceSettings]) -> None:
    """Refuse missing files before a daemon is started and compiles for them.

    Raises:
        CaptureError: a file does not exist, is a folder, or is inaccessible.
    """
    for file in dict.fromkeys(file for interface in interfaces for file in interface.files):
        if file == STDIN:
            continue
        try:
            mode = Path(file).stat().st_mode
        except (OSError, ValueError) as error:
            reason = os_reason(error)
        else:
            if not stat.S_ISDIR(mode):
                continue
            reason = "is a directory"
        message = f"cannot open {file}: {reason}"
        raise CaptureError(message)


def _base_name(file: str) -> str:
    if file == STDIN:
        return "stdin"
    name = PurePath(file).name
    return _ENDINGS.sub("", name) or name


def _unique(base: str, taken: set[str]) -> str:
    name, number = base, 1
    while name in taken:
        number += 1
        name = f"{base}_{number}"
    taken.add(name)
    return name


def _configured_files(
    configured: Mapping[str, ConfiguredInterface],
) -> dict[str, tuple[str, ...]]:
    return {name: interface.files for name, interface in configured.items() if interface.files}


def given_skews(
    texts: Sequence[str],
    names: Collection[str],
    configured: Mapping[str, ConfiguredInterface],
) -> dict[str, int]:
    """Return the skew in nanoseconds of each interface that has one.

    The flag for one interface overrides the flag for all, which overrides the configuration file.

    Raises:
        UsageError: a name is unknown or a duration invalid.
    """
    skews = {
        name: skew_ns
        for name in names
        if name in configured and (skew_ns := configured[name].skew_ns) is not None
    }
    named: dict[str, int] = {}
    for text in texts:
        name, equals, duration = text.rpartition("=")
        if equals and name not in names:
            message = f"--skew {text}: unknown interface {name!r}; available: {', '.join(names)}"
            raise UsageError(message)
        try:
            value = parse_duration(duration)
        except ValueError as error:
            message = f"--skew: {error}"
            raise UsageError(message) from error
        if equals:
            named[name] = value
        else:
            skews = dict.fromkeys(names, value)
    return {**skews, **named}
