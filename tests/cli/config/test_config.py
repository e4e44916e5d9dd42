from __future__ import annotations

import os
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from gscope.cli.commands.config import config_lines
from gscope.cli.config.effective import GivenSetting, load_config
from gscope.cli.config.settings import SETTINGS
from gscope.cli.main import run
from gscope.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

EXAMPLE = """\
interfaces:
  main0: {file: a.pcap, skew: 1s}
  main1:
    files: [b.pcap.1, b.pcap.2]
  eth0:
    skew: 5ms
sets:
  both: [main0, main1]
heartbeat:
  interval: 500ms
spark: {cores: 2, memory: 1G}
output:
  format: csv
limits: {table_slots: 1024, log: 2G}
strict: true
"""


def _file(tmp_path: Path, text: str) -> Path:
    path = tmp_path / "gscope.yaml"
    path.write_text(text)
    return path


def test_every_setting_has_a_default() -> None:
    config = load_config({}, None)
    assert config.heartbeat_interval_ns == 1_000_000_000
    assert set(config.origins.values()) == {"default"}


def test_the_file_counts_more_than_defaults(tmp_path: Path) -> None:
    config = load_config({}, _file(tmp_path, EXAMPLE))
    assert config.heartbeat_interval_ns == 500_000_000
    assert config.spark_cores == 2
    assert config.spark_memory_bytes == 1 << 30
    assert config.table_slots == 1024
    assert config.is_strict
    assert config.interfaces["main0"].files == ("a.pcap",)
    assert config.interfaces["main0"].skew_ns == 1_000_000_000
    assert config.interfaces["main1"].files == ("b.pcap.1", "b.pcap.2")
    assert config.interfaces["eth0"].files == ()
    assert config.sets == {"both": ("main0", "main1")}


def test_flags_and_environment_count_more_than_the_file(tmp_path: Path) -> None:
    given_ = {"heartbeat.interval": GivenSetting("2s", "--heartbeat-interval")}
    config = load_config(given_, _file(tmp_path, EXAMPLE))
    assert config.heartbeat_interval_ns == 2_000_000_000
    assert config.origins["heartbeat.interval"] == "--heartbeat-interval"
    assert config.origins["spark.cores"].endswith("gscope.yaml:11")


def test_the_file_of_the_folder_is_found(tmp_path: Path) -> None:
    _file(tmp_path, "spark: {cores: 7}")
    assert load_config({}, None).spark_cores == 7


def test_the_file_named_in_the_environment_is_found(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "other.yaml").write_text("spark: {cores: 3}")
    monkeypatch.setenv("GSCOPE_CONFIG", str(tmp_path / "other.yaml"))
    assert load_config({}, None).spark_cores == 3


def test_what_config_prints_is_read_back(tmp_path: Path) -> None:
    config = load_config({}, _file(tmp_path, EXAMPLE))
    text = "\n".join(config_lines(config))
    assert isinstance(yaml.safe_load(text), dict)
    again = load_config({}, _file(tmp_path, text))
    for setting in SETTINGS:
        assert getattr(again, setting.attribute) == getattr(config, setting.attribute)
    assert (again.interfaces, again.sets) == (config.interfaces, config.sets)


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        (
            "hearbeat: {interval: 1s}",
            r"gscope.yaml:1: unknown key 'hearbeat'; did you mean 'heartbeat'",
        ),
        (
            "from: [sensor1:9470]",
            r":1: unknown key 'from'; it is not in the file: give --from, or set \$GSCOPE_FROM",
        ),
        (
            "tls:\n  ca: ca.pem",
            r":2: unknown key 'ca' below tls; .* give --tls-ca, or set \$GSCOPE_TLS_CA",
        ),
        ("spark:\n  core: 1", r":2: unknown key 'core' below spark; did you mean 'cores'"),
        ("heartbeat: {interval: soon}", r":1: invalid duration 'soon'"),
        ("heartbeat: {interval: 0s}", "more than 0"),
        ("limits: {table_slots: 1000}", "power of two"),
        ("limits:\n  log: [1]", r":2: expected a single value"),
        ("output: {format: xml}", r"invalid output format 'xml': expected one of table"),
        ("output: {time: gmt}", r"invalid time 'gmt': expected one of utc, local, epoch"),
        ("strict: perhaps", "expected true or false"),
        ("interfaces: {a: {file: x, files: [y]}}", "mutually exclusive"),
        ("interfaces: {a: {flie: x}}", "did you mean 'file'"),
        ("interfaces: [a]", "expected entries"),
        ("sets: {a: b}", "expected a list"),
        ("interfaces: {a: {promiscuous: no}}", "promiscuous: allowed only with a device"),
        ("a: b: c", "valid YAML"),
        ("spark: {cores: 1}\nspark: {cores: 2}", r":2: 'spark' is given twice"),
        ("[" * 5000, "valid YAML"),
        ("{? [a] : b}", "single value"),
        ("&a {spark: *a}", r"unknown key"),
        ("\0", "valid YAML"),
    ],
)
def test_a_wrong_file_is_a_sentence_with_its_line(
    tmp_path: Path, text: str, complaint: str
) -> None:
    with pytest.raises(UsageError, match=complaint):
        load_config({}, _file(tmp_path, text))


def test_an_unreadable_file_is_a_sentence(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="cannot read configuration file"):
        load_config({}, tmp_path / "missing.yaml")
    (tmp_path / "latin.yaml").write_bytes(b"a: \xff")
    with pytest.raises(UsageError, match="UTF-8"):
        load_config({}, tmp_path / "latin.yaml")


@contextmanager
def _as_another_user() -> Iterator[None]:
    """Root can read every file."""
    before = os.geteuid()
    if before == 0:
        os.seteuid(65534)
    try:
        yield
    finally:
        os.seteuid(before)


@pytest.mark.parametrize("is_closed", [False, True])
def test_an_unreadable_file_is_a_warning_unless_it_was_named(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    is_closed: bool,
) -> None:
    home = tmp_path / "home"
    (home / "gscope").mkdir(parents=True)
    file = _file(home / "gscope", "strict: true")
    monkeypatch.setenv("XDG_CONFIG_HOME", str(home))
    assert load_config({}, None).is_strict
    tmp_path.chmod(0o711)
    # The file, or the folder that holds it: then it cannot even be looked for.
    (file.parent if is_closed else file).chmod(0)
    with _as_another_user():
        config = load_config({}, None)
        assert (config.is_strict, config.path) == (False, None)
        assert config.warnings[0].startswith(f"cannot read the configuration {file}: ")
        assert run(["config"]) == 0
        assert f"gscope: {config.warnings[0]}\n" in capsys.readouterr().err
        with pytest.raises(UsageError, match=f"cannot read configuration file {file}"):
            load_config({}, file)
        monkeypatch.setenv("GSCOPE_CONFIG", str(file))
        with pytest.raises(UsageError, match=f"cannot read configuration file {file}"):
            load_config({}, None)


def test_a_wrong_flag_names_itself() -> None:
    with pytest.raises(UsageError, match="--log: invalid size 'much'"):
        load_config({"limits.log": GivenSetting("much", "--log")}, None)


@given(st.text(max_size=80))
def test_any_file_is_read_or_refused(tmp_path_factory: pytest.TempPathFactory, text: str) -> None:
    path = tmp_path_factory.mktemp("any") / "gscope.yaml"
    path.write_text(text, encoding="utf-8")
    with suppress(UsageError):
        load_config({}, path)
