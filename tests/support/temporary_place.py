"""A folder for the temporary files of a test process and of what it starts.

gscope's default work dir is in the folder of temporary files: without a place of its own, a test
would see the runs of the user, those of other test processes, and what an interrupted one has left.
"""

from __future__ import annotations

import fcntl
import os
import shutil
import tempfile
from contextlib import suppress
from pathlib import Path

_OF_PYTEST = "PYTEST_DEBUG_TEMPROOT"


class TemporaryPlace:
    """A new folder that ``TMPDIR`` names until ``close``, which deletes it.

    Other users may pass it, as they may pass ``/tmp``. Folders of processes that were killed are
    deleted. pytest keeps its own folders where they were.

    Attributes:
        path: the folder.
        usual: the folder of temporary files of the user.
    """

    def __init__(self) -> None:
        self._before = os.environ.get("TMPDIR")
        # A worker inherits the environment of the process that distributes the tests.
        self.usual = Path(os.environ.setdefault(_OF_PYTEST, tempfile.gettempdir()))
        places = self.usual / f"gscope-tests-{os.geteuid()}"
        places.mkdir(exist_ok=True)
        assert places.lstat().st_uid == os.geteuid(), f"{places} belongs to another user"
        places.chmod(0o711)
        lock = os.open(places, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
        fcntl.flock(lock, fcntl.LOCK_EX)
        for place in places.iterdir():
            _remove_unless_held(place)
        self.path = Path(tempfile.mkdtemp(dir=places))
        self.path.chmod(0o711)
        self._lock = os.open(self.path, os.O_RDONLY | os.O_DIRECTORY)
        fcntl.flock(self._lock, fcntl.LOCK_EX)
        os.close(lock)
        os.environ["TMPDIR"] = tempfile.tempdir = str(self.path)

    def close(self) -> None:
        if self._before is None:
            del os.environ["TMPDIR"]
        else:
            os.environ["TMPDIR"] = self._before
        tempfile.tempdir = None
        shutil.rmtree(self.path, ignore_errors=True)
        os.close(self._lock)


def _remove_unless_held(place: Path) -> None:
    with suppress(OSError):
        held = os.open(place, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
        try:
            fcntl.flock(held, fcntl.LOCK_EX | fcntl.LOCK_NB)
            shutil.rmtree(place, ignore_errors=True)
        finally:
            os.close(held)
