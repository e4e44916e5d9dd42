from __future__ import annotations

import os
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

from gscope.queries.gsql.scanner import QUOTED_LITERALS, RESERVED
from gscope.queries.gsql.tables import load_tables, user_tables

if TYPE_CHECKING:
    from pathlib import Path

_PARSE = "from gscope.queries.gsql.parser import parse; print(len(parse('SELECT a FROM b').items))"


def _parse_elsewhere(**environment: str) -> str:
    ran = subprocess.run(
        [sys.executable, "-c", _PARSE],
        env={**os.environ, **environment},
        capture_output=True,
        text=True,
        check=True,
    )
    return ran.stdout + ran.stderr


def test_tables_are_kept_and_loaded_again(tmp_path: Path) -> None:
    built = load_tables(tmp_path)
    (kept,) = tmp_path.iterdir()
    written_ns = kept.stat().st_mtime_ns
    loaded = load_tables(tmp_path)
    assert list(tmp_path.iterdir()) == [kept]
    assert kept.stat().st_mtime_ns == written_ns
    assert loaded.terminals == built.terminals


def test_a_damaged_cache_is_built_again(tmp_path: Path) -> None:
    built = load_tables(tmp_path)
    (kept,) = tmp_path.iterdir()
    kept.write_bytes(kept.read_bytes()[:1000])
    assert load_tables(tmp_path).terminals == built.terminals
    kept.write_bytes(b"")
    assert load_tables(tmp_path).terminals == built.terminals


def test_a_directory_that_others_can_write_to_is_not_used(tmp_path: Path) -> None:
    tmp_path.chmod(0o777)
    load_tables(tmp_path)
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("root", ["/proc/nowhere", "/dev/null"])
def test_a_user_without_a_cache_directory_can_parse(root: str) -> None:
    assert _parse_elsewhere(XDG_CACHE_HOME=root) == "1\n"


def test_a_cache_in_the_home_directory_is_made_on_first_use(tmp_path: Path) -> None:
    assert _parse_elsewhere(XDG_CACHE_HOME="", HOME=str(tmp_path)) == "1\n"
    assert list((tmp_path / ".cache" / "gscope").glob("gsql-*.pickle"))


def test_reserved_words_are_words_of_the_grammar() -> None:
    terminals = user_tables().terminals
    assert set(terminals) >= RESERVED
    assert not QUOTED_LITERALS & set(terminals)
