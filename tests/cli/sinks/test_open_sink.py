"""Which formats take ``--time``, and which columns files have."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest

from gscope.cli.config.effective import GivenSetting, load_config
from gscope.cli.config.time_style import TimeStyle
from gscope.cli.delivery.checkpoint import DeliveryCheckpoint
from gscope.cli.sinks.open_sink import ensure_shows_times, sink_for
from gscope.errors import UsageError
from gscope.queries.compile import CompileContext, QueryText, compile_queries


def test_files_of_a_live_run_have_no_column_that_only_orders_rows(tmp_path: Path) -> None:
    text = "SELECT srcIP FROM IP GROUP BY time/60 AS tb, srcIP ORDER BY sum(len) LIMIT 3"
    program = compile_queries([QueryText(text, "q")], CompileContext(("a",))).program
    (query,) = dict(program.results)
    config = load_config({"output.format": GivenSetting("csv", "--output")}, None)
    sink = sink_for(program, config, tmp_path, DeliveryCheckpoint(tmp_path))
    table = pa.table({"srcIP": ["10.0.0.1"]})
    sink.begin(query, table.schema)
    sink.write(query, table)
    sink.settle(is_last=True)
    sink.close(is_complete=True)
    assert (tmp_path / f"{query}.csv").read_text() == "srcIP\n10.0.0.1\n"


@pytest.mark.parametrize("kind", ["csv", "ndjson", None])
def test_a_format_for_programs_refuses_a_flag_that_has_no_effect(kind: str | None) -> None:
    given = {"output.time": GivenSetting("local", "--time")}
    given |= {} if kind is None else {"output.format": GivenSetting(kind, "--output")}
    shown = kind or "ndjson"
    with pytest.raises(
        UsageError, match=f"only tables and reports take it; in {shown} .* add -o table"
    ):
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
