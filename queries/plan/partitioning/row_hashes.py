"""The hash of the rows of a table, by which a sample was chosen."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from gscope.queries.expressions.types import GsqlType
from gscope.queries.plan.partitioning.value_columns import value_column
from gscope.queries.plan.sampling.keyed_hash import NULL_WORD, address_words, hash_words

if TYPE_CHECKING:
    from collections.abc import Sequence

    import pyarrow as pa
    from numpy.typing import NDArray

    from gscope.queries.expressions.expressions import Expression
    from gscope.queries.plan.sampling.keyed_hash import HashKey


def row_hashes(table: pa.Table, terms: Sequence[Expression], key: HashKey) -> NDArray[np.uint64]:
    """Return the hash of each row; the terms are over the columns of ``table``."""
    return hash_words([_words(term, table, key) for term in terms], key)


def _words(term: Expression, table: pa.Table, key: HashKey) -> NDArray[np.uint64]:
    """Return the word of a term in each row, as ``keyed_hash`` defines it."""
    column = value_column(term, table)
    words = column.words[0]
    if term.type is GsqlType.IP:
        high, low = (half.byteswap() for half in column.words)
        words = address_words(high, low, key)
    return words if column.valid is None else np.where(column.valid, words, np.uint64(NULL_WORD))
