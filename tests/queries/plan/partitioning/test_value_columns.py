"""Expressions over whole columns have the values that the catalog gives for each row."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.queries.plan.partitioning.value_pools import GREATEST, LEAST, MAPPED, POOLS, V4

from gscope.queries.catalog.evaluate import call, evaluate
from gscope.queries.expressions.expressions import Column, Literal
from gscope.queries.expressions.types import GsqlType
from gscope.queries.plan.partitioning.partition_hash import partition_of_values
from gscope.queries.plan.partitioning.value_columns import partitions_of_rows, value_column
from gscope.queries.plan.program_partitioning import PartitionMember

if TYPE_CHECKING:
    from gscope.queries.expressions.expressions import Expression

INT, IP, BOOL = GsqlType.INT, GsqlType.IP, GsqlType.BOOL
ADDRESS, NUMBER = Column("address", IP, is_nullable=True), Column("n", INT, is_nullable=True)


def literal(value: int) -> Literal:
    return Literal(value, INT)


EXPRESSIONS: list[Expression] = [
    ADDRESS,
    NUMBER,
    *(call("ip_mask", ADDRESS, literal(m)) for m in (0xFFFFFF00, 0, 255, -256, 1 << 40, LEAST)),
    *(call("prefix", ADDRESS, literal(a), literal(b)) for a, b in ((24, 64), (0, 0), (32, 128))),
    *(call("bit_and", NUMBER, literal(bits)) for bits in (255, -16, LEAST, 0)),
    *(call("idiv_int", NUMBER, literal(by)) for by in (7, 1, -7, 0, GREATEST)),
    *(call("mod_int", NUMBER, literal(by)) for by in (7, 64, -7, 0)),
    call("is_private", ADDRESS),
    call("add_int", call("mul_int", NUMBER, literal(3)), NUMBER),
    call("in_net", ADDRESS, Literal(V4 | 0x0A000000, IP), literal(104)),
]
ADDRESSES = st.sampled_from(POOLS[IP]) | st.integers(0, 2**32 - 1).map(lambda a: V4 | a)
ROWS = st.lists(
    st.tuples(
        ADDRESSES | st.integers(0, 2**128 - 1),
        st.sampled_from(POOLS[INT]) | st.integers(-1000, 1000),
    ),
    min_size=1,
    max_size=12,
)


def table_of(rows: list[tuple[int | None, int | None]]) -> pa.Table:
    texts = [None if a is None else a.to_bytes(16) for a, _ in rows]
    return pa.table(
        {"address": pa.array(texts, pa.binary(16)), "n": pa.array([n for _, n in rows], pa.int64())}
    )


@given(ROWS, st.sampled_from(EXPRESSIONS))
def test_a_column_has_the_values_of_each_row(
    rows: list[tuple[int | None, int | None]], expression: Expression
) -> None:
    found = value_column(expression, table_of(rows))
    partitions = partitions_of_rows(table_of(rows), [PartitionMember((expression,))], 1000)
    for place, (address, number) in enumerate(rows):
        row = {"address": address, "n": number}
        value = evaluate(expression, lambda leaf, row=row: row[leaf.name])  # type: ignore[misc]
        assert (found.valid is None or bool(found.valid[place])) == (value is not None)
        if value is not None:
            assert isinstance(value, int)
            size = 16 if expression.type is IP else 8
            data = b"".join(int(words[place]).to_bytes(8, "little") for words in found.words)
            expected = value.to_bytes(16) if size == 16 else (value % 2**64).to_bytes(8, "little")
            assert data == expected
        assert partitions[place] == partition_of_values([[(value, expression.type)]], 1000)


def test_the_mapped_block_of_ipv6_stays_ipv6() -> None:
    rows: list[tuple[int | None, int | None]] = [(MAPPED | 5, 0), (V4 | 5, 0)]
    found = value_column(call("ip_mask", ADDRESS, literal(0xFFFFFF00)), table_of(rows))
    low = [int(word).to_bytes(8, "little")[:4] for word in found.words[1]]
    assert low == [b"\0\0\xff\xfe", b"\0\0\xff\xff"]


def test_strings_are_refused() -> None:
    with pytest.raises(ValueError, match="STRING"):
        value_column(Column("s", GsqlType.STRING, is_nullable=False), pa.table({"s": [b"x"]}))
