"""The seed of a run stays secret to it and stays the same; a resumed run samples as before."""

from __future__ import annotations

from contextlib import contextmanager
from dataclasses import replace
from typing import TYPE_CHECKING

import pytest
from tests.cli.rundir.test_records import killed

from gscope.capture.settings import CaptureSettings, InterfaceSettings
from gscope.capture.shedding.settings import SheddingMode, SheddingSettings
from gscope.cli.config.effective import GivenSetting, load_config
from gscope.cli.config.run_limits import RunLimits
from gscope.cli.render.progress import NullProgress
from gscope.cli.rundir.records import choose_run
from gscope.cli.rundir.run_dir import RunDir
from gscope.cli.session.request import QueryRequest
from gscope.cli.session.sampling import (
    ensure_same_sample,
    shedding_of_run,
    unsampled,
    warn_of_unsampled,
)
from gscope.cli.session.session import Session
from gscope.errors import UsageError
from gscope.queries.compile import CompileContext, QueryText, compile_queries
from gscope.queries.plan.program import Program
from gscope.queries.plan.program_sampling import SamplingComponent
from gscope.queries.run_folder.layout import CAPTURE_SETTINGS_FILE

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from gscope.cli.config.effective import Config

PROGRAM = Program(("a",), (), (), (), (), sampling=(SamplingComponent(("flows",), ()),))
SEED = 987_654_321_987
CAPTURE = CaptureSettings((InterfaceSettings("a", ("a.pcap",)),))


def at_rate(rate: str | None) -> Config:
    given = {} if rate is None else {"shedding.rate": GivenSetting(rate, "--sample-rate")}
    return load_config(given, None)


def captured(root: Path, shedding: SheddingSettings | None) -> None:
    """Leave a killed run that has captured with these settings."""
    path = killed(root, "flows") / CAPTURE_SETTINGS_FILE
    path.write_text(replace(CAPTURE, shedding=shedding).to_json())


def test_each_run_has_a_seed_of_its_own(tmp_path: Path) -> None:
    seeds = set()
    for name in ("one", "two"):
        with RunDir(tmp_path, name, is_exact=True) as run_dir:
            made = shedding_of_run(at_rate("0.1"), run_dir, PROGRAM)
            assert (made.mode, made.rate) == (SheddingMode.FIXED, 0.1)
            seeds.add(made.seed)
    assert len(seeds) == 2
    assert max(seeds) > 1 << 40


def test_a_resumed_run_keeps_its_seed(tmp_path: Path) -> None:
    earlier = SheddingSettings(SheddingMode.FIXED, 0.1, seed=2**64 - 5)
    captured(tmp_path, earlier)
    with RunDir(tmp_path, "flows", is_exact=True) as run_dir:
        ensure_same_sample(at_rate("10%"), run_dir, PROGRAM)
        assert shedding_of_run(at_rate("10%"), run_dir, PROGRAM) == earlier


@pytest.mark.parametrize(
    ("earlier", "rate", "complaint"),
    [
        (
            SheddingSettings(SheddingMode.FIXED, 0.1, SEED),
            "0.2",
            "it ran with the sample rate 0.1, and would now run with the sample rate 0.2",
        ),
        (
            SheddingSettings(SheddingMode.FIXED, 0.1, SEED),
            None,
            "it ran with the sample rate 0.1, and would now run with sampling off",
        ),
        (None, "0.1", "it ran with sampling off, and would now run with the sample rate 0.1"),
    ],
)
def test_another_rate_is_refused_and_the_run_stays(
    tmp_path: Path, earlier: SheddingSettings | None, rate: str | None, complaint: str
) -> None:
    captured(tmp_path, earlier)
    with RunDir(tmp_path, "flows", is_exact=True) as run_dir:
        with pytest.raises(UsageError) as caught:
            ensure_same_sample(at_rate(rate), run_dir, PROGRAM)
        assert complaint in str(caught.value)
        assert str(SEED) not in str(caught.value)
    assert choose_run(tmp_path, "flows").standing == "stale"


