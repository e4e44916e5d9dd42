"""The command of ``docs/sinks.md`` sends what the page shows.

``python -m tests.docs.test_sinks_page`` writes the request and the message into the page.
"""

from __future__ import annotations

import json
import re
import shlex
import socket
import tempfile
from pathlib import Path

import pytest
from tests.cli.outlets.servers import HookServer
from tests.docs.traffic import write_links
from tests.support.gscope_command import run

PAGE = Path(__file__).parents[2] / "docs" / "sinks.md"
BODY = re.compile(r"^```json\n(.*?)\n```", re.MULTILINE)
MESSAGE = re.compile(r"^```syslog\n(.*?)\n```", re.MULTILINE)
VARYING = re.compile(r'(?<=>1 )\S+ \S+ gscope \d+|(?<=token=")\w+')
"""Time, host and process of a message, and the token of its run."""

pytestmark = [pytest.mark.slow, pytest.mark.spark]


def sent(folder: Path) -> tuple[str, str]:
    """Return the body of the request, and the first message, of the command of the page."""
    text = PAGE.read_text(encoding="utf-8")
    (command,) = re.findall(r"^```\n(gscope replay .*?)^```", text, re.MULTILINE | re.DOTALL)
    write_links(folder)
    server = HookServer()
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as receiver:
        receiver.bind(("127.0.0.1", 0))
        words = shlex.split(command.replace("\\\n", "").replace("8080", str(server.port)))
        words += ["--to", f"syslog://127.0.0.1:{receiver.getsockname()[1]}"]
        done = run(*words[1:], "--work-dir", folder / "work", cwd=folder)
        assert done.returncode == 0, done.stderr
        message = receiver.recv(2000).decode()
    server.kill()
    (body,) = server.bodies.values()
    assert done.stdout.splitlines() == [json.dumps(row) for row in body["rows"]]
    return json.dumps(body), message


def test_the_command_sends_what_the_page_shows(tmp_path: Path) -> None:
    body, message = sent(tmp_path)
    text = PAGE.read_text(encoding="utf-8")
    assert BODY.findall(text) == [body]
    (shown,) = MESSAGE.findall(text)
    assert VARYING.sub("…", shown) == VARYING.sub("…", message)


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as place:
        new_body, new_message = sent(Path(place))
    page = PAGE.read_text(encoding="utf-8")
    row = new_message.partition("] ")[2]
    page = BODY.sub(lambda _: f"```json\n{new_body}\n```", page)
    page = MESSAGE.sub(lambda m: f"```syslog\n{m[1].partition('] ')[0]}] {row}\n```", page)
    PAGE.write_text(page, encoding="utf-8")
