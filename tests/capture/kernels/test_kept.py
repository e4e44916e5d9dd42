"""The hash of the sources of kernels, by which a changed source gets another place."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from gscope.capture.kernels import kept

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

SOURCES = {
    "packet/decode.py": "a = 1",
    "fold.py": "from gscope.capture.kernels.jit import kernel",
    "clock.py": "import time",
}


@pytest.fixture
def digest(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[dict[str, str]], str]:
    """Returns the hash where these are the sources, each time in a folder that is not cached."""

    def made(sources: dict[str, str]) -> str:
        folder = tmp_path / str(len(list(tmp_path.iterdir())))
        for name, text in sources.items():
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            (folder / name).write_text(text)
        monkeypatch.setattr(kept, "_HERE", folder)
        return kept.sources_digest.__wrapped__()

    return made


def test_the_hash_is_that_of_contents_wherever_they_are(
    digest: Callable[[dict[str, str]], str],
) -> None:
    assert digest(SOURCES) == digest(SOURCES)
    assert len(digest(SOURCES)) == 16


@pytest.mark.parametrize(
    ("name", "is_of_kernels"),
    [("packet/decode.py", True), ("fold.py", True), ("clock.py", False)],
)
def test_the_hash_changes_with_sources_of_kernels(
    digest: Callable[[dict[str, str]], str], name: str, is_of_kernels: bool
) -> None:
    changed = SOURCES | {name: f"{SOURCES[name]}  # changed"}
    assert (digest(changed) != digest(SOURCES)) == is_of_kernels
