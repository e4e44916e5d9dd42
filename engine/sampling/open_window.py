"""What a window leaves when a part of it has been folded: live groups, states, sums."""

from __future__ import annotations

from dataclasses import field
from typing import TYPE_CHECKING, Any

from gscope.records import dataclass

if TYPE_CHECKING:
    import pyarrow as pa
    from numpy.typing import NDArray

    Array = NDArray[Any]


@dataclass(frozen=True, slots=True)
class OpenWindow:
    """The supergroups of a window that goes on in the next part of a step.

    The next part begins with ``rows``: for each supergroup one of its tuples, then the first tuple
    of each of its live groups, in the order of the groups.

    Attributes:
        rows: these tuples, with the columns that the operator reads.
        owners: the supergroup of each row, from 0.
        by_group: the arrays by group that a kernel takes, of each row; a row that stands for its
            supergroup has arbitrary values.
        by_supergroup: the arrays by supergroup.
        random: the random number of each row; None without ``rsample``.
        seen: the tuples of each supergroup so far.
        states: the rows of states.
        objects: the states of user code by supergroup and name.
    """

    rows: pa.Table
    owners: Array
    by_group: dict[str, Array]
    by_supergroup: dict[str, Array]
    random: Array | None
    seen: Array
    states: Array
    objects: dict[tuple[int, str], Any] = field(default_factory=dict)
