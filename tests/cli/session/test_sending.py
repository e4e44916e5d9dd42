"""Which alerts of the configuration apply to a run."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
import yaml

from gscope.cli.commands.config import config_lines
from gscope.cli.config.effective import GivenSetting, load_config
from gscope.cli.session.sending import alerts_of
from gscope.errors import UsageError
from gscope.queries.compile import CompileContext, QueryText, compile_queries

if TYPE_CHECKING:
    from pathlib import Path

    from gscope.cli.config.effective import Config

PROGRAM = compile_queries(
    [QueryText("SELECT tb, count(*) AS n FROM IPV4 GROUP BY time/60 AS tb", "q")],
    CompileContext(("a",)),
).program
((RESULT, _),) = PROGRAM.results
ALERT = f"{RESULT}: raise n > 5, clear n < 3 or silent"
FILE = f"""
output:
  on_row: [echo]
  alerts:
    - "{ALERT}"
    - "busy = others: raise n > 5"
limits:
  alert_keys: 7
"""


def configured(folder: Path, text: str) -> Config:
    path = folder / "gscope.yaml"
    path.write_text(text)
    return load_config({}, path)


def given_alert(text: str, **more: str) -> Config:
    given = {"output.alerts": GivenSetting(text, "--alert")}
    given |= {f"output.{key}": GivenSetting(value, f"--{key}") for key, value in more.items()}
    return load_config(given, None)


def test_alerts_of_a_file_apply_where_their_query_runs(tmp_path: Path) -> None:
    config = configured(tmp_path, FILE)
    assert config.alert_keys == 7
    assert [rule.name for rule in config.alerts] == [RESULT, "busy"]
    alerts = alerts_of(config, PROGRAM, print)
    assert alerts is not None
    alerts.restore({})
    assert list(alerts.state()) == [ALERT]
    assert alerts.judges(RESULT)
    assert not alerts.judges("others")


def test_alerts_are_shown_as_a_file_that_is_read_back(tmp_path: Path) -> None:
    config = configured(tmp_path, FILE)
    shown = "\n".join(config_lines(config))
    assert yaml.safe_load(shown)["output"]["alerts"] == [rule.text for rule in config.alerts]


def test_a_file_with_a_wrong_alert_is_refused_with_its_place(tmp_path: Path) -> None:
    with pytest.raises(
        UsageError, match=r"gscope\.yaml:3.*expected <, <=, > or >= at character 12"
    ):
        configured(tmp_path, 'output:\n  alerts:\n    - "q: raise n 5"\n')


def test_an_alert_of_the_command_line_needs_its_query_and_a_receiver() -> None:
    with pytest.raises(UsageError, match="there is no result others"):
        alerts_of(given_alert("others: raise n > 5", on_row="echo"), PROGRAM, print)
    with pytest.raises(UsageError, match="add --to URL or --on-row COMMAND"):
        alerts_of(given_alert(ALERT), PROGRAM, print)
    assert alerts_of(given_alert("", on_row="echo"), PROGRAM, print) is None
