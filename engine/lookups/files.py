"""Files of lookups: which reader each has, and when a file has changed."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from gscope.engine.lookups.maxmind_file import read_asn, read_country
from gscope.engine.lookups.networks_file import read_networks
from gscope.engine.lookups.services_file import read_services
from gscope.engine.lookups.vendors_file import read_vendors
from gscope.errors import EngineError
from gscope.queries.os_errors import os_reason
from gscope.records import dataclass

if TYPE_CHECKING:
    from collections.abc import Callable

    from gscope.engine.lookups.table import LookupTable

    Version = tuple[int, ...]

_LARGEST_FILE = 64 << 20
"""The most bytes of a text file: more is a mistake, and would need gigabytes to read."""

_LARGEST_DATABASE = 1 << 30
"""The most bytes of a MaxMind DB; the largest that are published have some 200 MB."""

_READERS: dict[str, Callable[[str, str], LookupTable]] = {
    "networks": read_networks,
    "services": read_services,
    "vendors": read_vendors,
}
_DATABASES: dict[str, Callable[[bytes, str], LookupTable]] = {
    "asn": read_asn,
    "country": read_country,
}


def read_lookup(name: str, path: str) -> LookupTable:
    """Return the table of the lookup ``name`` from the file at ``path``.

    Raises:
        EngineError: the file cannot be read, or is invalid; the message names the line.
    """
    read = _DATABASES.get(name)
    largest = _LARGEST_FILE if read is None else _LARGEST_DATABASE
    try:
        with Path(path).open("rb") as file:
            data = file.read(largest + 1)
    except (OSError, ValueError) as error:
        message = f"cannot read {name} from {path}: {os_reason(error)}"
        raise EngineError(message) from None
    if len(data) > largest:
        message = f"cannot read {name} from {path}: it is larger than {largest} bytes"
        raise EngineError(message)
    if read is not None:
        return read(data, path)
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        message = f"{path}:{line}: the line is not UTF-8 text"
        raise EngineError(message) from None
    return _READERS[name](text, path)


@dataclass(slots=True)
class LookupFile:
    """A file whose table is read again when it changes.

    Attributes:
        name: the name of the lookup.
        path: the file.
    """

    name: str
    path: str
    _version: Version = ()

    def read(self) -> LookupTable:
        """Return the table of the file as it is.

        Raises:
            EngineError: it cannot be read, or is invalid.
        """
        self._version = _version(self.path)
        return read_lookup(self.name, self.path)

    def read_change(self) -> LookupTable | None:
        """Return the table of a file that has changed since it was read; None if it has not.

        A file that changes while it is read is read again the next time. An invalid file is
        reported once.

        Raises:
            EngineError: the file has changed, and is invalid or missing.
        """
        version = _version(self.path)
        if version == self._version:
            return None
        try:
            table = read_lookup(self.name, self.path)
        except EngineError:
            self._version = version
            raise
        if _version(self.path) != version:
            return None
        self._version = version
        return table


def _version(path: str) -> Version:
    """Return inode, size and time of a file, which show a change; () if it is missing."""
    try:
        status = Path(path).stat()
    except OSError:
        return ()
    return status.st_ino, status.st_size, status.st_mtime_ns
