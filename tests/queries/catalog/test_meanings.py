"""Every function that queries can call is described, and nothing else is."""

from __future__ import annotations

from gscope.queries.analysis.typing.calls import BUILDERS
from gscope.queries.catalog.scalar.meanings import FAMILIES, MEANINGS


def test_every_function_has_a_meaning() -> None:
    assert sorted(MEANINGS) == sorted(BUILDERS)


def test_a_function_belongs_to_one_family() -> None:
    assert sum(map(len, FAMILIES.values())) == len(MEANINGS)


def test_meanings_are_sentences() -> None:
    assert [name for name, text in MEANINGS.items() if not text.endswith(".")] == []
