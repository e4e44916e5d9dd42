"""Files on the command line as interfaces."""

from __future__ import annotations

import re
from pathlib import PurePath
from typing import TYPE_CHECKING

from gscope.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Sequence

_ENDINGS = re.compile(r"(?i)(\.(pcap|pcapng|cap|dmp|ntar|trace|gz|zst|zstd|lz4))+[0-9]*$")
_NAMED = re.compile(r"([A-Za-z_][A-Za-z0-9_.-]*)=(.+)", re.DOTALL)
STDIN = "-"


def interfaces_of(arguments: Sequence[str]) -> dict[str, tuple[str, ...]]:
    """The files of each interface, in the order given.

    ``a/main1.pcap.gz`` is the interface ``main1``; a second of that name is ``main1_2``. ``NAME=FILE``
    names it; one NAME given several times is one interface read in that order.

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
