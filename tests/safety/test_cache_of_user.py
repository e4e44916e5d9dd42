"""Where processes that root's runs start as another user keep kernels and archives."""

from __future__ import annotations

import shutil
import stat
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from tests.support.requirements import needs_root

from gscope.capture.process.confinement.identity import Identity, acting_as
from gscope.capture.process.confinement.prepare import prepare

if TYPE_CHECKING:
    from collections.abc import Iterator

pytestmark = needs_root


@pytest.fixture
def reachable(monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A cache folder, named by the environment, that every user can get to."""
    folder = Path(tempfile.mkdtemp(dir="/tmp"))
    folder.chmod(0o755)
    monkeypatch.setenv("XDG_CACHE_HOME", str(folder))
    yield folder
    shutil.rmtree(folder)


def test_the_cache_that_the_environment_names_is_used_where_the_user_can_reach_it(
    reachable: Path, tmp_path: Path
) -> None:
    confinement = prepare(tmp_path, (), None, is_sandboxed=True)
    identity = confinement.identity
    assert isinstance(identity, Identity)
    own = reachable / "gscope" / f"user-{identity.uid}"
    assert confinement.cache == str(own)
    assert own.stat().st_uid == identity.uid
    assert stat.S_IMODE((reachable / "gscope").stat().st_mode) == 0o711
    with acting_as(identity):
        (own / "kept").write_text("by the user")
        with pytest.raises(PermissionError):
            list((reachable / "gscope").iterdir())
