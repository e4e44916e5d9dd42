"""Cases that only the long form of a test tries: ``pytest -m long``, or ``make test-all``."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from _pytest.mark import ParameterSet


def cases(default: Iterable[Any], long: Iterable[Any]) -> list[ParameterSet]:
    """Return parameters: ``default`` for every run, ``long`` for the long form."""
    return [
        *(pytest.param(value) for value in default),
        *(pytest.param(value, marks=pytest.mark.long) for value in long),
    ]


def pairs(
    ones: Sequence[Any],
    others: Sequence[Any],
    always: int,
    name: Callable[[Any], str],
) -> list[ParameterSet]:
    """Return all pairs as parameters, of which few are in the default run.

    These are the first ``always`` of ``others`` with each of ``ones``, and of the rest one with
    each, in turn, so that each of the rest comes about equally often.
    """
    rest = len(others) - always
    parameters = []
    for row, one in enumerate(ones):
        for column, other in enumerate(others):
            is_default = column < always or (rest and column - always == row % rest)
            marks = () if is_default else pytest.mark.long
            parameters.append(
                pytest.param(one, other, marks=marks, id=f"{name(one)}-{name(other)}")
            )
    return parameters
