"""The command of ``docs/alerts.md`` writes what the page shows.

``python -m tests.docs.test_alerts_page`` writes the lines into the page.
"""

from __future__ import annotations

import json
import os
import re
import shlex
import tempfile
from pathlib import Path

import pytest
import yaml
from tests.docs.traffic import write_links
from tests.support.gscope_command import run

from gscope.cli.config.alerts import parse_alerts
from gscope.queries.library.description import describe
from gscope.queries.library.files import library_files

PAGE = Path(__file__).parents[2] / "docs" / "alerts.md"
LINES = re.compile(r"^```text\n(.*?)^```", re.MULTILINE | re.DOTALL)
EVENTS = re.compile(r"^```json\n(.*?)^```", re.MULTILINE | re.DOTALL)


def lines_of(folder: Path, number: int, place: str) -> list[str]:
    """Return the lines that a command of the page writes to ``place``.

    Args:
        folder: where it runs.
        number: which of the commands of the page, from 0.
        place: the file that it writes, a path of the page.
    """
    text = PAGE.read_text(encoding="utf-8")
    command = re.findall(r"^```\n(gscope replay .*?)^```", text, re.MULTILINE | re.DOTALL)[number]
    (script,) = re.findall(r"^```sh\n(.*?)^```", text, re.MULTILINE | re.DOTALL)
    write_links(folder)
    (folder / "note.sh").write_text(script, encoding="utf-8")
    (folder / "note.sh").chmod(0o755)
    words = shlex.split(command.replace("\\\n", "").replace(place, str(folder / "lines")))
    # As root, the command would run as a user who does not reach the folder.
    user = ("--user", str(os.geteuid()))
    done = run(*words[1:], *user, "--work-dir", folder / "work", cwd=folder)
    assert done.returncode == 0, done.stderr
    found = (folder / "lines").read_text(encoding="utf-8").splitlines()
    assert f"  {len(found)} rows sent to command " in done.stderr
    return found


def noted(folder: Path) -> list[str]:
    """Return the lines that the script of the page writes for the rows of its command."""
    return sorted(lines_of(folder, 0, "/tmp/noted"), key=lambda line: int(line.partition(":")[0]))


def reported(folder: Path) -> list[str]:
    """Return the events of the command with an alert."""
    return sorted(lines_of(folder, 1, "/tmp/events"), key=lambda line: json.loads(line)["epoch"])


@pytest.mark.slow
@pytest.mark.spark
def test_the_command_writes_what_the_page_shows(tmp_path: Path) -> None:
    (shown,) = LINES.findall(PAGE.read_text(encoding="utf-8"))
    assert noted(tmp_path) == shown.splitlines()


@pytest.mark.slow
@pytest.mark.spark
def test_the_alert_has_the_events_that_the_page_shows(tmp_path: Path) -> None:
    (shown,) = EVENTS.findall(PAGE.read_text(encoding="utf-8"))
    assert reported(tmp_path) == shown.splitlines()


def test_the_alerts_of_the_page_are_alerts() -> None:
    text = PAGE.read_text(encoding="utf-8")
    (listed,) = re.findall(r"^  alerts:\n(.*?)^```", text, re.MULTILINE | re.DOTALL)
    rules = parse_alerts("\n".join(yaml.safe_load(listed)))
    assert [rule.name for rule in rules] == ["scans", "talkers"]


def test_all_detections_of_the_library_are_listed_with_their_thresholds() -> None:
    _, _, rest = PAGE.read_text(encoding="utf-8").partition("## Detections of the library\n")
    section, _, _ = rest.partition("\n## ")
    listed = dict(re.findall(r"^\| `(\w+)` \| (.*?) \|", section, re.MULTILINE))
    texts = {name: file.read_text(encoding="utf-8") for name, file in library_files().items()}
    security = {name for name, text in texts.items() if describe(text).group == "security"}
    assert listed.keys() == security
    for name, text in listed.items():
        for threshold in re.findall(r"(\d+) or more", text):
            assert f">= {threshold}" in texts[name], name


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as place:
        new = "".join(f"{line}\n" for line in noted(Path(place)))
    with tempfile.TemporaryDirectory() as place:
        events = "".join(f"{line}\n" for line in reported(Path(place)))
    page = PAGE.read_text(encoding="utf-8")
    page = LINES.sub(lambda _: f"```text\n{new}```", page)
    PAGE.write_text(EVENTS.sub(lambda _: f"```json\n{events}```", page), encoding="utf-8")
