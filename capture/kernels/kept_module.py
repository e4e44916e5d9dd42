"""A module of machine code that is kept on disk once it is compiled."""

from __future__ import annotations

import functools
import os
import tempfile
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

from gscope.capture.kernels.compiling import note_compiled
from gscope.capture.kernels.native.machine_code import (
    Optimization,
    machine_code,
    processor,
    read_code,
    write_code,
)
from gscope.queries.ownership import is_trusted_file

if TYPE_CHECKING:
    from collections.abc import Callable


class KeptModule:
    """A module of machine code, kept for each kind of processor and each level of optimisation.

    Args:
        folder: the folder in which to keep it; None to keep it nowhere.
        stem: the first part of its file's name.
        part: the part of its file's name that no other module with this stem has.
        translated: translates it to LLVM assembly.
        reported: the file to name as what is compiled.
    """

    def __init__(
        self,
        folder: Path | None,
        stem: str,
        part: str,
        translated: Callable[[], str],
        reported: Path,
    ) -> None:
        self._folder = folder
        self._stem = stem
        self._part = part
        # The optimiser compiles again what the same process has translated for a quick start.
        self._assembly = functools.cache(translated)
        self.reported = reported

    def kept(self, optimization: Optimization = Optimization.FULL) -> bytes | None:
        """Return the machine code that the cache has; None without any that can be used."""
        if self._folder is None:
            return None
        file = self._folder / self._name(optimization)
        with suppress(OSError):
            if is_trusted_file(file):
                return read_code(file)
        return None

    def translate(self) -> None:
        """Translate it to LLVM assembly now; compiling it then leaves the interpreter to others."""
        self._assembly()

    def compiled(self, optimization: Optimization = Optimization.FULL) -> bytes:
        """Compile the module, and keep its machine code if the cache can be written."""
        code = machine_code(self._assembly(), optimization)
        note_compiled()
        if self._folder is not None:
            with suppress(OSError):
                _keep(self._folder / self._name(optimization), f"{self._stem}.", code)
        return code

    def _name(self, optimization: Optimization) -> str:
        level = "" if optimization is Optimization.FULL else ".quick"
        return f"{self._stem}.{processor()}{self._part}{level}.o"


def _keep(file: Path, prefix: str, code: bytes) -> None:
    descriptor, temporary = tempfile.mkstemp(".tmp", prefix, file.parent)
    with os.fdopen(descriptor, "wb") as opened:
        opened.write(write_code(code))
    Path(temporary).replace(file)
