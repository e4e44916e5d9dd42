"""Installs the wheel into an empty environment outside the checkout.

It answers a golden case there. ``python tests/project/wheel_check.py`` prints what failed, and the
count of what passed and failed.
"""

from __future__ import annotations

import csv
import os
import shutil
import subprocess
import sys
import tempfile
import venv
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
CASE = "per_source"
"""A case over captures, not over generated traffic, for which the package would be asked."""


def main() -> int:
    """Run the check; the exit code."""
    try:
        with tempfile.TemporaryDirectory(prefix="gscope-wheel-") as folder:
            check(Path(folder))
    except (AssertionError, subprocess.CalledProcessError) as error:
        output = getattr(error, "stderr", None) or ""
        sys.stdout.write(f"{error}\n{output}\n0 passed, 1 failed\n")
        return 1
    sys.stdout.write("1 passed, 0 failed\n")
    return 0


def check(folder: Path) -> None:
    """Build, install, ask.

    Raises:
        AssertionError: an answer is wrong.
        CalledProcessError: something cannot be built, installed or run.
    """
    # A copy: a build folder left in the checkout would put modules that are gone into the wheel.
    skipped = shutil.ignore_patterns(".*", "build", "dist", "*.egg-info", "__pycache__", "tests")
    source = shutil.copytree(ROOT, folder / "source", symlinks=True, ignore=skipped)
    run(folder, sys.executable, "-m", "build", "--wheel", "--outdir", folder / "dist", source)
    (wheel,) = (folder / "dist").glob("gscope-*.whl")
    venv.create(folder / "venv", with_pip=True)
    binaries = folder / "venv" / "bin"
    pip = (binaries / "python", "-m", "pip", "install", "--quiet", "--disable-pip-version-check")
    run(folder, *pip, wheel)
    gscope = binaries / "gscope"
    version = run(folder, gscope, "--version")
    assert version.split()[-1] in wheel.name, f"the installed gscope is {version!r}"
    assert run(folder, gscope, "library").strip(), "the wheel has no library"
    assert "compdef" in run(folder, gscope, "completion", "zsh"), "the wheel has no completion"
    page = folder / "venv" / "share" / "man" / "man1" / "gscope-run.1"
    assert undated(page.read_text()) == undated(run(folder, gscope, "man", "run")), "stale page"
    assert answer(folder, gscope) == expected(), f"the rows of {CASE} are wrong"


def undated(page: str) -> list[str]:
    """The lines of a manual page without the one that has its date."""
    return [line for line in page.splitlines() if not line.startswith(".TH")]


def answer(folder: Path, gscope: Path) -> list[list[str]]:
    """The rows of the case as the installed command gives them."""
    captures = ROOT / ".." / "shared" / "captures"
    settings = (ROOT / "tests" / "golden" / CASE / "input.toml").read_text(encoding="utf-8")
    files = [part for part in settings.split('"') if ".pcap" in part]
    assert files, f"{CASE} names no capture"
    inputs = [f"lan={captures / file}" for file in files]
    query = ROOT / "tests" / "golden" / CASE / "query.gsql"
    return rows(run(folder, gscope, "replay", *inputs, "-q", query, "-o", "csv", "--quiet"))


def expected() -> list[list[str]]:
    """The rows as the reference gives them."""
    return rows((ROOT / "tests" / "golden" / CASE / "expected.csv").read_text(encoding="utf-8"))


def rows(text: str) -> list[list[str]]:
    """The rows below the heading, sorted."""
    return sorted(csv.reader(text.splitlines()[1:]))


def run(folder: Path, *words: str | Path) -> str:
    """Standard output of a command that knows nothing of the checkout."""
    environment = {k: v for k, v in os.environ.items() if k not in ("PYTHONPATH", "VIRTUAL_ENV")}
    done = subprocess.run(
        [str(word) for word in words],
        cwd=folder,
        env=environment,
        capture_output=True,
        text=True,
        check=True,
    )
    return done.stdout


if __name__ == "__main__":
    sys.exit(main())
