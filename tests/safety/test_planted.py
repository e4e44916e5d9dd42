"""No file that another user can write is executed or unpickled.

Each is planted here, in every way that gets it there.
"""

from __future__ import annotations

import os
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest
from tests.safety.planted import OTHER, WAYS, Trap, given_away
from tests.support.requirements import needs_root

from gscope.cli.config.effective import load_config
from gscope.engine.spark.jvm.class_data_archive import archive_path, with_archive
from gscope.engine.spark.jvm.java import find_java
from gscope.engine.spark.jvm.jvm_settings import JvmSettings
from gscope.errors import UsageError
from gscope.queries.catalog.user_functions.files import read_user_file
from gscope.queries.gsql.tables import load_tables

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    Way = Callable[[Path], None]

pytestmark = needs_root

KERNEL = """
import sys
sys.path.insert(0, {folder!r})
from gscope.capture.kernels.jit import kernel
import kernel_of_this_test
print(kernel(kernel_of_this_test.twice)(21))
"""


@pytest.fixture
def trap(tmp_path: Path) -> Trap:
    return Trap(tmp_path / "sprung")


def test_the_trap_works(trap: Trap, tmp_path: Path) -> None:
    (tmp_path / "mine.py").write_text(trap.code())
    subprocess.run([sys.executable, tmp_path / "mine.py"], check=True)
    assert trap.has_sprung


def run_kernel(tmp_path: Path, cache: Path, variable: str) -> str:
    (tmp_path / "kernel_of_this_test.py").write_text("def twice(x):\n    return 2 * x\n")
    done = subprocess.run(
        [sys.executable, "-c", KERNEL.format(folder=str(tmp_path))],
        env={**os.environ, "XDG_CACHE_HOME": str(tmp_path / "none"), variable: str(cache)},
        capture_output=True,
        text=True,
        check=True,
        timeout=120,
    )
    return done.stdout


@pytest.mark.parametrize("variable", ["XDG_CACHE_HOME", "NUMBA_CACHE_DIR"])
@pytest.mark.parametrize("way", WAYS, ids=lambda way: way.__name__)
def test_a_compiled_kernel(way: Way, variable: str, trap: Trap, tmp_path: Path) -> None:
    cache = tmp_path / "private" / "cache"
    cache.parent.mkdir(mode=0o700)
    assert run_kernel(tmp_path, cache, variable) == "42\n"
    kept = [path for path in cache.rglob("*.nb?") if path.is_file()]
    assert kept
    for path in kept:
        path.write_bytes(trap.pickle())
    way(cache)
    assert run_kernel(tmp_path, cache, variable) == "42\n"
    assert not trap.has_sprung


def test_a_kernel_in_a_folder_of_ours_is_loaded(trap: Trap, tmp_path: Path) -> None:
    """Otherwise the tests above would show nothing."""
    run_kernel(tmp_path, tmp_path / "cache", "XDG_CACHE_HOME")
    for path in (tmp_path / "cache").rglob("*.nbi"):
        path.write_bytes(trap.pickle())
    run_kernel(tmp_path, tmp_path / "cache", "XDG_CACHE_HOME")
    assert trap.has_sprung


@pytest.mark.parametrize("way", WAYS, ids=lambda way: way.__name__)
def test_tables_of_the_parser(way: Way, trap: Trap, tmp_path: Path) -> None:
    cache = tmp_path / "private" / "cache"
    cache.mkdir(parents=True)
    load_tables(cache)
    (kept,) = cache.iterdir()
    kept.write_bytes(trap.pickle())
    way(cache)
    assert load_tables(cache).terminals
    assert not trap.has_sprung


@pytest.mark.parametrize("way", WAYS, ids=lambda way: way.__name__)
def test_an_archive_of_java_classes(way: Way, tmp_path: Path) -> None:
    settings = JvmSettings(find_java())
    environment = {"XDG_CACHE_HOME": str(tmp_path / "private" / "cache")}
    path = archive_path(settings, environment)
    path.parent.mkdir(parents=True)
    path.touch(mode=0o600)
    assert with_archive(settings, environment).archive == path
    way(path.parent)
    assert with_archive(settings, environment).archive is None


def test_user_code_of_another_user(trap: Trap, tmp_path: Path) -> None:
    file = tmp_path / "functions.py"
    file.write_text(trap.code())
    assert read_user_file(str(file)).text == trap.code()
    for mode, owner in ((0o602, 0), (0o644, OTHER)):
        os.chown(file, owner, owner)
        file.chmod(mode)
        with pytest.raises(UsageError, match="is not executed: "):
            read_user_file(str(file))


def test_user_code_that_only_a_group_of_ours_can_write(tmp_path: Path) -> None:
    file = tmp_path / "functions.py"
    file.write_text("")
    file.chmod(0o664)
    assert read_user_file(str(file)).text == ""
    os.chown(file, 0, OTHER)
    with pytest.raises(UsageError, match="other users can write to it"):
        read_user_file(str(file))


def test_a_configuration_in_the_working_directory(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("GSCOPE_CONFIG", raising=False)
    file = tmp_path / "gscope.yaml"
    file.write_text("strict: true\n")
    assert load_config({}, None).is_strict
    given_away(tmp_path)
    with pytest.raises(UsageError, match=r"gscope.yaml is not used: .* name it with --config"):
        load_config({}, None)
    assert load_config({}, file).is_strict


def test_modules_in_the_working_directory(trap: Trap, tmp_path: Path) -> None:
    """The supervisor's processes are started where the user is, which may be /tmp."""
    from tests.capture.replay.test_replay_capture import write_pcap
    from tests.live.test_run import udp

    names = ("numpy", "numba", "pyarrow", "click", "pyspark", "json", "queue", "random", "py4j")
    for name in names:
        (tmp_path / f"{name}.py").write_text(trap.code())
    write_pcap(tmp_path / "main.pcap", [(10**9 * n, udp(n)) for n in range(3)])
    query = "SELECT tb, count(*) AS n FROM UDP GROUP BY time/60 AS tb"
    done = subprocess.run(
        [sys.executable, "-P", "-m", "gscope", "replay", "main.pcap", "-e", query, "-o", "csv"],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
        timeout=300,
    )
    assert (done.returncode, done.stdout) == (0, "tb,n\n0,3\n"), done.stderr
    assert not trap.has_sprung
