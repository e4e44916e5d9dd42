"""The files of a release: what stops one, and that they have the same bytes when built again."""

from __future__ import annotations

import hashlib
import importlib.util
import subprocess
import tarfile
from typing import TYPE_CHECKING

import pytest
from tests.support.requirements import ROOT

from gscope import __version__

if TYPE_CHECKING:
    from pathlib import Path
    from types import ModuleType

PLACES = ("src/gscope/__init__.py", "CHANGELOG.md", "packaging/debian/changelog")


def release_module() -> ModuleType:
    spec = importlib.util.spec_from_file_location("release", ROOT / "packaging" / "release.py")
    assert spec
    assert spec.loader
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


RELEASE = release_module()


def git(folder: Path, *words: str) -> None:
    settings = ("-c", "user.name=t", "-c", "user.email=t@example.org")
    subprocess.run(["git", *settings, *words], cwd=folder, check=True, capture_output=True)


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    """A checkout of version 1.2.3, with the files that state it."""
    git(tmp_path, "init")
    texts = ('__version__ = "1.2.3"\n', "# Changelog\n\n## 1.2.3\n", "gscope (1.2.3-1) x; y\n")
    for path, text in zip(PLACES, texts, strict=True):
        (tmp_path / path).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / path).write_text(text)
    git(tmp_path, "add", ".")
    git(tmp_path, "commit", "-m", "x")
    return tmp_path


def test_a_clean_checkout_with_one_version_is_ready(checkout: Path) -> None:
    assert RELEASE.problems(checkout, "1.2.3") == []


def test_changes_stop_a_release(checkout: Path) -> None:
    (checkout / "new").touch()
    assert "the checkout has changes" in RELEASE.problems(checkout, "1.2.3")[0]


@pytest.mark.parametrize("path", PLACES)
def test_another_version_stops_a_release(checkout: Path, path: str) -> None:
    text = (checkout / path).read_text().replace("1.2.3", "1.2.2")
    (checkout / path).write_text(text)
    git(checkout, "commit", "-am", "y")
    assert RELEASE.problems(checkout, "1.2.3") == [f"{path} has the version 1.2.2, not 1.2.3"]


def test_a_tag_that_exists_and_a_version_of_another_form_stop_a_release(checkout: Path) -> None:
    git(checkout, "tag", "v1.2.3")
    assert RELEASE.problems(checkout, "1.2.3") == ["the tag v1.2.3 exists"]
    assert RELEASE.problems(checkout, "v1.2")[0].startswith("invalid version")


def test_the_project_states_its_version_where_the_script_looks() -> None:
    stated = [problem for problem in RELEASE.problems(ROOT, __version__) if "nothing" in problem]
    assert stated == []


@pytest.mark.parametrize("seconds", [0, 7])
def test_a_normalised_sdist_depends_on_names_contents_and_the_epoch_only(
    tmp_path: Path, seconds: int
) -> None:
    sdist = tmp_path / "x.tar.gz"
    names = ["b", "a"] if seconds else ["a", "b"]
    with tarfile.open(sdist, "w:gz") as archive:
        for name in names:
            (tmp_path / name).write_text(name)
            member = archive.gettarinfo(str(tmp_path / name), arcname=f"x/{name}")
            member.mtime, member.uid, member.uname = 1000 + seconds, seconds, f"user{seconds}"
            with (tmp_path / name).open("rb") as file:
                archive.addfile(member, file)
    RELEASE.normalise(sdist, 5)
    with tarfile.open(sdist) as archive:
        found = [(each.name, each.mtime, each.uid, each.mode) for each in archive]
        assert archive.extractfile("x/b").read() == b"b"  # type: ignore[union-attr]
    assert found == [("x/a", 5, 0, 0o644), ("x/b", 5, 0, 0o644)]
    assert sdist.read_bytes()[4:8] == (5).to_bytes(4, "little")


def test_other_bytes_and_missing_files_are_found(tmp_path: Path) -> None:
    for folder in ("1", "2"):
        (tmp_path / folder).mkdir()
        (tmp_path / folder / "same").write_text("s")
        (tmp_path / folder / "other").write_text(folder)
    (tmp_path / "1" / "alone").touch()
    assert RELEASE.different(tmp_path / "1", tmp_path / "2") == ["alone", "other"]
    (line,) = RELEASE.checksums(tmp_path / "2").splitlines()[1:]
    assert line == f"{hashlib.sha256(b's').hexdigest()}  same"


@pytest.mark.long
def test_wheel_and_sdist_are_built_twice_with_the_same_bytes(tmp_path: Path) -> None:
    for name in ("1", "2"):
        RELEASE.build_all(tmp_path / name, 1_700_000_000, with_deb=False)
    folders = [tmp_path / name / "dist" for name in ("1", "2")]
    assert sorted(path.suffix for path in folders[0].iterdir()) == [".gz", ".whl"]
    assert RELEASE.different(*folders) == []
