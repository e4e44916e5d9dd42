"""Of which rows of a group's lives a sample knows everything: a plain loop over its epochs."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeVar

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping

Row = TypeVar("Row")


def known_rows(
    rows: Mapping[int, Row],
    epochs: Iterable[int],
    is_hidden: Callable[[int], bool],
    closes_anyway: Callable[[Row], bool],
) -> Iterator[Row]:
    """Yield the rows of one group that a sample has to answer.

    Args:
        rows: the rows of the full answer, by epoch.
        epochs: all epochs, from the one before the first row on.
        is_hidden: whether the threshold of an epoch is below the hash of the group.
        closes_anyway: whether it is clear, without knowing when the group began, that it closes at
            the end of a row's epoch; so it is at the end of each epoch without tuples.
    """
    # What is known at the end of an epoch: the state of the group, or that it has none.
    is_known, in_doubt = True, False
    for epoch in epochs:
        row = rows.get(epoch)
        if is_hidden(epoch):
            is_known = in_doubt = False
        elif row is None:
            is_known, in_doubt = True, False
        else:
            if is_known and not in_doubt:
                yield row
            in_doubt = (in_doubt or not is_known) and not closes_anyway(row)
            is_known = True
