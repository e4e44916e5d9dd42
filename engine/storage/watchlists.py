"""Tables of watchlists, read from CSV files.

Each line is a row, with its fields in the order of WATCHLIST FIELDS. A first line with the names of
the fields is a heading; empty lines and lines that begin with ``#`` are skipped. An empty field is
NULL; an empty STRING is the empty text.
"""

from __future__ import annotations

import csv
import math
from pathlib import Path
from typing import TYPE_CHECKING

from gscope.errors import EngineError
from gscope.queries.analysis.typing.constants import parse_mac, parse_timestamp
from gscope.queries.catalog.scalar.addresses import parse_ip
from gscope.queries.expressions.types import GsqlType
from gscope.queries.gsql.intervals import read_interval_ns
from gscope.queries.int64 import MAX_INT, MIN_INT
from gscope.queries.os_errors import os_reason

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from gscope.queries.expressions.expressions import Value
    from gscope.queries.plan.logical import Watchlist

Row = tuple["Value", ...]

_TRUTHS = {"true": True, "1": True, "false": False, "0": False}


def read_watchlist(watchlist: Watchlist) -> list[Row]:
    """Return the rows of a watchlist as values of its fields.

    Raises:
        EngineError: the file cannot be read, or a line is invalid; the message names the line.
    """
    path = watchlist.path
    rows: list[Row] = []
    try:
        with Path(path).open(encoding="utf-8-sig", newline="") as file:
            reader = csv.reader(file, skipinitialspace=True, strict=True)
            for fields in reader:
                texts = [text.strip() for text in fields]
                if not any(texts) or texts[0].startswith("#"):
                    continue
                if not rows and tuple(texts) == watchlist.schema.names:
                    continue
                rows.append(_row(texts, watchlist, reader.line_num))
    except (OSError, ValueError, csv.Error) as error:
        reason = os_reason(error)
        message = f"cannot read watchlist {watchlist.name} from {path}: {reason}"
        raise EngineError(message) from None
    return rows


def _row(texts: Sequence[str], watchlist: Watchlist, line: int) -> Row:
    columns = watchlist.schema.columns
    if len(texts) != len(columns):
        message = (
            f"{watchlist.path}:{line}: invalid number of fields: expected "
            f"{len(columns)}, as the watchlist {watchlist.name} declares, got {len(texts)}"
        )
        raise EngineError(message)
    values = []
    for text, column in zip(texts, columns, strict=True):
        value = _value(text, column.type)
        if value is None and text:
            message = f"{watchlist.path}:{line}: invalid {column.type.value}: {text[:40]!r}"
            raise EngineError(message)
        values.append(value)
    return tuple(values)


def _value(text: str, kind: GsqlType) -> Value:
    """Return the value of a field; None if the text is empty or not of that type."""
    return _READERS[kind](text) if text or kind is GsqlType.STRING else None


def _integer(text: str) -> int | None:
    try:
        value = int(text, 0) if text[:2].lower() == "0x" else int(text)
    except ValueError:
        return None
    return value if MIN_INT <= value <= MAX_INT else None


def _float(text: str) -> float | None:
    try:
        value = float(text)
    except ValueError:
        return None
    return value if math.isfinite(value) else None


_READERS: dict[GsqlType, Callable[[str], Value]] = {
    GsqlType.BOOL: lambda text: _TRUTHS.get(text.lower()),
    GsqlType.INT: _integer,
    GsqlType.FLOAT: _float,
    GsqlType.STRING: lambda text: text.encode(),
    GsqlType.IP: parse_ip,
    GsqlType.MAC: parse_mac,
    GsqlType.TIMESTAMP: parse_timestamp,
    GsqlType.INTERVAL: read_interval_ns,
}
