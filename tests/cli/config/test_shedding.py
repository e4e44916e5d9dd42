"""Which of mode and rate decides whether a run samples, and what is refused."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from gscope.capture.shedding.settings import SheddingMode, SheddingSettings
from gscope.cli.commands.config import config_lines
from gscope.cli.config.effective import GivenSetting, load_config
from gscope.cli.config.shedding import (
    chosen_shedding,
    config_of_reader,
    config_of_replay,
    ensure_allowed,
)
from gscope.errors import UsageError
from gscope.queries.compile import CompileContext, QueryText, compile_queries
from gscope.queries.plan.program import Program
from gscope.queries.plan.program_sampling import SamplingComponent
from gscope.queries.shares import parse_share

if TYPE_CHECKING:
    from pathlib import Path

    from gscope.cli.config.effective import Config

OFF = SheddingSettings()
FLAG = GivenSetting("0.1", "--sample-rate")
OF_ENVIRONMENT = GivenSetting("0.2", "$GSCOPE_SAMPLE_RATE")


def config(tmp_path: Path, text: str = "", **given: GivenSetting) -> Config:
    file = tmp_path / "gscope.yaml"
    file.write_text(text)
    return load_config({f"shedding.{name}": each for name, each in given.items()}, file)


@pytest.mark.parametrize(
    ("text", "given", "rate"),
    [
        ("", {}, None),
        ("", {"rate": FLAG}, 0.1),
        ("", {"rate": OF_ENVIRONMENT}, 0.2),
        ("shedding: {mode: off}", {}, None),
        ("shedding: {rate: 5%}", {}, 0.05),
        ("shedding: {mode: fixed, rate: 1/4}", {}, 0.25),
        ("shedding: {mode: off, rate: 1/4}", {}, None),
        ("shedding: {mode: off, rate: 1/4}", {"rate": FLAG}, 0.1),
        ("shedding: {mode: fixed, rate: 1/4}", {"rate": FLAG}, 0.1),
        (
            "shedding: {mode: fixed, rate: 1/4}",
            {"mode": GivenSetting("off", "--shedding")},
            None,
        ),
        ("shedding: {rate: 1/4}", {"mode": GivenSetting("fixed", "--shedding")}, 0.25),
        ("", {"rate": FLAG, "mode": GivenSetting("off", "--shedding")}, None),
    ],
)
def test_a_rate_that_is_given_more_directly_than_the_mode_turns_sampling_on(
    tmp_path: Path, text: str, given: dict[str, GivenSetting], rate: float | None
) -> None:
    expected = OFF if rate is None else SheddingSettings(SheddingMode.FIXED, rate)
    assert chosen_shedding(config(tmp_path, text, **given)) == expected


def test_what_config_prints_of_a_rate_means_the_same_when_it_is_read(tmp_path: Path) -> None:
    given = config(tmp_path, "shedding: {mode: off}", rate=FLAG)
    text = "\n".join(config_lines(given))
    assert chosen_shedding(config(tmp_path, text)) == chosen_shedding(given)
    assert chosen_shedding(given).rate == 0.1


def test_a_fixed_mode_needs_a_rate(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"gscope.yaml:1: the mode fixed needs a rate"):
        chosen_shedding(config(tmp_path, "shedding: {mode: fixed}"))


@pytest.mark.parametrize(
    ("text", "share"),
    [("0.1", 0.1), ("10%", 0.1), (" 1/10 ", 0.1), ("1", 1.0), ("1e-3", 0.001), ("2.5 %", 0.025)],
)
def test_rates_are_numbers_percentages_and_fractions(text: str, share: float) -> None:
    assert parse_share(text) == share


@pytest.mark.parametrize(
    "text",
    ["0", "1.01", "-0.1", "nan", "1/0", "200%", "", "a", "1:10", "9" * 50, "1/1e9", "1e-999"],
)
def test_other_rates_are_refused(text: str) -> None:
    with pytest.raises(ValueError, match="expected above 0 and at most 1"):
        parse_share(text)


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("shedding: {rate: 2}", r":1: invalid rate '2'"),
        ("shedding: {mode: on}", r":1: invalid shedding mode 'on': expected one of off, fixed"),
        ("shedding: {seed: 1}", r"unknown key 'seed' below shedding"),
    ],
)
def test_wrong_settings_are_refused_with_their_line(
    tmp_path: Path, text: str, complaint: str
) -> None:
    with pytest.raises(UsageError, match=complaint):
        config(tmp_path, text)


def test_a_rate_below_that_of_a_query_is_refused() -> None:
    component = SamplingComponent(("flows",), (), min_rate=0.2)
    program = Program(("a",), (), (), (), (), sampling=(component,))
    ensure_allowed(program, SheddingSettings(SheddingMode.FIXED, 0.2))
    ensure_allowed(program, OFF)
    with pytest.raises(UsageError, match=r"0.1 is below min_rate 0.2 of a query; choose at least"):
        ensure_allowed(program, SheddingSettings(SheddingMode.FIXED, 0.1))


@pytest.mark.parametrize("rate", [0.0, -1.0, 1.5, float("nan")])
def test_settings_of_the_daemon_are_checked_again(rate: float) -> None:
    with pytest.raises(UsageError, match="invalid rate"):
        SheddingSettings(SheddingMode.FIXED, rate)


def test_a_rate_without_a_mode_is_refused_by_the_daemon() -> None:
    with pytest.raises(UsageError, match="only the mode fixed"):
        SheddingSettings(SheddingMode.OFF, 0.5)


def test_a_run_that_reads_other_hosts_ignores_what_the_file_says_of_samples(
    tmp_path: Path,
) -> None:
    of_file = config(tmp_path, "shedding: {mode: fixed, rate: 1/4}")
    assert not chosen_shedding(config_of_reader(of_file)).is_on
    plain = config(tmp_path)
    assert config_of_reader(plain) is plain
    with pytest.raises(UsageError, match=r"--sample-rate: packets are sampled where"):
        config_of_reader(config(tmp_path, rate=FLAG))


AUTO = GivenSetting("auto", "--shedding")


@pytest.mark.parametrize(
    ("text", "given", "least"),
    [
        ("", {"mode": AUTO}, 0.01),
        ("shedding: {mode: auto, min_rate: 5%}", {}, 0.05),
        ("shedding: {mode: auto}", {"min_rate": GivenSetting("1/5", "--min-rate")}, 0.2),
        ("shedding: {mode: fixed, rate: 1/4}", {"mode": AUTO}, 0.01),
    ],
)
def test_the_mode_auto_begins_with_every_packet(
    tmp_path: Path, text: str, given: dict[str, GivenSetting], least: float
) -> None:
    expected = SheddingSettings(SheddingMode.AUTO, min_rate=least)
    assert chosen_shedding(config(tmp_path, text, **given)) == expected


def test_a_rate_on_the_command_line_overrides_the_mode_auto_of_the_file(tmp_path: Path) -> None:
    chosen = chosen_shedding(config(tmp_path, "shedding: {mode: auto}", rate=FLAG))
    assert chosen == SheddingSettings(SheddingMode.FIXED, 0.1)


@pytest.mark.parametrize(
    ("text", "given"),
    [("", {"mode": AUTO, "rate": FLAG}), ("shedding: {mode: auto, rate: 1/4}", {})],
)
def test_the_mode_auto_beside_a_rate_is_refused(
    tmp_path: Path, text: str, given: dict[str, GivenSetting]
) -> None:
    with pytest.raises(UsageError, match="the mode auto finds its own rate"):
        chosen_shedding(config(tmp_path, text, **given))


def test_a_replay_does_not_follow_a_load(tmp_path: Path) -> None:
    of_file = config(tmp_path, "shedding: {mode: auto}")
    assert not chosen_shedding(config_of_replay(of_file)).is_on
    fixed = config(tmp_path, rate=FLAG)
    assert config_of_replay(fixed) is fixed
    with pytest.raises(UsageError, match=r"--shedding: auto follows the load of a live capture"):
        config_of_replay(config(tmp_path, mode=AUTO))


@pytest.mark.parametrize("least", [0.0, -1.0, 1.1, float("nan")])
def test_the_least_rate_of_the_daemon_is_checked_again(least: float) -> None:
    with pytest.raises(UsageError, match="invalid min_rate"):
        SheddingSettings(SheddingMode.AUTO, min_rate=least)


@pytest.mark.parametrize("column", ["cnt_low", "cnt_high", "sample_groups"])
def test_intervals_are_allowed_at_any_rate(column: str) -> None:
    text = f"SELECT tb, count(*) AS cnt, {column} FROM IP GROUP BY time/60 AS tb"
    context = CompileContext(("main",), samples=True)
    program = compile_queries([QueryText(text, "query")], context).program
    ensure_allowed(program, SheddingSettings(SheddingMode.FIXED, 0.1))
    ensure_allowed(program, SheddingSettings(SheddingMode.AUTO))
