"""What an attacker plants, and how a test learns that it was executed."""

from __future__ import annotations

import os
import pickle
import shutil
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

OTHER = 54321
"""The uid of the attacker; no such user has to exist."""


class Trap:
    """A file that exists once planted code has run."""

    def __init__(self, path: Path) -> None:
        self.path = path

    @property
    def has_sprung(self) -> bool:
        return self.path.exists()

    def pickle(self) -> bytes:
        """A pickle that springs the trap when it is loaded."""
        return pickle.dumps(_Springing(str(self.path)))

    def code(self) -> str:
        """Python code that springs it when it is executed."""
        return f"open({str(self.path)!r}, 'w').close()\n"


class _Springing:
    def __init__(self, path: str) -> None:
        self.path = path

    def __reduce__(self) -> tuple[object, tuple[str, str]]:
        return open, (self.path, "w")


def given_away(folder: Path) -> None:
    """A folder with all in it belongs to the attacker."""
    for path in (folder, *folder.rglob("*")):
        os.lchown(path, OTHER, OTHER)


def writable_by_all(folder: Path) -> None:
    """Others can write to each folder and file."""
    for path in (folder, *folder.rglob("*")):
        path.chmod(0o777 if path.is_dir() else 0o666)


def replaceable(folder: Path) -> None:
    """The folder is private, but others can put another one in its place."""
    folder.parent.chmod(0o777)


def behind_a_link(folder: Path) -> None:
    """In place of the folder is the attacker's link to a folder that looks private."""
    elsewhere = folder.with_name("elsewhere")
    shutil.move(folder, elsewhere)
    folder.symlink_to(elsewhere)
    os.lchown(folder, OTHER, OTHER)


WAYS: tuple[Callable[[Path], None], ...] = (
    given_away,
    writable_by_all,
    replaceable,
    behind_a_link,
)
