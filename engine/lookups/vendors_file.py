"""Names of the makers of network devices, by the first bits of MAC addresses.

Three formats are read: ``manuf`` of Wireshark (``00:00:0C``, a short and a long name, separated by
tabs; ``00:1B:C5:00:00:00/36`` for other lengths than those of the digits), ``nmap-mac-prefixes``
(``00000C Cisco Systems``), and the CSV files of the IEEE, which have a heading.
"""

from __future__ import annotations

import csv
import re
from typing import TYPE_CHECKING, Any

from gscope.engine.lookups.table import number_table
from gscope.errors import EngineError

if TYPE_CHECKING:
    from collections.abc import Iterator

    import pyarrow as pa
    from numpy.typing import NDArray

    from gscope.engine.lookups.table import LookupTable

_HEADING = "Registry,Assignment,Organization Name"
_PREFIX = re.compile(r"([0-9A-Fa-f]{2}(?:[:.-]?[0-9A-Fa-f]{1,2}){2,5})(?:/(\d{1,2}))?")
_MAC_DIGITS, _MAC_BITS = 12, 48
_FEWEST_DIGITS = 6


def read_vendors(text: str, path: str) -> LookupTable:
    """Return the table of a file with the contents ``text``.

    The first name of a prefix counts, and of nested prefixes the longest one.

    Raises:
        EngineError: a line is invalid; the message names it.
    """
    places: dict[bytes, int] = {}
    found: dict[tuple[int, int], int] = {}
    entries = _csv_entries if text.startswith(_HEADING) else _lines
    for line, prefix, name in entries(text, path):
        first, bits = _range(prefix, f"{path}:{line}")
        if not name:
            message = f"{path}:{line}: the prefix {prefix} has no name"
            raise EngineError(message)
        place = places.setdefault(name.encode(), len(places))
        found.setdefault((first, first | (1 << _MAC_BITS - bits) - 1), place)
    return number_table(((*ends, place) for ends, place in found.items()), list(places))


def mac_keys(column: pa.Array) -> NDArray[Any]:
    """Return a column of MAC values as keys; NULL becomes any key."""
    keys: NDArray[Any] = column.fill_null(0).to_numpy(zero_copy_only=False)
    return keys


def _lines(text: str, path: str) -> Iterator[tuple[int, str, str]]:
    """Yield the number, the prefix and the name of each line, the long name if there are two."""
    for number, line in enumerate(text.splitlines(), 1):
        if not line.strip() or line.lstrip().startswith("#"):
            continue
        fields = [field.strip() for field in line.split("\t")]
        if len(fields) == 1:
            fields = line.split(maxsplit=1)
        names = [field for field in fields[1:3] if field and not field.startswith("#")]
        if not names:
            message = f"{path}:{number}: expected a prefix and a name, got {line[:60]!r}"
            raise EngineError(message)
        yield number, fields[0], names[-1]


def _csv_entries(text: str, path: str) -> Iterator[tuple[int, str, str]]:
    reader = csv.reader(text.splitlines(keepends=True), strict=True)
    try:
        next(reader)
        for fields in reader:
            if len(fields) < 3:
                message = f"{path}:{reader.line_num}: expected {_HEADING}, got {len(fields)} fields"
                raise EngineError(message)
            yield reader.line_num, fields[1].strip(), fields[2].strip()
    except csv.Error as error:
        message = f"{path}:{reader.line_num}: {error}"
        raise EngineError(message) from None


def _range(text: str, where: str) -> tuple[int, int]:
    """Return the first address of a prefix, and its length in bits."""
    found = _PREFIX.fullmatch(text)
    digits = re.sub("[:.-]", "", found[1]) if found else ""
    bits = int(found[2]) if found and found[2] else 4 * len(digits)
    value = int(digits.ljust(_MAC_DIGITS, "0") or "0", 16)
    is_long = _FEWEST_DIGITS <= len(digits) <= _MAC_DIGITS
    if not is_long or not 0 < bits <= _MAC_BITS or value & (1 << _MAC_BITS - bits) - 1:
        message = f"{where}: invalid prefix {text[:40]!r}: expected one such as 00:00:0C"
        raise EngineError(message)
    return value, bits
