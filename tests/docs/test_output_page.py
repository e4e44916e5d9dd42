"""The programs of ``docs/output_files.md`` print what the page shows.

``python -m tests.docs.test_output_page`` writes what they print into the page.
"""

from __future__ import annotations

import contextlib
import io
import re
import shlex
import tempfile
from pathlib import Path

import pytest
from tests.docs.traffic import write_links
from tests.support.gscope_command import run

PAGE = Path(__file__).parents[2] / "docs" / "output_files.md"
PROGRAM = re.compile(r"^```python\n(.*?)^```\n```text\n(.*?)^```", re.MULTILINE | re.DOTALL)

pytestmark = [pytest.mark.slow, pytest.mark.spark]


def printed(folder: Path) -> list[str]:
    """What each program of the page prints, after the commands of the page have run."""
    text = PAGE.read_text(encoding="utf-8")
    commands = re.findall(r"^```\n(gscope replay .*?)^```", text, re.MULTILINE | re.DOTALL)
    (query,) = re.findall(r"^```gsql\n(.*?)^```", text, re.MULTILINE | re.DOTALL)
    write_links(folder)
    (folder / "web.gsql").write_text(query, encoding="utf-8")
    for command in commands:
        done = run(*shlex.split(command)[1:], "--work-dir", folder / "work", cwd=folder)
        assert done.returncode == 0, done.stderr
    outputs = []
    with contextlib.chdir(folder):
        for program, _ in PROGRAM.findall(text):
            output = io.StringIO()
            with contextlib.redirect_stdout(output):
                exec(compile(program, str(PAGE), "exec"), {})
            outputs.append(output.getvalue())
    return outputs


def test_the_programs_print_what_the_page_shows(tmp_path: Path) -> None:
    shown = [text for _, text in PROGRAM.findall(PAGE.read_text(encoding="utf-8"))]
    assert len(shown) == 3
    assert printed(tmp_path) == shown


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as place:
        new = iter(printed(Path(place)))
    page = PAGE.read_text(encoding="utf-8")
    PAGE.write_text(
        PROGRAM.sub(lambda m: f"```python\n{m[1]}```\n```text\n{next(new)}```", page),
        encoding="utf-8",
    )
