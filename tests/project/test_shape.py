"""The shape of the project: links, layers, homes of heavy libraries, file sizes, docstrings."""

from __future__ import annotations

import ast
import re
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from collections.abc import Iterator

ROOT = Path(__file__).parents[2]
ROOMS = ("queries", "capture", "engine", "cli")
MAX_LINES = 500
MAY_IMPORT = {
    "queries": {"queries"},
    "capture": {"queries", "capture"},
    "engine": {"queries", "engine"},
    "cli": {"queries", "capture", "engine", "cli"},
}
HOMES = {
    "numba": ("capture/kernels/numba_kernels.py", "engine/sampling/jit.py"),
    "llvmlite": (
        "capture/kernels/kept.py",
        "capture/kernels/language/intrinsic_code.py",
        "capture/kernels/native/",
    ),
    "pyspark": ("engine/spark/",),
    "py4j": ("engine/spark/",),
    "click": ("cli/",),
    "rich": ("cli/",),
    "scapy": ("capture/sources/",),
    "dpkt": ("engine/functions/",),
    "lz4": ("capture/sources/files/compressed.py", "capture/sources/nfcapd/unpack.py"),
    "zstandard": ("capture/sources/files/compressed.py", "capture/sources/nfcapd/unpack.py"),
    "yaml": ("cli/config/yaml_file.py", "engine/lookups/networks_file.py"),
    "prometheus_client": ("cli/status/", "cli/session/session.py", "cli/outlets/row_gauges.py"),
    "confluent_kafka": ("cli/outlets/",),
    "vl_convert": ("cli/report/plot.py",),
    "lark": ("queries/gsql/",),
}
"""The only places that may import a heavy library; its types may be named elsewhere."""


def modules() -> list[Path]:
    return sorted(path for room in ROOMS for path in (ROOT / room).rglob("*.py"))


def named(path: Path) -> str:
    return path.relative_to(ROOT).as_posix()


MODULES = modules()


def parsed(path: Path) -> ast.Module:
    return ast.parse(path.read_text(encoding="utf-8"))


def imports(path: Path, *, types: bool = True) -> Iterator[str]:
    """The dotted names of everything ``path`` imports, wherever in it.

    With or without types only.
    """
    for node in statements(parsed(path), types=types):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{named(path)}:{node.lineno} imports relatively"
            assert node.module
            yield from (f"{node.module}.{alias.name}" for alias in node.names)


def statements(tree: ast.AST, *, types: bool) -> Iterator[ast.AST]:
    for node in ast.iter_child_nodes(tree):
        if types or not (isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING"):
            yield node
            yield from statements(node, types=types)


@pytest.mark.parametrize("room", ROOMS)
def test_rooms_are_relative_links(room: str) -> None:
    link = ROOT / "src" / "gscope" / room
    assert link.is_symlink()
    assert link.readlink() == Path("..", "..", room)
    assert link.resolve() == (ROOT / room).resolve()


def test_the_package_holds_nothing_else() -> None:
    names = {path.name for path in (ROOT / "src" / "gscope").iterdir()} - {"__pycache__"}
    assert names == {"__init__.py", "__main__.py", "errors.py", "py.typed", "records.py", *ROOMS}


def test_imports_point_one_way() -> None:
    wrong = []
    for path in MODULES:
        room = path.relative_to(ROOT).parts[0]
        for name in imports(path):
            parts = name.split(".")
            is_foreign = parts[0] == "gscope" and len(parts) > 1 and parts[1] in ROOMS
            if parts[0] in ROOMS or (is_foreign and parts[1] not in MAY_IMPORT[room]):
                wrong.append(f"{named(path)} imports {name}")
    assert wrong == []


def test_heavy_libraries_stay_at_home() -> None:
    wrong = [
        f"{named(path)} imports {name}"
        for path in MODULES
        for name in imports(path, types=False)
        if not named(path).startswith(HOMES.get(name.split(".")[0], ("",)))
    ]
    assert wrong == []


def test_every_module_says_what_it_is() -> None:
    assert [named(path) for path in MODULES if not ast.get_docstring(parsed(path))] == []


def test_an_init_holds_a_docstring_only() -> None:
    inits = [path for path in MODULES if path.name == "__init__.py"]
    assert [named(path) for path in inits if len(parsed(path).body) != 1] == []


def test_every_folder_of_modules_is_a_package() -> None:
    folders = {path.parent for path in MODULES}
    assert [named(folder) for folder in folders if not (folder / "__init__.py").exists()] == []


def test_no_file_is_longer_than_500_lines() -> None:
    files = [*MODULES, *(ROOT / "tests").rglob("*.py"), *(ROOT / "benchmarks").rglob("*.py")]
    lengths = {named(path): len(path.read_text(encoding="utf-8").splitlines()) for path in files}
    assert {name: lines for name, lines in lengths.items() if lines > MAX_LINES} == {}


def test_what_tests_need_of_a_machine_is_asked_in_one_place() -> None:
    asking = re.compile(r"\b(skipif|importorskip|xfail)\(|\b(pytest|mark)\.skip\b")
    asked = {
        path.relative_to(ROOT).as_posix()
        for path in (ROOT / "tests").rglob("*.py")
        if asking.search(path.read_text(encoding="utf-8"))
    }
    assert asked == {"tests/support/requirements.py"}
