"""The partition of a row as code; see ``queries/plan/partitioning/partition_hash.py``.

It is computed where a group is emitted, from the values of its keys, and stored beside its columns.
Kernels of streams that are not divided have no such code.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from gscope.capture.lfta.codegen.lower import lower
from gscope.capture.lfta.codegen.scope import Literals, Lowered, Scope, Variant
from gscope.capture.lfta.codegen.xxh64 import address_words, signed, xxh64
from gscope.capture.lfta.output_layout import column_word, emits_partitions
from gscope.capture.lfta.state import VALUES
from gscope.queries.expressions.expressions import Column
from gscope.queries.expressions.types import GsqlType
from gscope.queries.plan.partitioning.partition_hash import NULL_WORD, START, ensure_hashed

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from gscope.queries.plan.program import Lfta

IMPORTS = "from gscope.capture.kernels.intrinsics import st16\n\n"
"""Imports of kernels with divided streams, behind those of all kernels."""


def has_partitions(lftas: Sequence[Lfta]) -> bool:
    """Return whether a kernel has code of this module."""
    return any(map(emits_partitions, lftas))


def partition_of_group(
    lfta: Lfta, keys: Mapping[str, tuple[tuple[str, ...], str | None]]
) -> list[str]:
    """Return statements that store the partition of row ``row``, of a group that is emitted.

    Args:
        lfta: an LFTA whose rows have partitions.
        keys: code for the parts and the NULL condition of each key, by name.
    """
    divided = lfta.partitioning
    assert divided is not None
    scope = Scope(Variant.OTHER, Literals(), indent=0)
    for name, (parts, null) in keys.items():
        column = lfta.schema[name]
        scope.lowered[repr(Column(name, column.type, column.is_nullable))] = Lowered(
            column.type, parts, null
        )
    hashed: int | str = START
    for member in divided.members:
        values = [lower(scope, value) for value in member.values]
        if len(values) == 1:
            hashed = _hash(scope, values[0], hashed)
        else:
            one, other = (_hash(scope, value, START) for value in values)
            hashed = xxh64(scope, [scope.value(f"min({one}, {other})")], hashed)
            hashed = xxh64(scope, [scope.value(f"max({one}, {other})")], hashed)
    rest = scope.value(f"srem({hashed}, {divided.partitions})")
    partition = scope.value(f"{rest} + (({rest} >> 63) & {divided.partitions})")
    place = column_word(len(lfta.schema.columns), VALUES)
    scope.emit(f"st16(s[{place}] + row * 2, {partition})")
    return scope.lines


def _hash(scope: Scope, value: Lowered, seed: int | str) -> str:
    ensure_hashed(value.type)
    if value.is_always_null:
        return xxh64(scope, [str(signed(NULL_WORD))], seed)
    if value.type is GsqlType.IP:
        hashed = xxh64(scope, address_words(value), seed)
        if value.null is None:
            return hashed
        of_null = xxh64(scope, [str(signed(NULL_WORD))], seed)
        return scope.value(f"{of_null} if {value.null} else {hashed}")
    word = f"(1 if {value.code} else 0)" if value.type is GsqlType.BOOL else value.code
    if value.null is not None:
        word = f"({signed(NULL_WORD)} if {value.null} else {word})"
    return xxh64(scope, [scope.value(word)], seed)
