"""The manual pages: valid roff, and nothing of the help is missing."""

from __future__ import annotations

import subprocess
from typing import TYPE_CHECKING

import click
import pytest
from tests.support.requirements import needs, require

from gscope.cli.config.effective import FILE_VARIABLE
from gscope.cli.main import DEBUG_VARIABLE, cli, run
from gscope.cli.manual.pages import page, page_names
from gscope.cli.manual.roff import example, line

if TYPE_CHECKING:
    from pathlib import Path

PAGES = page_names(cli)


def shown(text: str) -> str:
    """The page as groff renders it, without fonts, in one long line for each paragraph."""
    done = subprocess.run(
        ["groff", "-man", "-ww", "-Tutf8", "-rLL=2000n", "-P-c", "-P-b", "-P-u", "-P-o"],
        input=text,
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stderr == ""
    return done.stdout


def words(text: str) -> list[str]:
    return text.replace("\b", " ").replace("`", "").split()


@pytest.mark.parametrize("name", PAGES)
def test_groff_and_mandoc_find_no_fault(name: str) -> None:
    text = page(cli, PAGES[name])
    assert text.isascii()
    require("groff", "mandoc")
    assert f"{name} - " in shown(text)
    # Lines are as long as the paragraphs that they hold.
    lint = subprocess.run(
        ["mandoc", "-T", "lint", "-W", "warning"],
        input=text,
        capture_output=True,
        text=True,
        check=False,
    )
    assert lint.stdout == ""


@needs("groff")
@pytest.mark.parametrize("name", [name for name in PAGES if PAGES[name]])
def test_a_page_says_all_that_help_says(name: str) -> None:
    with click.Context(cli, info_name="gscope", **cli.context_settings) as context:
        command = cli.get_command(context, PAGES[name] or "")
        assert command is not None
        rendered = " ".join(words(shown(page(cli, PAGES[name]))))
        described = words((command.help or "").partition("Exit codes:")[0])
        assert " ".join(described) in rendered
        for each in command.get_params(context):
            if isinstance(each, click.Option) and not each.hidden:
                assert f" {each.opts[-1]}" in rendered
                assert " ".join(words((each.help or "").partition("Default:")[0])) in rendered


@pytest.mark.parametrize("name", [None, "run"])
def test_a_page_names_the_same_help_options_as_the_command(
    name: str | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    """click keeps the help option that it makes first: ``gscope run -h`` works after a page."""
    with click.Context(cli, info_name="gscope", **cli.context_settings) as context:
        command = cli if name is None else cli.get_command(context, name)
        assert command is not None
        monkeypatch.setattr(command, "_help_option", None)
        assert r"\-h, \-\-help" in page(cli, name)
        shown = command.get_help_option(context)
    assert shown is not None
    assert shown.opts == ["-h", "--help"]


@pytest.mark.parametrize("variable", [FILE_VARIABLE, DEBUG_VARIABLE])
def test_the_page_of_gscope_names_variables_beside_the_settings(variable: str) -> None:
    assert rf"\fB{variable}\fR" in page(cli, None).splitlines()


@needs("groff")
def test_text_stays_text() -> None:
    hard = [".TH is no macro", r"'quoted' \fBnot bold\fR \\", "a-b --c ~ ^ ` … é", "  indented"]
    text = "\n".join([".TH X 1 2026-01-01", line(hard[0]), *example(hard[1:])])
    rendered = shown(text)
    for each in hard:
        assert each in rendered


def test_pages_are_written_and_printed(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder = tmp_path / "share" / "man1"
    assert run(["man", "--write", str(folder)]) == 0
    assert {path.stem for path in folder.iterdir()} == set(PAGES)
    assert capsys.readouterr().out == f"wrote {len(PAGES)} pages to {folder}\n"
    assert run(["man", "run"]) == 0
    assert capsys.readouterr().out == (folder / "gscope-run.1").read_text()
    assert run(["man", "rn"]) == 2
    assert "did you mean run?" in capsys.readouterr().err
