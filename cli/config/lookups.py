"""The setting of the files in which functions look values up."""

from __future__ import annotations

from typing import TYPE_CHECKING

from gscope.cli.config.setting import Kind
from gscope.queries.did_you_mean import suggestion
from gscope.queries.lookup_files import LOOKUP_NAMES

if TYPE_CHECKING:
    from collections.abc import Mapping


def parse_lookups(text: str) -> dict[str, str]:
    """Return the file of each lookup from lines ``NAME=FILE``.

    Raises:
        ValueError: a line is invalid; the message says what is expected.
    """
    found: dict[str, str] = {}
    for line in text.splitlines():
        if not line.strip():
            continue
        name, is_given, path = (part.strip() for part in line.partition("="))
        if not is_given or not path or "\0" in path:
            message = f"invalid lookup {line.strip()!r}: expected NAME=FILE"
            raise ValueError(message)
        if name not in LOOKUP_NAMES:
            otherwise = f"expected one of {', '.join(LOOKUP_NAMES)}"
            hint = suggestion(name, LOOKUP_NAMES, otherwise, is_quoted=True)
            message = f"unknown lookup {name!r}; {hint}"
            raise ValueError(message)
        if name in found:
            message = f"the lookup {name} is given twice"
            raise ValueError(message)
        found[name] = path
    return found


def show_lookups(files: Mapping[str, str]) -> str:
    """Return lines that ``parse_lookups`` reads."""
    return "\n".join(f"{name}={path}" for name, path in files.items())


LOOKUP = Kind("NAME=FILE", parse_lookups, show_lookups, is_repeated=True)
