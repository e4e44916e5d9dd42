"""Files of user code: their text, and the module of each process that needs it.

The text is part of the program, so that the command line, the capture daemon, the HFTA job and its
workers all run what was checked, even if the file changes meanwhile.
"""

from __future__ import annotations

import hashlib
import os
import sys
import traceback
from contextlib import redirect_stdout
from functools import lru_cache
from pathlib import Path
from types import ModuleType

from gscope.errors import UsageError
from gscope.queries.os_errors import os_reason
from gscope.queries.ownership import fault_of_script
from gscope.records import dataclass

_MOST_BYTES = 1 << 20


@dataclass(frozen=True, slots=True)
class UserFile:
    """A file of user code as the command line read it.

    Attributes:
        path: the path as given, for messages.
        text: its content.
    """

    path: str
    text: str

    @property
    def digest(self) -> str:
        """A hash of the text."""
        return hashlib.sha256(self.text.encode()).hexdigest()[:16]


def read_user_file(path: str) -> UserFile:
    """Return the file at ``path``.

    Raises:
        UsageError: the file cannot be read, another user can have written it, or it is not text.
    """
    try:
        with Path(path).open("rb") as file:
            fault = fault_of_script(os.fstat(file.fileno()))
            data = file.read(_MOST_BYTES + 1)
    except (OSError, ValueError) as error:
        reason = os_reason(error)
        message = f"cannot read the user code {path}: {reason}"
        raise UsageError(message) from error
    if fault is not None:
        message = (
            f"the user code {path} is not executed: {fault}; expected a file that only you or root"
            " can write to"
        )
        raise UsageError(message)
    if len(data) > _MOST_BYTES:
        message = f"the user code {path} is larger than {_MOST_BYTES} bytes"
        raise UsageError(message)
    try:
        return UserFile(path, data.decode("utf-8"))
    except UnicodeDecodeError as error:
        message = f"the user code {path} is not UTF-8 text"
        raise UsageError(message) from error


@lru_cache(maxsize=64)
def load_module(file: UserFile) -> ModuleType:
    """Return the module of ``file``, executed once in this process.

    Raises:
        UsageError: executing it failed; with the line.
    """
    module = ModuleType(f"gscope_user_{file.digest}")
    module.__file__ = file.path
    # dataclasses and pickle look it up by name while it runs
    sys.modules[module.__name__] = module
    try:
        code = compile(file.text, file.path, "exec", dont_inherit=True)
        # standard output belongs to answers and events
        with redirect_stdout(sys.stderr):
            exec(code, module.__dict__)
    except SyntaxError as error:
        del sys.modules[module.__name__]
        message = f"{file.path}:{error.lineno or 1}: invalid Python: {error.msg}"
        raise UsageError(message) from error
    except (Exception, SystemExit) as error:
        del sys.modules[module.__name__]
        message = f"{place_of(error, file.path)}: {described(error)}"
        raise UsageError(message) from error
    return module


def place_of(error: BaseException, path: str) -> str:
    """Return ``file:line`` of the innermost line of the file at ``path`` in a traceback."""
    lines = [
        frame.lineno
        for frame in traceback.extract_tb(error.__traceback__)
        if frame.filename == path and frame.lineno is not None
    ]
    return f"{path}:{lines[-1]}" if lines else path


def described(error: BaseException) -> str:
    """Return an error as half a sentence; deliberate ones as they are."""
    text = str(error).strip().splitlines()
    first = text[0] if text else ""
    if isinstance(error, UsageError):
        return first
    return f"{type(error).__name__}: {first}" if first else type(error).__name__
