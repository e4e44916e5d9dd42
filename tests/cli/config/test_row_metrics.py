"""Results whose rows are metrics, as ``--metrics-of`` and ``gscope.yaml`` name them."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from click.testing import CliRunner

from gscope.cli.config.effective import GivenSetting, load_config
from gscope.cli.config.row_metrics import ensure_served, is_requested, parse_results
from gscope.cli.main import cli
from gscope.errors import UsageError

if TYPE_CHECKING:
    from pathlib import Path

    from gscope.cli.config.effective import Config


def of_yaml(folder: Path, text: str) -> Config:
    path = folder / "gscope.yaml"
    path.write_text(text)
    return load_config({}, path)


def test_a_file_has_a_list_of_results_which_needs_no_endpoint(tmp_path: Path) -> None:
    config = of_yaml(tmp_path, "metrics: {of: [flows, talkers], series: 50}\n")
    assert (config.metrics_of, config.metrics_series) == (("flows", "talkers"), 50)
    assert not is_requested(config)
    ensure_served(config, is_served=False)


def test_a_result_on_the_command_line_needs_one() -> None:
    config = load_config({"metrics.of": GivenSetting("flows", "--metrics-of")}, None)
    ensure_served(config, is_served=True)
    with pytest.raises(UsageError, match="needs the address"):
        ensure_served(config, is_served=False)


def test_a_result_is_named_once() -> None:
    assert parse_results("a\n\n b\n") == ("a", "b")
    with pytest.raises(ValueError, match="the result a is given twice"):
        parse_results("a\nb\na")


def test_the_command_says_what_is_missing(tmp_path: Path) -> None:
    words = ["run", "-e", "SELECT time FROM IP", "-i", "lo", "--work-dir", str(tmp_path)]
    with pytest.raises(UsageError, match="--metrics PORT"):
        CliRunner().invoke(cli, [*words, "--metrics-of", "query"], catch_exceptions=False)
