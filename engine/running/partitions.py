"""The partition of each row of a table, for rows that are not labelled with it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from gscope.engine.running.value_columns import value_column
from gscope.queries.plan.partitioning.partition_hash import partition_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    import numpy as np
    import pyarrow as pa
    from numpy.typing import NDArray

    from gscope.queries.plan.program_partitioning import PartitionMember


def partitions_of_rows(
    table: pa.Table, members: Sequence[PartitionMember], partitions: int
) -> NDArray[np.int32]:
    """Return the partition of each row of a table, over whose columns the members are."""
    columns = [[value_column(value, table) for value in member.values] for member in members]
    return partition_of(columns, partitions)
