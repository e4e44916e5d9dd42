from __future__ import annotations

import os
import select
import signal
import stat
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

from gscope.engine.spark.jvm.gateway import launch_jvm
from gscope.engine.spark.jvm.java import Java, find_java
from gscope.engine.spark.jvm.jvm_settings import JvmSettings
from gscope.errors import EngineError

if TYPE_CHECKING:
    from pathlib import Path


def scripted_java(tmp_path: Path, script: str) -> Java:
    """A launcher that does what ``script`` says in place of Java."""
    launcher = tmp_path / "home" / "bin" / "java"
    launcher.parent.mkdir(parents=True)
    launcher.write_text(f"#!/bin/sh\n{script}\n")
    launcher.chmod(0o755)
    return Java(tmp_path / "home", "17.0.1", "scripted", "JAVA_HOME")


# What Spark does: the file complete under another name, the rename, then a read of the input.
SHAKES_HANDS = """\
file=$_PYSPARK_DRIVER_CONN_INFO_PATH
printf '\\000\\000\\030\\033\\000\\000\\000\\004abcd' > "$file.new"
mv "$file.new" "$file"
cat > /dev/null
"""


def test_the_gateway_is_known_when_the_jvm_starts_to_read(tmp_path: Path) -> None:
    with launch_jvm(JvmSettings(scripted_java(tmp_path, SHAKES_HANDS)), tmp_path) as jvm:
        address = jvm.gateway(10)
        assert (address.port, address.secret) == (6171, "abcd")
        assert "abcd" not in repr(address)
        assert jvm.gateway() is address


def test_the_private_folder_is_private_and_removed(tmp_path: Path) -> None:
    with launch_jvm(JvmSettings(scripted_java(tmp_path, SHAKES_HANDS)), tmp_path) as jvm:
        assert stat.S_IMODE(jvm.directory.stat().st_mode) == 0o700
        assert jvm.directory.parent == tmp_path
    assert not jvm.directory.exists()
    jvm.stop()


def test_a_jvm_that_dies_is_reported_with_its_last_words(tmp_path: Path) -> None:
    java = scripted_java(tmp_path, "echo out of luck >&2; exit 3")
    with (
        launch_jvm(JvmSettings(java), tmp_path) as jvm,
        pytest.raises(EngineError, match="code 3: out of luck"),
    ):
        jvm.gateway(10)


def test_a_jvm_that_crashes_on_its_archive_is_started_again_without(tmp_path: Path) -> None:
    archive = tmp_path / "a.jsa"
    archive.touch()
    java = scripted_java(
        tmp_path, f'case "$*" in *SharedArchiveFile*) kill -SEGV $$;; esac\n{SHAKES_HANDS}'
    )
    with launch_jvm(JvmSettings(java, archive=archive), tmp_path) as jvm:
        assert jvm.gateway(10).port == 6171
        assert jvm.settings.archive is None
    assert not archive.exists()


def test_a_jvm_that_is_never_ready_is_given_up(tmp_path: Path) -> None:
    java = scripted_java(tmp_path, "exec tail -f /dev/null")
    with (
        launch_jvm(JvmSettings(java), tmp_path) as jvm,
        pytest.raises(EngineError, match=r"not ready after 0.05 s"),
    ):
        jvm.gateway(0.05)
    assert jvm.wait() == -signal.SIGKILL


def test_a_stopped_jvm_has_no_gateway(tmp_path: Path) -> None:
    jvm = launch_jvm(JvmSettings(scripted_java(tmp_path, SHAKES_HANDS)), tmp_path)
    jvm.stop()
    with pytest.raises(EngineError, match="stopped before"):
        jvm.gateway(1)


def test_a_grace_lets_the_jvm_end_by_itself(tmp_path: Path) -> None:
    jvm = launch_jvm(JvmSettings(scripted_java(tmp_path, SHAKES_HANDS + "exit 5")), tmp_path)
    jvm.gateway(10)
    jvm.stop(grace_s=10)
    assert jvm.wait() == 5


def test_settings_of_another_spark_do_not_reach_the_jvm(tmp_path: Path) -> None:
    java = scripted_java(tmp_path, f'env > "{tmp_path}/env"\n{SHAKES_HANDS}')
    environ = {**os.environ, "SPARK_CONF_DIR": "/elsewhere", "PYSPARK_SUBMIT_ARGS": "--bad"}
    with launch_jvm(JvmSettings(java), tmp_path, environ=environ) as jvm:
        jvm.gateway(10)
    seen = (tmp_path / "env").read_text()
    assert "SPARK_CONF_DIR" not in seen
    assert "PYSPARK_SUBMIT_ARGS" not in seen
    assert "SPARK_LOCAL_IP=127.0.0.1" in seen


def test_a_missing_launcher_is_an_error_of_the_engine(tmp_path: Path) -> None:
    java = Java(tmp_path / "none", "17", "x", "JAVA_HOME")
    with pytest.raises(EngineError, match="could not be started"):
        launch_jvm(JvmSettings(java), tmp_path)


def test_a_tiny_heap_is_refused(tmp_path: Path) -> None:
    java = Java(tmp_path, "17", "x", "JAVA_HOME")
    with pytest.raises(EngineError, match="too small for Spark"):
        launch_jvm(JvmSettings(java, heap_bytes=1 << 20), tmp_path)


OWNER = """\
import pathlib, sys
from gscope.engine.spark.jvm.java import find_java
from gscope.engine.spark.jvm.gateway import launch_jvm
from gscope.engine.spark.jvm.jvm_settings import JvmSettings
jvm = launch_jvm(JvmSettings(find_java()), pathlib.Path(sys.argv[1]))
jvm.gateway()
print(jvm.pid, flush=True)
sys.stdin.read()
"""


@pytest.mark.spark
def test_the_real_jvm_survives_ctrl_c_and_dies_with_its_killed_owner(tmp_path: Path) -> None:
    find_java()
    with subprocess.Popen(
        [sys.executable, "-c", OWNER, str(tmp_path)], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as owner:
        assert owner.stdout is not None
        jvm = int(owner.stdout.readline())
        assert os.getpgid(jvm) != os.getpgid(owner.pid)
        handle = os.pidfd_open(jvm)
        try:
            owner.kill()
            owner.wait()
            ended = select.poll()
            ended.register(handle, select.POLLIN)
            assert ended.poll(20_000)
        finally:
            os.close(handle)
