"""The size of the table of a pre-sample (``pre_sample_kernels.py``), and its keys."""

from __future__ import annotations

from typing import TYPE_CHECKING

from gscope.capture.lfta.pre_sample_kernels import ENTRY_BYTES, KEY, KEY_BYTES, WAYS
from gscope.queries.expressions.types import GsqlType
from gscope.records import dataclass

if TYPE_CHECKING:
    from collections.abc import Sequence

    from gscope.queries.expressions.schema import ColumnSchema
    from gscope.queries.plan.program import Lfta
    from gscope.queries.plan.sampling_operator import PreSample

PRE_SAMPLE_BYTES = 16 << 20
"""Most memory of a pre-sample, unless a few slots need more; what is never used is never taken."""


@dataclass(frozen=True, slots=True)
class PreSampleTable:
    """The size of the table of a pre-sample.

    Attributes:
        words: words of a key.
        slots: number of slots, a power of two.
        bytes: size of the memory.
    """

    words: int
    slots: int
    bytes: int

    @classmethod
    def of(cls, lfta: Lfta, pre_sample: PreSample) -> PreSampleTable:
        """Return that of an LFTA."""
        words = sum(map(_words, key_columns(lfta, pre_sample)))
        assert 8 * words <= KEY_BYTES, pre_sample
        slot_bytes = ENTRY_BYTES + KEY + 8 * (words + pre_sample.rank)
        slots = 1 << max(WAYS, PRE_SAMPLE_BYTES // slot_bytes).bit_length() - 1
        return cls(words, slots, KEY_BYTES + slots * slot_bytes)


def key_columns(lfta: Lfta, pre_sample: PreSample) -> Sequence[ColumnSchema]:
    """Return the columns of window and supergroup, the window first."""
    names = [name for name in (pre_sample.window, *pre_sample.keys) if name is not None]
    return [lfta.schema[name] for name in names]


def _words(column: ColumnSchema) -> int:
    return (2 if column.type is GsqlType.IP else 1) + column.is_nullable
