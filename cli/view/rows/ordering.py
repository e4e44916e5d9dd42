"""The order of the rows of an epoch, as far as the screen shows it.

Only the rows that are shown are sorted: the first ``count`` of a million rows take a few
milliseconds, and the order of all of them a hundred times that.
"""

from __future__ import annotations

import ipaddress
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from gscope.engine.sinks.columns import flat
from gscope.queries.expressions.types import GsqlType
from gscope.records import dataclass

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from gscope.cli.view.rows.columns import ViewColumn

_ROW = "row"
_FIRST, _SECOND = "first", "second"
_IPV4 = 0xFFFF << 32


@dataclass(frozen=True, slots=True)
class Sorting:
    """How the rows of an epoch are sorted.

    Attributes:
        column: the column; rows that are equal in it keep the order of delivery.
        is_descending: whether the greatest values come first. NaN and NULL come last either way.
    """

    column: str
    is_descending: bool = True


def first_rows(
    table: pa.Table, column: ViewColumn | None, count: int, *, is_descending: bool
) -> NDArray[np.int64]:
    """Return the places of the first ``count`` rows.

    Args:
        table: the rows, readable.
        column: the column that sorts them; None for the order of delivery.
        count: how many of them; fewer if there are no more.
        is_descending: see ``Sorting``.
    """
    count = min(count, table.num_rows)
    if column is None or count == 0:
        return np.arange(count, dtype=np.int64)
    values = table[column.name]
    keys = _address_keys(values) if column.type is GsqlType.IP else {_FIRST: _comparable(values)}
    direction = "descending" if is_descending else "ascending"
    sort_keys: list[tuple[str, Any]] = [(name, direction) for name in keys]
    sort_keys.append((_ROW, "ascending"))
    sortable = pa.table({**keys, _ROW: np.arange(table.num_rows)})
    if count < table.num_rows:
        places = pc.select_k_unstable(sortable, count, sort_keys=sort_keys)
    else:
        places = pc.sort_indices(sortable, sort_keys=sort_keys)
    found: NDArray[np.int64] = np.asarray(places).astype(np.int64)
    return found


def _comparable(values: pa.ChunkedArray) -> pa.ChunkedArray:
    """Return values of a type that Arrow sorts."""
    if pa.types.is_boolean(values.type):
        return pc.cast(values, pa.int8())
    return values


def _address_keys(values: pa.ChunkedArray) -> dict[str, pa.Array]:
    """Return two integers for each address, which sort as addresses do; NULL stays NULL."""
    texts = flat(values)
    high, low = address_numbers(texts)
    is_null = np.asarray(pc.is_null(texts))
    return {
        _FIRST: pa.array(high, pa.uint64(), mask=is_null),
        _SECOND: pa.array(low, pa.uint64(), mask=is_null),
    }


def address_numbers(texts: pa.Array) -> tuple[NDArray[np.uint64], NDArray[np.uint64]]:
    """Return the upper and the lower 64 bits of addresses; IPv4 as v4-mapped, NULL as 0."""
    high = np.zeros(len(texts), np.uint64)
    low = np.zeros(len(texts), np.uint64)
    is_v6 = np.asarray(pc.fill_null(pc.match_substring(texts, ":"), False))
    is_v4 = np.asarray(pc.is_valid(texts)) & ~is_v6
    parts = pc.list_flatten(pc.split_pattern(texts.filter(pa.array(is_v4)), "."))
    octets = np.asarray(pc.cast(parts, pa.uint64())).reshape(-1, 4)
    numbers = np.full(len(octets), _IPV4, np.uint64)
    for place in range(4):
        numbers |= octets[:, place] << np.uint64(24 - 8 * place)
    low[is_v4] = numbers
    encoded = texts.filter(pa.array(is_v6)).dictionary_encode()
    whole = [int(ipaddress.IPv6Address(text)) for text in encoded.dictionary.to_pylist()]
    places = np.asarray(encoded.indices)
    if whole:
        high[is_v6] = np.array([n >> 64 for n in whole], np.uint64)[places]
        low[is_v6] = np.array([n & (1 << 64) - 1 for n in whole], np.uint64)[places]
    return high, low
