"""Steps whose operators run in partitions although they are small."""

from __future__ import annotations

from contextlib import ExitStack, contextmanager
from typing import TYPE_CHECKING
from unittest import mock

from gscope.engine.spark.partitions import limits

if TYPE_CHECKING:
    from collections.abc import Iterator


@contextmanager
def divided_steps(portion_rows: int = 20) -> Iterator[None]:
    """Divide the rows of every step, whether or not their segments are labelled."""
    small = {"SPLIT_ROWS": 1, "LABELLED_SHARE": 0, "PORTION_ROWS": portion_rows}
    with ExitStack() as stack:
        for name, value in small.items():
            stack.enter_context(mock.patch.object(limits, name, value))
        yield