def test_a_program_of_which_nothing_can_be_sampled_keeps_every_packet(tmp_path: Path) -> None:
    captured(tmp_path, None)
    whole = replace(PROGRAM, sampling=())
    with RunDir(tmp_path, "flows", is_exact=True) as run_dir:
        ensure_same_sample(at_rate("0.1"), run_dir, whole)
        assert not shedding_of_run(at_rate("0.1"), run_dir, whole).is_on


def test_a_run_that_never_captured_may_begin_to_sample(tmp_path: Path) -> None:
    killed(tmp_path, "flows")
    with RunDir(tmp_path, "flows", is_exact=True) as run_dir:
        ensure_same_sample(at_rate("0.1"), run_dir, PROGRAM)
        assert shedding_of_run(at_rate("0.1"), run_dir, PROGRAM).is_on


def test_settings_of_another_version_are_left_to_the_comparison_of_versions(
    tmp_path: Path,
) -> None:
    path = killed(tmp_path, "flows") / CAPTURE_SETTINGS_FILE
    path.write_text('{"from_the_future": 1}')
    with RunDir(tmp_path, "flows", is_exact=True) as run_dir:
        ensure_same_sample(at_rate("0.1"), run_dir, PROGRAM)
        with pytest.raises(UsageError, match="unknown key"):
            shedding_of_run(at_rate("0.1"), run_dir, PROGRAM)


def test_the_settings_of_the_daemon_survive_json() -> None:
    made = replace(CAPTURE, shedding=SheddingSettings(SheddingMode.FIXED, 0.1, 2**64 - 1))
    assert CaptureSettings.from_json(made.to_json()) == made


def test_results_that_no_rate_concerns_are_named(capsys: pytest.CaptureFixture[str]) -> None:
    text = """
    DEFINE { query_name 'flows'; }
    SELECT tb, srcIP, count(*) as cnt FROM IP GROUP BY time/60 as tb, srcIP;
    DEFINE { query_name 'largest'; } SELECT tb, max(cnt) as m FROM flows GROUP BY tb;
    DEFINE { query_name 'longest'; } SELECT tb, max(len) as m FROM TCP GROUP BY time/60 as tb;
    DEFINE { query_name 'sizes'; } SELECT tb, sum(len) as bytes FROM UDP GROUP BY time/60 as tb
    """
    context = CompileContext(("main",), samples=True, only=("largest", "longest", "sizes"))
    program = compile_queries([QueryText(text, "set.gsql")], context).program
    found = unsampled(program)
    assert "longest" in found
    assert "sizes" not in found
    warn_of_unsampled(at_rate("0.1"), program)
    assert f"all packets are processed for {', '.join(found)}," in capsys.readouterr().err
    warn_of_unsampled(at_rate(None), program)
    assert capsys.readouterr().err == ""


class Beside(NullProgress):
    """Notes what is printed while the terminal is free."""

    def __init__(self, capsys: pytest.CaptureFixture[str]) -> None:
        super().__init__()
        self.printed = ""
        self._capsys = capsys

    @contextmanager
    def aside(self, *, is_message: bool = False) -> Iterator[None]:
        assert is_message
        before = self._capsys.readouterr().err
        assert before == "", "printed over the progress line"
        yield
        self.printed += self._capsys.readouterr().err


def test_warnings_leave_the_progress_line_alone(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    text = "DEFINE { query_name 'longest'; } SELECT max(len) AS m FROM TCP"
    session = Session(
        QueryRequest((), (text,)), CAPTURE.interfaces, RunLimits(), None, None, at_rate("0.1")
    )
    observer = Beside(capsys)
    with RunDir(tmp_path, "longest", is_exact=True) as run_dir:
        session.compiled(run_dir, observer)
    assert observer.printed.startswith("warning: all packets are processed for longest,")
    assert capsys.readouterr().err == ""
