"""The first rows in an order, against Python's sort."""

from __future__ import annotations

import ipaddress
import math
import random
from typing import Any

import pyarrow as pa
import pytest

from gscope.cli.view.rows.columns import Role, ViewColumn
from gscope.cli.view.rows.ordering import first_rows
from gscope.queries.expressions.types import GsqlType

_DRAW = random.Random(11)
_KINDS: dict[GsqlType, tuple[Any, Any, Any]] = {
    GsqlType.INT: (pa.int64(), lambda: _DRAW.randint(-5, 5), lambda value: value),
    GsqlType.FLOAT: (pa.float64(), lambda: _DRAW.choice([0.5, -1.0, math.nan, 2.0]), lambda v: v),
    GsqlType.STRING: (pa.string(), lambda: _DRAW.choice(["", "b", "é", "a", "B"]), str.encode),
    GsqlType.BOOL: (pa.bool_(), lambda: _DRAW.random() < 0.5, lambda value: value),
    GsqlType.IP: (
        pa.string(),
        lambda: _DRAW.choice(
            ["9.0.0.1", "10.0.0.1", "10.0.0.9", "255.0.0.1", "::1", "2001:db8::1"]
        ),
        lambda value: _number(value),
    ),
}


def _number(text: str) -> int:
    address = ipaddress.ip_address(text)
    return int(address) + (0xFFFF << 32 if address.version == 4 else 0)


def _is_last(value: object) -> bool:
    return value is None or (isinstance(value, float) and math.isnan(value))


@pytest.mark.parametrize("kind", list(_KINDS))
@pytest.mark.parametrize("is_descending", [True, False])
@pytest.mark.parametrize("count", [0, 1, 7, 60, 99])
def test_first_rows_are_those_of_a_stable_sort(
    kind: GsqlType, is_descending: bool, count: int
) -> None:
    arrow, draw, rank = _KINDS[kind]
    values = [None if _DRAW.random() < 0.1 else draw() for _ in range(60)]
    table = pa.table({"x": pa.array(values, arrow)})
    column = ViewColumn("x", kind, Role.MEASURE)
    ranked = [p for p in range(60) if not _is_last(values[p])]
    ranked.sort(key=lambda place: rank(values[place]), reverse=is_descending)
    ranked += [p for p in range(60) if _is_last(values[p]) and values[p] is not None]
    ranked += [p for p in range(60) if values[p] is None]
    found = first_rows(table, column, count, is_descending=is_descending).tolist()
    assert found == ranked[:count]


def test_the_order_of_delivery_needs_no_column() -> None:
    table = pa.table({"x": [3, 1, 2]})
    assert first_rows(table, None, 2, is_descending=True).tolist() == [0, 1]
