"""Java's log is bounded while Java holds it open."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from gscope.engine.spark.jvm import jvm_log as module
from gscope.engine.spark.jvm.jvm_log import KEPT_FILES, bound_log

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path
    from typing import BinaryIO


@pytest.fixture
def log(tmp_path: Path) -> Path:
    return tmp_path / "jvm.log"


@pytest.fixture
def java(log: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[BinaryIO]:
    """Its end of the log."""
    monkeypatch.setattr(module, "MAX_FILE_BYTES", 10)
    with log.open("ab", buffering=0) as file:
        yield file


def kept(log: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in log.parent.iterdir()}


def test_a_short_log_stays_as_it_is(log: Path, java: BinaryIO) -> None:
    java.write(b"123456789")
    bound_log(log)
    assert kept(log) == {"jvm.log": b"123456789"}


def test_what_is_written_later_is_in_the_same_file(log: Path, java: BinaryIO) -> None:
    java.write(b"0123456789")
    bound_log(log)
    java.write(b"later")
    assert kept(log) == {"jvm.log": b"later", "jvm.log.1": b"0123456789"}


def test_only_the_latest_are_kept(log: Path, java: BinaryIO) -> None:
    for number in range(9):
        java.write(b"%10d" % number)
        bound_log(log)
    assert kept(log) == {
        "jvm.log": b"",
        **{f"jvm.log.{age}": b"%10d" % (9 - age) for age in range(1, KEPT_FILES + 1)},
    }


def test_of_a_flood_the_end_is_kept(log: Path, java: BinaryIO) -> None:
    java.write(b"flood" * 1000 + b"the end...")
    bound_log(log)
    assert kept(log) == {"jvm.log": b"", "jvm.log.1": b"the end..."}


def test_what_cannot_be_kept_is_bounded_all_the_same(log: Path, java: BinaryIO) -> None:
    log.with_name("jvm.log.1").mkdir()
    log.with_name("jvm.log.2").mkdir()
    (log.with_name("jvm.log.2") / "in the way").touch()
    java.write(b"0123456789")
    bound_log(log)
    assert log.read_bytes() == b""


def test_a_log_that_is_not_there_is_none_of_its_business(log: Path) -> None:
    bound_log(log)
