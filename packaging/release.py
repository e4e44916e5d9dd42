"""Build the files of a release from a clean checkout, twice, and print how to tag it.

``python packaging/release.py VERSION`` writes a wheel, an sdist, a Debian package for the running
release of Debian, and their checksums to ``build/release``. It pushes and tags nothing.
"""

from __future__ import annotations

import argparse
import gzip
import hashlib
import io
import os
import re
import shlex
import shutil
import subprocess
import sys
import tarfile
import tempfile
from pathlib import Path
from typing import NoReturn

ROOT = Path(__file__).resolve().parents[1]


def main() -> None:
    """Check, build and compare; end with 1 and a sentence if something is wrong."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("version", metavar="VERSION")
    parser.add_argument("--to", type=Path, default=ROOT / "build" / "release", metavar="FOLDER")
    parser.add_argument("--no-check", action="store_true", help="do not run `make check`")
    parser.add_argument("--no-deb", action="store_true", help="build no Debian package")
    options = parser.parse_args()
    for problem in problems(ROOT, options.version):
        fail(problem)
    if not options.no_check:
        run("make", "check", cwd=ROOT)
    options.to.mkdir(parents=True, exist_ok=True)
    if any(options.to.iterdir()):
        fail(f"{options.to} is not empty")
    epoch = run("git", "log", "-1", "--format=%ct", cwd=ROOT).strip()
    with tempfile.TemporaryDirectory(prefix="gscope-release-") as folder:
        builds = [Path(folder) / name for name in ("first", "other-place")]
        for build in builds:
            build_all(build, int(epoch), with_deb=not options.no_deb)
        for name in different(*(build / "dist" for build in builds)):
            fail(f"{name} has other bytes when it is built again")
        for file in sorted((builds[0] / "dist").iterdir()):
            shutil.copy2(file, options.to)
    sums = checksums(options.to)
    (options.to / "SHA256SUMS").write_text(sums, encoding="ascii")
    sys.stdout.write(f"{sums}\nThe files are in {options.to}. To tag and publish them:\n\n")
    sys.stdout.write("".join(f"  {line}\n" for line in commands(options.version)))


def problems(root: Path, version: str) -> list[str]:
    """Return why a checkout is not ready for the release of a version; empty if it is."""
    found = []
    if run("git", "status", "--porcelain", cwd=root):
        found.append("the checkout has changes: commit them, or remove them")
    if not re.fullmatch(r"\d+\.\d+\.\d+", version):
        found.append(f"invalid version: expected N.N.N, got {version}")
    places = {
        "src/gscope/__init__.py": r'^__version__ = "(.*)"$',
        "CHANGELOG.md": r"^## (.*)$",
        "packaging/debian/changelog": r"^gscope \((.*)-\d+\)",
    }
    for path, pattern in places.items():
        match = re.search(pattern, (root / path).read_text(encoding="utf-8"), re.MULTILINE)
        stated = match[1] if match else "nothing"
        if stated != version:
            found.append(f"{path} has the version {stated}, not {version}")
    if version in run("git", "tag", "--list", "v*", cwd=root).replace("v", "").split():
        found.append(f"the tag v{version} exists")
    return found


def build_all(folder: Path, epoch: int, *, with_deb: bool) -> None:
    """Build all files of the last commit into ``folder/dist``, from a copy in ``folder``."""
    source, dist = folder / "source", folder / "dist"
    run("git", "clone", "--quiet", "--local", ROOT, source, cwd=ROOT)
    environment = {"SOURCE_DATE_EPOCH": str(epoch), "LC_ALL": "C.UTF-8", "TZ": "UTC"}
    build = (sys.executable, "-m", "build", "--outdir", dist)
    run(*build, "--sdist", source, cwd=folder, environment=environment)
    (sdist,) = dist.glob("*.tar.gz")
    normalise(sdist, epoch)
    # From the sdist, so that it has what the wheel needs.
    unpacked = folder / "unpacked"
    with tarfile.open(sdist) as archive:
        archive.extractall(unpacked, filter="data")
    run(*build, "--wheel", *unpacked.iterdir(), cwd=folder, environment=environment)
    if with_deb:
        run(source / "packaging" / "build-deb.sh", dist, cwd=source, environment=environment)


def normalise(sdist: Path, epoch: int) -> None:
    """Write an sdist again with sorted names, one time, and no user.

    Setuptools has those of now.
    """
    with tarfile.open(sdist) as archive:
        members = sorted(archive.getmembers(), key=lambda member: member.name)
        contents = {
            member.name: archive.extractfile(member).read()  # type: ignore[union-attr]
            for member in members
            if member.isfile()
        }
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w", format=tarfile.PAX_FORMAT) as archive:
        for member in members:
            kept = tarfile.TarInfo(member.name)
            kept.type, kept.linkname, kept.mtime = member.type, member.linkname, epoch
            kept.mode = 0o755 if member.isdir() or member.mode & 0o100 else 0o644
            content = contents.get(member.name, b"")
            kept.size = len(content)
            archive.addfile(kept, io.BytesIO(content))
    sdist.write_bytes(gzip.compress(packed.getvalue(), mtime=epoch))


def different(first: Path, second: Path) -> list[str]:
    """Return the names of files that are missing in one of two folders or have other bytes."""
    names = {path.name for folder in (first, second) for path in folder.iterdir()}
    return sorted(name for name in names if digest(first / name) != digest(second / name))


def digest(path: Path) -> str:
    """Return the SHA-256 of a file; empty if it is missing."""
    if not path.exists():
        return ""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def checksums(folder: Path) -> str:
    """Return a line for each file, which ``sha256sum --check`` reads."""
    return "".join(f"{digest(path)}  {path.name}\n" for path in sorted(folder.iterdir()))


def commands(version: str) -> list[str]:
    """Return what is left to type."""
    return [
        f"git tag --annotate v{version} --message 'gscope {version}'",
        f"git push origin v{version}",
    ]


def run(*words: str | Path | int, cwd: Path, environment: dict[str, str] | None = None) -> str:
    """Run a command; return what it prints, end with its errors if it fails."""
    typed = [str(word) for word in words]
    done = subprocess.run(
        typed,
        cwd=cwd,
        env={**os.environ, **(environment or {})},
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode:
        fail(f"{shlex.join(typed)} failed:\n{(done.stdout + done.stderr)[-4000:]}")
    return done.stdout


def fail(message: str) -> NoReturn:
    """End with a message."""
    sys.stderr.write(f"release: {message}\n")
    raise SystemExit(1)


if __name__ == "__main__":
    main()
