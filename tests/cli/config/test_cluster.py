"""Settings of a Spark cluster: what they accept, and what each error says."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from gscope.cli.config.cluster import job_secrets, parse_conf, show_conf
from gscope.cli.config.effective import Config, GivenSetting, load_config
from gscope.cli.main import run
from gscope.engine.settings import JobSecrets
from gscope.errors import EngineError, UsageError

if TYPE_CHECKING:
    from collections.abc import Mapping


def config(given: Mapping[str, str]) -> Config:
    return load_config({key: GivenSetting(text, key) for key, text in given.items()}, None)


def secret(text: str, mode: int = 0o600) -> str:
    path = Path("secret")
    path.write_text(text)
    path.chmod(mode)
    return str(path)


def test_a_local_master_needs_no_secret() -> None:
    assert job_secrets(config({})) is None
    assert job_secrets(config({"spark.master": "local[2]"})) is None


def test_a_cluster_that_writes_to_the_folder_of_spark_is_refused(
    capsys: pytest.CaptureFixture[str],
) -> None:
    master = "local-cluster[1,1,1024]"
    with pytest.raises(UsageError, match="its workers write to Spark's own folder; use local, or"):
        config({"spark.master": master})
    command = ["replay", "-e", "SELECT time FROM IP", "-r", "absent.pcap", "--master", master]
    assert run(command) == 2
    assert "the master local-cluster[1,1,1024] is for tests of Spark" in capsys.readouterr().err


def test_a_standalone_cluster_needs_one_and_the_error_says_how_to_make_it() -> None:
    with pytest.raises(UsageError, match=r"--spark-secret-file\); `\(umask 077; openssl rand -hex"):
        job_secrets(config({"spark.master": "spark://a:7077"}))
    assert job_secrets(config({"spark.master": "yarn"})) == JobSecrets()


@pytest.mark.parametrize(
    ("text", "mode", "message"),
    [
        ("x" * 32, 0o644, "other users can read it"),
        ("short", 0o600, "expected one line of at least 16 letters"),
        ("two lines of\nsome letters", 0o600, "invalid Spark secret"),
        ("", 0o600, "invalid Spark secret"),
    ],
)
def test_a_bad_secret_is_refused(text: str, mode: int, message: str) -> None:
    given = {"spark.master": "spark://a:7077", "spark.secret_file": secret(text, mode)}
    with pytest.raises(UsageError, match=message):
        job_secrets(config(given))


def test_a_secret_reaches_the_job_and_no_one_else(tmp_path: Path) -> None:
    given = {"spark.master": "spark://a:7077", "spark.secret_file": secret("x" * 32 + "\n")}
    found = job_secrets(config(given))
    assert found == JobSecrets("x" * 32)
    assert "xxx" not in repr(found)
    uid, gid = tmp_path.stat().st_uid, tmp_path.stat().st_gid
    found.write(tmp_path, uid, gid)
    found.write(tmp_path, uid, gid)
    (path,) = tmp_path.glob("job-secrets.json")
    assert path.stat().st_mode & 0o777 == 0o400
    assert JobSecrets.read(tmp_path) == found
    path.unlink()
    assert JobSecrets.read(tmp_path) == JobSecrets()
    path.write_text("[]")
    with pytest.raises(EngineError, match="unusable"):
        JobSecrets.read(tmp_path)


@pytest.mark.parametrize("key", ["spark.secret_file", "spark.driver_host", "spark.python"])
def test_settings_of_executors_need_a_cluster(key: str) -> None:
    with pytest.raises(UsageError, match=f"{key}.* name its master with spark.master"):
        job_secrets(config({key: "x"}))


def test_configuration_of_spark_is_read_from_lines_and_shown_again() -> None:
    text = "spark.executor.memory=4g\nspark.executor.extraJavaOptions=-Da=b -Dc=d"
    found = parse_conf(text)
    assert found["spark.executor.extraJavaOptions"] == "-Da=b -Dc=d"
    assert show_conf(found) == text


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("spark.executor.memory", "expected NAME=VALUE"),
        ("spark.authenticate.secret=x", "it is set from spark.secret_file"),
        ("spark.driver.memory=8g", "gscope has a setting of its own"),
        ("spark.sql.ansi.enabled=true", "it would change what queries mean"),
        ("spark.a=1\nspark.a=2", "given twice"),
        ("a=1", "names of Spark's settings begin with spark"),
    ],
)
def test_refused_configuration_is_named_with_the_reason(text: str, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        parse_conf(text)


def test_the_file_has_configuration_as_a_mapping(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "gscope.yaml"
    path.write_text(
        "spark:\n  master: spark://a:7077\n  conf:\n    spark.executor.memory: 4g\n"
        "    spark.executor.cores: 2\n"
    )
    found = load_config({}, path)
    assert found.spark_conf == {"spark.executor.memory": "4g", "spark.executor.cores": "2"}
    assert run(["config"]) == 0
    shown = capsys.readouterr().out
    assert "    spark.executor.memory: 4g" in shown
    path.write_text(shown)
    assert load_config({}, path).spark_conf == found.spark_conf
    path.write_text("spark:\n  conf:\n    spark.authenticate: false\n")
    with pytest.raises(UsageError, match=r"gscope.yaml:3: the Spark setting spark.authenticate"):
        load_config({}, path)


def test_the_flag_may_be_repeated(capsys: pytest.CaptureFixture[str]) -> None:
    flags = ["--spark-conf", "spark.executor.memory=4g", "--spark-conf", "spark.executor.cores=2"]
    assert run(["config", *flags]) == 0
    shown = capsys.readouterr().out
    assert "spark.executor.memory: 4g" in shown
    assert "spark.executor.cores: 2" in shown.replace('"', "")
