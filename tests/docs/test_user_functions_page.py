"""The example of ``docs/user_functions.md`` answers what the page shows."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import pytest
from tests.docs.test_pages import user_files
from tests.support.gscope_command import run
from tests.support.requirements import CAPTURES, needs_captures

ROOT = Path(__file__).parents[2]
CAPTURE = CAPTURES / "ndpi-pcap-1kxun.pcap"
PAGE = (ROOT / "docs" / "user_functions.md").read_text(encoding="utf-8")

pytestmark = [
    pytest.mark.slow,
    pytest.mark.spark,
    needs_captures,
]


def test_the_example_answers_what_the_page_shows(tmp_path: Path) -> None:
    (command,) = re.findall(r"^```\n(gscope replay .*?)^```", PAGE, re.MULTILINE | re.DOTALL)
    (answer,) = re.findall(r"^```csv\n(.*?)^```", PAGE, re.MULTILINE | re.DOTALL)
    (tmp_path / "trace.pcap").symlink_to(CAPTURE.resolve())
    (tmp_path / "analyst.py").write_text(user_files()["analyst.py"], encoding="utf-8")
    _, *words = shlex.split(re.sub(r"\n\s+", " ", command))
    done = run(*words, "--work-dir", tmp_path / "work", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert sorted(done.stdout.splitlines()) == sorted(answer.splitlines())
    assert "6 payloads malformed or cut off, so that http_host is NULL" in done.stderr
