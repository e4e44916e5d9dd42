from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from tests.cli.report.chromium import Chromium, chromium

if TYPE_CHECKING:
    from collections.abc import Iterator


@pytest.fixture(scope="session")
def browser(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Chromium]:
    with chromium(tmp_path_factory.mktemp("chromium")) as opened:
        yield opened
