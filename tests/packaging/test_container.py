"""The recipe of the image: what it grants, and that its command is one of gscope."""

from __future__ import annotations

import json
import re

from tests.support.requirements import ROOT

RECIPE = (ROOT / "packaging" / "container" / "Containerfile").read_text(encoding="utf-8")


def instruction(name: str) -> str:
    (found,) = re.findall(rf"^{name} (.*)$", RECIPE, re.MULTILINE)
    return str(found)


def test_the_image_runs_gscope_as_another_user_than_root() -> None:
    assert instruction("USER") == "gscope"
    assert "useradd --system --uid 10001 --home-dir /var/lib/gscope" in RECIPE
    (command,) = json.loads(instruction("ENTRYPOINT"))
    assert command == "/opt/gscope/bin/gscope"


def test_the_only_capability_is_that_of_raw_sockets_on_an_interpreter_of_its_own() -> None:
    assert re.findall(r"setcap (\S+) (\S+)", RECIPE) == [
        ("cap_net_raw=ep", "/opt/gscope/bin/python3")
    ]
    # Without --copies the capability would be one of the system's interpreter.
    assert "venv --copies /opt/gscope" in RECIPE


def test_versions_are_those_that_the_tests_passed_with() -> None:
    assert "--constraint /context/constraints.txt" in RECIPE
    script = (ROOT / "packaging" / "container" / "build.sh").read_text(encoding="utf-8")
    assert 'cp "$here/constraints.txt" "$context/"' in script
