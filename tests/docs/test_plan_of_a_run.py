"""The plan of a replay that ``docs/operations.md`` shows.

It is the one that the commands above it give.
"""

from __future__ import annotations

import io
import json
import re
from typing import TYPE_CHECKING

import pytest
from rich.console import Console, Group
from tests.docs import traffic
from tests.docs.examples import ROOT
from tests.support.gscope_command import run

from gscope.cli.status.plan_view import plan_view

if TYPE_CHECKING:
    from pathlib import Path

OPERATIONS = ROOT / "docs" / "operations.md"
EXAMPLE = re.compile(
    r"```\n(gscope replay .*)\n(gscope explain --run pages)\n```\n```gsql\n(.*?)```\n```\n(.*?)```",
    re.DOTALL,
)
COST = re.compile(r"\d[\d.]*(?:ns|µs|ms)")

pytestmark = [pytest.mark.spark, pytest.mark.slow, pytest.mark.long]


def test_the_plan_of_the_replay_is_shown(tmp_path: Path) -> None:
    example = EXAMPLE.search(OPERATIONS.read_text(encoding="utf-8"))
    assert example is not None
    replay, explain, queries, shown = example.groups()
    traffic.write_links(tmp_path)
    (tmp_path / "pages.gsql").write_text(queries)
    for line in (replay, f"{explain} --json"):
        done = run(*line.split()[1:], "--work-dir", "work", cwd=tmp_path)
        assert done.returncode == 0, done.stderr
    text = io.StringIO()
    Console(file=text, width=80).print(Group(*plan_view(json.loads(done.stdout))))
    assert without_costs(text.getvalue())[: len(without_costs(shown))] == without_costs(shown)


def without_costs(text: str) -> list[list[str]]:
    """The words of each line; costs differ from run to run."""
    return [COST.sub("COST", line).split() for line in text.splitlines()]
