"""Generated files.

Private, named by content, and somewhere else when the cache cannot be written.
"""

from __future__ import annotations

import os
import stat
import subprocess
import sys
import threading
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from tests.capture.lfta.lfta_builders import aggregation, count, epoch_of, field, flow, partial

from gscope.capture.lfta import cache
from gscope.capture.lfta.cache import load_kernel
from gscope.capture.lfta.runtime import LftaRuntime
from gscope.capture.lfta.settings import LftaSettings
from gscope.errors import UnsupportedError
from gscope.queries.catalog.aggregate.partial_op import PartialOp
from gscope.queries.expressions.expressions import Call, Column, NamedExpression
from gscope.queries.expressions.types import GsqlType

if TYPE_CHECKING:
    from gscope.queries.expressions.expressions import Expression


def test_a_kernel_is_a_private_file_of_readable_source(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    kernel = load_kernel([flow()])
    assert kernel.path.is_relative_to(tmp_path / "gscope" / "lfta")
    assert stat.S_IMODE(kernel.path.parent.stat().st_mode) == 0o700
    assert "def lfta_0(" in kernel.path.read_text()
    assert load_kernel([flow()]).path == kernel.path
    assert load_kernel([flow("other")]).path != kernel.path


def test_a_kernel_does_not_depend_on_the_order_of_queries(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    first, second = flow("first"), aggregation([epoch_of()], [count()])
    kernel, same = load_kernel([first, second]), load_kernel([second, first])
    assert kernel.path == same.path
    assert kernel.lftas == same.lftas
    assert kernel.slot_bytes == same.slot_bytes


def test_streams_keep_the_order_of_the_queries_all_the_same() -> None:
    lftas = [flow("second"), flow("first")]
    runtime = LftaRuntime(lftas, "main", LftaSettings(), load_kernel(lftas), lambda *_: None)
    assert list(runtime.heartbeat(10**9)) == ["second", "first"]


@pytest.mark.parametrize("has_compiled", [False, True])
def test_the_cache_is_pruned_where_it_has_grown(
    has_compiled: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.delenv("NUMBA_CACHE_DIR", raising=False)
    monkeypatch.setattr(cache, "has_compiled", lambda: has_compiled)
    leftover = tmp_path / "gscope" / "lfta" / "tmpab12_x9z.tmp"
    leftover.parent.mkdir(mode=0o700, parents=True)
    leftover.touch()
    os.utime(leftover, (1, 1))
    cache.prune_kernels()
    for thread in threading.enumerate():
        if thread.name == "prune kernels":
            thread.join()
    assert leftover.exists() is not has_compiled


def test_a_cache_that_is_no_folder_is_replaced_by_a_private_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "gscope").write_text("in the way")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    path = load_kernel([flow()]).path
    assert not path.is_relative_to(tmp_path)
    assert stat.S_IMODE(path.parent.stat().st_mode) == 0o700


def test_a_cache_that_others_can_write_is_not_used(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / "gscope" / "lfta"
    folder.mkdir(parents=True)
    folder.chmod(0o777)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    assert not load_kernel([flow()]).path.is_relative_to(tmp_path)


def test_a_file_that_was_tampered_with_is_written_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    path = load_kernel([flow("tampered")]).path
    path.write_text("raise SystemExit")
    cache.load_kernel([flow("tampered")])
    assert "raise SystemExit" not in path.read_text()


@pytest.mark.parametrize(
    "argument",
    [
        field("data"),
        field("no_such_field"),
        Column("x", GsqlType.INT, is_nullable=False),
        Call("str_regex_match", (field("data"),), GsqlType.BOOL, is_nullable=True),
    ],
)
def test_what_kernels_do_not_have_is_refused(argument: Expression) -> None:
    with pytest.raises(UnsupportedError):
        load_kernel([aggregation([epoch_of(), NamedExpression("k", argument)], [count()])])


def test_string_aggregates_and_epochs_without_order_are_refused() -> None:
    with pytest.raises(UnsupportedError, match="STRING"):
        load_kernel([aggregation([epoch_of()], [partial("m", PartialOp.MIN, field("data"))])])
    address = NamedExpression("tb", field("srcIP"))
    with pytest.raises(UnsupportedError, match="not an increasing integer"):
        load_kernel([aggregation([address], [count()])])


def test_the_source_of_a_query_set_does_not_depend_on_the_process() -> None:
    text = """
    Query a: SELECT time, srcIP FROM TCP WHERE destPort = 80 AND len > 5 AND ttl < 9;
    Query b: SELECT time, destIP FROM TCP WHERE destPort = 80 AND len > 5 AND ttl < 9
    """
    program = f"""
from gscope.capture.lfta.codegen.generate import generate
from gscope.queries.compile import QueryText, CompileContext, compile_queries
compiled = compile_queries([QueryText({text!r}, "set")], CompileContext(("main",)))
print(generate(compiled.program.lftas).source)
"""
    sources = {
        subprocess.run(
            [sys.executable, "-c", program],
            env={**os.environ, "PYTHONHASHSEED": seed},
            capture_output=True,
            check=True,
        ).stdout
        for seed in ("1", "2", "3", "4")
    }
    assert len(sources) == 1


def test_a_folder_that_takes_the_place_of_the_users_is_removed(tmp_path: Path) -> None:
    """Of this process when it ends, and of one that was killed by the next that needs one."""
    (tmp_path / "cache").write_text("no folder")
    (tmp_path / f"gscope-{os.geteuid()}").write_text("no folder either")
    killed = tmp_path / f"gscope-lfta-{2**22 + 7}-x"
    (killed / "inside").mkdir(parents=True)
    kept = [tmp_path / "gscope-lfta-1-x", tmp_path / "gscope-lfta-mine"]
    for folder in kept:
        folder.mkdir()
    code = (
        "from gscope.capture.lfta import cache\n"
        "path = cache._write('test', 'x = 1')\n"
        "assert path.exists()\n"
        "print(path.parent)\n"
    )
    environment = {
        **os.environ,
        "XDG_CACHE_HOME": str(tmp_path / "cache"),
        "TMPDIR": str(tmp_path),
    }
    done = subprocess.run(
        [sys.executable, "-c", code], env=environment, capture_output=True, check=True, text=True
    )
    used = Path(done.stdout.strip())
    assert used.parent == tmp_path
    assert sorted(tmp_path.glob("gscope-lfta-*")) == sorted(kept)
