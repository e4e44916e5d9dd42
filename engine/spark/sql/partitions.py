"""The partition of a row as Spark SQL; see ``queries/plan/partitioning/partition_hash.py``.

``xxhash64`` hashes its arguments one after another, each with the hash so far as its seed, and
leaves out NULL: so each nullable value is followed by a word that is NULL unless the value is.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from gscope.engine.spark.sql.expressions import column_leaf, to_sql
from gscope.queries.expressions.types import GsqlType
from gscope.queries.plan.partitioning.partition_hash import DOMAIN, NULL_WORD, ensure_hashed

if TYPE_CHECKING:
    from collections.abc import Sequence

    from gscope.engine.spark.sql.expressions import Leaf
    from gscope.queries.expressions.expressions import Expression
    from gscope.queries.plan.program_partitioning import PartitionMember


def partition_sql(
    members: Sequence[PartitionMember], partitions: int, leaf: Leaf = column_leaf
) -> str:
    """Return the text of a row's partition, an INT from 0 to ``partitions`` - 1."""
    words: list[str] = []
    for member in members:
        if len(member.values) == 1:
            words += _words(member.values[0], leaf)
        else:
            alone = ", ".join(_hash(_words(value, leaf)) for value in member.values)
            words += [f"least({alone})", f"greatest({alone})"]
    return f"cast(pmod({_hash(words)}, {partitions}L) AS INT)"


def _hash(words: Sequence[str]) -> str:
    return f"xxhash64({', '.join([f'{DOMAIN}L', *words])})"


def _words(value: Expression, leaf: Leaf) -> list[str]:
    """Return what stands for a value among the arguments of ``xxhash64``."""
    ensure_hashed(value.type)
    text = to_sql(value, leaf)
    word = text if value.type is GsqlType.IP else f"cast({text} AS BIGINT)"
    return [word, f"if({text} IS NULL, {NULL_WORD}L, NULL)"] if value.is_nullable else [word]
