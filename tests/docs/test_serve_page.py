"""The programs of ``docs/serve.md`` print what the page shows.

``python -m tests.docs.test_serve_page`` writes what they print into the page.
"""

from __future__ import annotations

import contextlib
import io
import re
import shlex
import subprocess
import tempfile
from pathlib import Path

import pytest
from tests.docs.test_output_page import PAGE as OUTPUT_PAGE
from tests.docs.traffic import write_links
from tests.support.certificates import token_file
from tests.support.gscope_command import command, run

PAGE = Path(__file__).parents[2] / "docs" / "serve.md"
PROGRAM = re.compile(r"^```python\n(.*?)^```\n```text\n(.*?)^```", re.MULTILINE | re.DOTALL)
ADDRESS = "127.0.0.1:9490"

pytestmark = [pytest.mark.slow, pytest.mark.spark]


def printed(folder: Path) -> list[str]:
    """What each program of the page prints, while the server of the page runs."""
    text = PAGE.read_text(encoding="utf-8")
    (commands,) = re.findall(r"^```\n(gscope .*?)^```", text, re.MULTILINE | re.DOTALL)
    replay, serve = (shlex.split(line)[1:] for line in commands.splitlines())
    other = OUTPUT_PAGE.read_text(encoding="utf-8")
    (query,) = re.findall(r"^```gsql\n(.*?)^```", other, re.MULTILINE | re.DOTALL)
    write_links(folder)
    token_file(folder)
    (folder / "web.gsql").write_text(query, encoding="utf-8")
    done = run(*replay, "--work-dir", folder / "work", cwd=folder)
    assert done.returncode == 0, done.stderr
    assert ADDRESS in serve
    server = subprocess.Popen(
        command(*(word.replace(ADDRESS, "127.0.0.1:0") for word in serve)),
        cwd=folder,
        stderr=subprocess.PIPE,
        text=True,
    )
    try:
        assert server.stderr is not None
        address = server.stderr.readline().split()[-1]
        outputs, names = [], {"__name__": "page"}
        with contextlib.chdir(folder):
            for program, _ in PROGRAM.findall(text):
                output = io.StringIO()
                with contextlib.redirect_stdout(output):
                    exec(compile(program.replace(ADDRESS, address), str(PAGE), "exec"), names)
                outputs.append(output.getvalue())
    finally:
        server.kill()
        server.communicate()
    return outputs


def test_the_programs_print_what_the_page_shows(tmp_path: Path) -> None:
    shown = [text for _, text in PROGRAM.findall(PAGE.read_text(encoding="utf-8"))]
    assert len(shown) == 2
    assert printed(tmp_path) == shown


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as place:
        new = iter(printed(Path(place)))
    page = PAGE.read_text(encoding="utf-8")
    PAGE.write_text(
        PROGRAM.sub(lambda m: f"```python\n{m[1]}```\n```text\n{next(new)}```", page),
        encoding="utf-8",
    )
