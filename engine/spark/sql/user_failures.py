"""Errors of user code that tasks of Spark ran."""

from __future__ import annotations

import re
from contextlib import contextmanager
from typing import TYPE_CHECKING

from gscope.errors import UserCodeError

if TYPE_CHECKING:
    from collections.abc import Iterator

_USER_ERROR = re.compile(r"gscope\.errors\.UserCodeError: (.+)")


@contextmanager
def user_failures() -> Iterator[None]:
    """Raise errors of user code as such: Spark buries them in the text of an error of its own.

    Raises:
        UserCodeError: a function or aggregate of a user's file failed; one sentence says how.
    """
    try:
        yield
    except UserCodeError:
        raise
    except Exception as error:
        found = _USER_ERROR.search(str(error))
        if found is None:
            raise
        raise UserCodeError(found[1]) from error
