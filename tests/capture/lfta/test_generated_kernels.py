"""Generated source is that of the golden kernels, see ``kernel_cases.py``."""

from __future__ import annotations

import pytest
from tests.capture.lfta.kernel_cases import CASES, FOLDER, generated, golden

from gscope.capture.lfta.codegen.generate import PREAMBLE

REMEDY = "review the difference, then run `python -m tests.capture.lfta.kernel_cases`"


@pytest.mark.parametrize("case", CASES)
def test_generated_source_is_the_golden_kernel(case: str) -> None:
    assert generated(case) == golden(case).read_text(), REMEDY


def test_the_preamble_is_the_golden_one() -> None:
    assert golden("preamble").read_text() == PREAMBLE, REMEDY


def test_every_golden_kernel_has_a_query() -> None:
    assert {path.stem for path in FOLDER.glob("*.kernel")} == {*CASES, "preamble"}
