"""Which formats take ``--time``."""

from __future__ import annotations

from pathlib import Path

import pytest

from gscope.cli.config.effective import GivenSetting, load_config
from gscope.cli.config.time_style import TimeStyle
from gscope.cli.sinks.open_sink import ensure_shows_times
from gscope.errors import UsageError


@pytest.fixture(autouse=True)
def _no_configuration_of_the_user(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "none"))
    monkeypatch.chdir(tmp_path)


@pytest.mark.parametrize("kind", ["csv", "ndjson", None])
def test_a_format_for_programs_refuses_a_flag_that_has_no_effect(kind: str | None) -> None:
    given = {"output.time": GivenSetting("local", "--time")}
    given |= {} if kind is None else {"output.format": GivenSetting(kind, "--output")}
    shown = kind or "ndjson"
    with pytest.raises(UsageError, match=f"only tables take it; in {shown} .* add -o table"):
        ensure_shows_times(load_config(given, None), None)


def test_files_refuse_it() -> None:
    config = load_config({"output.time": GivenSetting("epoch", "--time")}, None)
    with pytest.raises(UsageError, match="in csv a TIMESTAMP is in UTC"):
        ensure_shows_times(config, Path("answers"))


@pytest.mark.parametrize("kind", ["table", "vertical"])
def test_tables_take_it(kind: str) -> None:
    given = {"output.time": GivenSetting("local", "--time")}
    given["output.format"] = GivenSetting(kind, "--output")
    config = load_config(given, None)
    assert config.time_style is TimeStyle.LOCAL
    ensure_shows_times(config, None)


def test_a_default_for_tables_does_not_hinder_other_formats(tmp_path: Path) -> None:
    (tmp_path / "gscope.yaml").write_text("output: {time: local, format: csv}\n")
    config = load_config({}, None)
    assert config.time_style is TimeStyle.LOCAL
    ensure_shows_times(config, None)
    ensure_shows_times(
        load_config({"output.time": GivenSetting("epoch", "$GSCOPE_TIME")}, None), None
    )
