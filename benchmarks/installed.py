"""Brings a checkout into the state of an installation, with compiled modules."""

from __future__ import annotations

import compileall
from pathlib import Path

import gscope


def compile_modules() -> None:
    """Compile the modules of gscope that are not compiled.

    ``pip`` does this for packages. In a checkout, each process stores the modules that it compiles,
    except for processes that run as another user, who cannot write there: they would compile their
    modules at each start, at a second of CPU time for each run.
    """
    package = Path(gscope.__file__).parent
    # Rooms are links, which compileall does not follow.
    for folder in (package, *(each.resolve() for each in package.iterdir() if each.is_dir())):
        compileall.compile_dir(folder, quiet=1)
