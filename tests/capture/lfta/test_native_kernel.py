"""Machine code of kernels is kept beside their source, and made again where it cannot be used."""

from __future__ import annotations

import functools
import gc
import stat
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest
from tests.capture.lfta.lfta_builders import block_of, flow, ipv4, udp
from tests.capture.lfta.lfta_collect import answer, compiled, interpreted, run
from tests.support.requirements import ROOT

from gscope.capture.kernels import kept_module
from gscope.capture.kernels.compiling import has_compiled
from gscope.capture.kernels.kept_module import KeptModule
from gscope.capture.kernels.native import machine_code
from gscope.capture.lfta import cache, native_kernel
from gscope.capture.lfta.cache import load_kernel
from gscope.capture.lfta.kernel_assembly import KernelTranslator
from gscope.capture.lfta.native_kernel import DECODER_SOURCE
from gscope.capture.lfta.settings import LftaSettings

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path


@pytest.fixture
def compilations(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The names of the modules compiled, with a cache of this test's own."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    compile_module = native_kernel._kernel_assembly
    names: list[str] = []

    def counted(kernel: Callable[[], KernelTranslator]) -> str:
        names.append(kernel().name)
        return compile_module(kernel)

    monkeypatch.setattr(native_kernel, "_kernel_assembly", counted)
    monkeypatch.setattr(kept_module, "machine_code", _optimized)
    return names


_optimized = functools.cache(machine_code.machine_code)


def files() -> list[Path]:
    """The files of machine code, without that of the decoder."""
    decoder = cache._name(DECODER_SOURCE)
    found = sorted(cache._user_folder().glob("*.o"))
    return [path for path in found if not path.name.startswith(f"lfta_{decoder}")]


def test_a_kernel_is_compiled_once(compilations: list[str]) -> None:
    kernel = load_kernel([flow("kept")])
    (file,) = files()
    assert file.name == f"{kernel.path.stem}.{machine_code.processor()}.o"
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    assert load_kernel([flow("kept")]).tiers.functions.address is not None
    assert len(compilations) == 1
    assert has_compiled()


def test_threads_take_turns_as_before_when_a_kernel_is_compiled(compilations: list[str]) -> None:
    usual = sys.getswitchinterval()
    sys.setswitchinterval(0.25)
    try:
        load_kernel([flow("kept")])
        assert len(compilations) == 1
        assert sys.getswitchinterval() == pytest.approx(0.25)
    finally:
        sys.setswitchinterval(usual)


def test_another_processor_has_code_of_its_own(
    compilations: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    load_kernel([flow("kept")])
    monkeypatch.setattr(kept_module, "processor", lambda: "0" * 16)
    load_kernel([flow("kept")])
    assert len(compilations) == len(files()) == 2


def test_each_of_several_lftas_is_a_module_of_its_own(compilations: list[str]) -> None:
    """If one of the files is missing, only that is compiled again."""
    kernel = load_kernel([flow("first"), flow("second"), flow("third")])
    stem = f"{kernel.path.stem}.{machine_code.processor()}"
    assert {path.name for path in files()} == {
        f"{stem}.o",
        f"{stem}.0.o",
        f"{stem}.1.o",
        f"{stem}.2.o",
    }
    (missing,) = (path for path in files() if path.name.endswith(".1.o"))
    code = missing.read_bytes()
    unchanged = {path: path.stat().st_ino for path in files() if path != missing}
    missing.unlink()
    load_kernel([flow("first"), flow("second"), flow("third")])
    assert missing.read_bytes() == code
    assert {path: path.stat().st_ino for path in files() if path != missing} == unchanged
    assert len(compilations) == 1


@pytest.mark.parametrize("damage", ["cut", "flipped", "empty", "foreign"])
def test_a_damaged_file_is_made_again(damage: str, compilations: list[str]) -> None:
    load_kernel([flow("kept")])
    (file,) = files()
    whole = file.read_bytes()
    changed = bytearray(whole)
    changed[len(whole) // 2] ^= 1
    contents = {"cut": whole[:-1], "flipped": bytes(changed), "empty": b"", "foreign": b"x" * 999}
    file.write_bytes(contents[damage])
    load_kernel([flow("kept")])
    assert len(compilations) == 2
    assert file.read_bytes() == whole


def test_a_file_that_others_can_write_is_not_loaded(compilations: list[str]) -> None:
    load_kernel([flow("kept")])
    (file,) = files()
    file.chmod(0o666)
    load_kernel([flow("kept")])
    assert len(compilations) == 2


def test_a_cache_that_cannot_be_written_only_costs_time(
    compilations: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_arguments: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(kept_module, "_keep", full)
    for _ in range(2):
        assert load_kernel([flow("kept")]).tiers.functions.address is not None
    assert len(compilations) == 2
    assert not files()


@pytest.mark.long
def test_numba_gives_the_rows_of_the_machine_code(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Kernels that call user functions are compiled by numba, from the same source."""
    lfta = flow("either")
    packets = [(1, ipv4(n % 5, 2, udp(n % 3, 4))) for n in range(1000)]
    monkeypatch.setattr(cache, "checks_bounds", lambda: True)
    by_numba, _ = run(compiled(LftaSettings()), [lfta], [block_of(packets)], [])
    monkeypatch.setattr(cache, "checks_bounds", lambda: False)
    native, _ = run(compiled(LftaSettings()), [lfta], [block_of(packets)], [])
    expected, _ = run(interpreted(groups=5), [lfta], [block_of(packets)], [])
    assert answer(lfta, by_numba["either"]) == answer(lfta, native["either"])
    assert answer(lfta, native["either"]) == answer(lfta, expected["either"])


def test_the_code_of_a_kernel_does_not_depend_on_the_process() -> None:
    """The same source gives the same LLVM assembly; names of functions do not depend on hashes."""
    text = load_kernel([flow("kept")]).path.read_text()
    first, second = (KernelTranslator("kept", text).kernel() for _ in range(2))
    assert first == second


@pytest.mark.parametrize("is_enabled", [False, True])
def test_no_garbage_is_collected_while_a_kernel_is_translated(
    is_enabled: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    found: list[bool] = []
    translate = KeptModule.translate

    def noted(module: KeptModule) -> None:
        found.append(gc.isenabled())
        translate(module)

    monkeypatch.setattr(KeptModule, "translate", noted)
    was_enabled = gc.isenabled()
    try:
        gc.enable() if is_enabled else gc.disable()
        load_kernel([flow()])
        assert gc.isenabled() is is_enabled
    finally:
        gc.enable() if was_enabled else gc.disable()
    assert found
    assert not any(found)


def test_a_kernel_in_the_cache_is_loaded_without_the_compiler() -> None:
    program = """
import sys
from tests.capture.lfta.lfta_builders import flow
from gscope.capture.lfta.cache import load_kernel
assert load_kernel([flow()]).tiers.functions.address
found = [name for name in sys.modules if name.startswith("gscope.capture.kernels.native.")]
print(*sorted(name.rpartition(".")[2] for name in found), "numba" in sys.modules)
"""
    load_kernel([flow()])
    done = subprocess.run(
        [sys.executable, "-c", program], cwd=ROOT, capture_output=True, check=True, text=True
    )
    assert done.stdout == "machine_code False\n"
