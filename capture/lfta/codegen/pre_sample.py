"""A pre-sample as code: which tuples a selecting LFTA need not ship (``pre_sample_kernels.py``)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from gscope.capture.lfta.pre_sample_table import PreSampleTable, key_columns
from gscope.capture.lfta.state import LftaState
from gscope.queries.expressions.types import GsqlType

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from gscope.capture.lfta.codegen.scope import Lowered, Scope
    from gscope.queries.plan.program import Lfta

IMPORTS = "from gscope.capture.lfta.pre_sample_kernels import is_left_out\n"


def leave_out(scope: Scope, lfta: Lfta, values: Mapping[str, Lowered]) -> None:
    """Add code that continues with the next packet if the tuple need not be shipped.

    Args:
        scope: the statements of one packet.
        lfta: the LFTA.
        values: its columns, by name.
    """
    pre_sample = lfta.pre_sample
    if pre_sample is None:
        return
    table = PreSampleTable.of(lfta, pre_sample)
    memory = f"s[{LftaState.TABLE_A}]"
    words = (
        word
        for column in key_columns(lfta, pre_sample)
        for word in _key_words(values[column.name], is_nullable=column.is_nullable)
    )
    for n, word in enumerate(words):
        scope.emit(f"st64({memory} + {8 * n}, {word})")
    value, time = values[pre_sample.value], values[pre_sample.time]
    has_window = pre_sample.window is not None
    test = (
        f"is_left_out({memory}, {table.slots}, {table.words}, {pre_sample.rank}, {has_window},"
        f" {pre_sample.is_distinct}, {time.code}, {value.code})"
    )
    if value.is_always_null:
        return
    if value.null is not None:
        test = f"not {value.null} and {test}"
    scope.emit(f"if {test}:")
    scope.emit("    matched += 1")
    scope.emit("    continue")


def _key_words(value: Lowered, *, is_nullable: bool) -> Iterator[str]:
    """Yield the words of a value; NULL is 0 with a further word that says so."""
    for part in value.parts:
        word = f"(1 if {part} else 0)" if value.type is GsqlType.BOOL else part
        if value.null is not None:
            word = "0" if value.is_always_null else f"(0 if {value.null} else {word})"
        yield word
    if is_nullable:
        null = value.null
        yield "0" if null is None else "1" if value.is_always_null else f"(1 if {null} else 0)"
