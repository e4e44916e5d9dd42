"""The command of ``docs/alerts.md`` writes what the page shows.

``python -m tests.docs.test_alerts_page`` writes the lines into the page.
"""

from __future__ import annotations

import os
import re
import shlex
import tempfile
from pathlib import Path

import pytest
from tests.docs.traffic import write_links
from tests.support.gscope_command import run

from gscope.queries.library.description import describe
from gscope.queries.library.files import library_files

PAGE = Path(__file__).parents[2] / "docs" / "alerts.md"
LINES = re.compile(r"^```text\n(.*?)^```", re.MULTILINE | re.DOTALL)


def noted(folder: Path) -> list[str]:
    """Return the lines that the script of the page writes for the rows of its command."""
    text = PAGE.read_text(encoding="utf-8")
    (command,) = re.findall(r"^```\n(gscope replay .*?)^```", text, re.MULTILINE | re.DOTALL)
    (script,) = re.findall(r"^```sh\n(.*?)^```", text, re.MULTILINE | re.DOTALL)
    write_links(folder)
    (folder / "note.sh").write_text(script, encoding="utf-8")
    (folder / "note.sh").chmod(0o755)
    words = shlex.split(command.replace("\\\n", "").replace("/tmp/noted", str(folder / "noted")))
    # As root, the command would run as a user who does not reach the folder.
    user = ("--user", str(os.geteuid()))
    done = run(*words[1:], *user, "--work-dir", folder / "work", cwd=folder)
    assert done.returncode == 0, done.stderr
    found = (folder / "noted").read_text(encoding="utf-8").splitlines()
    assert f"  {len(found)} rows sent to command note.sh" in done.stderr
    return sorted(found, key=lambda line: int(line.partition(":")[0]))


@pytest.mark.slow
@pytest.mark.spark
def test_the_command_writes_what_the_page_shows(tmp_path: Path) -> None:
    (shown,) = LINES.findall(PAGE.read_text(encoding="utf-8"))
    assert noted(tmp_path) == shown.splitlines()


def test_all_detections_of_the_library_are_listed_with_their_thresholds() -> None:
    listed = dict(
        re.findall(r"^\| `(\w+)` \| (.*?) \|", PAGE.read_text(encoding="utf-8"), re.MULTILINE)
    )
    listed = {name: text for name, text in listed.items() if not name.startswith("GSCOPE")}
    texts = {name: file.read_text(encoding="utf-8") for name, file in library_files().items()}
    security = {name for name, text in texts.items() if describe(text).group == "security"}
    assert listed.keys() == security
    for name, text in listed.items():
        for threshold in re.findall(r"(\d+) or more", text):
            assert f">= {threshold}" in texts[name], name


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as place:
        new = "".join(f"{line}\n" for line in noted(Path(place)))
    page = PAGE.read_text(encoding="utf-8")
    PAGE.write_text(LINES.sub(lambda _: f"```text\n{new}```", page), encoding="utf-8")
