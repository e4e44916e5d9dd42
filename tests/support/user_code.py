"""Files of user code for tests, in the catalog for as long as a ``with`` lasts."""

from __future__ import annotations

from contextlib import contextmanager
from textwrap import dedent
from typing import TYPE_CHECKING

from gscope.queries.analysis.typing.user_code import offer, withdraw
from gscope.queries.catalog.user_functions.files import UserFile

if TYPE_CHECKING:
    from collections.abc import Iterator

_IMPORT = "from gscope.queries.catalog.user import aggregate, function\n"


def user_file(text: str, path: str = "mine.py") -> UserFile:
    """A file with the import that it needs in its first line."""
    return UserFile(path, _IMPORT + dedent(text).lstrip("\n"))


@contextmanager
def offered(*texts: str) -> Iterator[tuple[UserFile, ...]]:
    """What files of these texts declare may be called by queries meanwhile."""
    files = tuple(user_file(text, f"mine{n or ''}.py") for n, text in enumerate(texts))
    try:
        offer(files)
        yield files
    finally:
        withdraw()
