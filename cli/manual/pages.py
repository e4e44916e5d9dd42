"""Manual pages of section 1: ``gscope`` and one for each command, made from click's commands."""

from __future__ import annotations

import inspect
import os
import time
from pathlib import Path
from typing import TYPE_CHECKING

import click

import gscope
from gscope.cli.manual.roff import blocks, escaped, example, line, macro
from gscope.cli.rundir.run_dir import default_work_dir

if TYPE_CHECKING:
    from collections.abc import Iterator

SECTION = "1"
_EXIT_CODES = "Exit codes:"
_HELP_OPTION = "help"


def page_names(top: click.Group) -> dict[str, str | None]:
    """Return the name of each page with its command; None for the page of ``gscope`` itself."""
    with _described(top) as context:
        return {"gscope": None} | {f"gscope-{name}": name for name in top.list_commands(context)}


def page(top: click.Group, name: str | None) -> str:
    """Return the page of the command ``name``, of ``gscope`` itself for None."""
    with _described(top) as context:
        lines = _overview(top, context) if name is None else _command(top, context, name)
        return "\n".join(lines) + "\n"


def _described(top: click.Group) -> click.Context:
    """Return a context with the settings of ``top``: click keeps the help option that it names."""
    return click.Context(top, info_name="gscope", **top.context_settings)


def _overview(top: click.Group, context: click.Context) -> Iterator[str]:
    yield from _head("gscope", "answer SQL-like queries (GSQL) over packets")
    yield macro("SH", "SYNOPSIS")
    yield r"\fBgscope\fR \fICOMMAND\fR [\fIOPTIONS\fR] [\fIARGUMENTS\fR]"
    yield macro("SH", "DESCRIPTION")
    yield line(
        "gscope answers queries over the packets of captures and of live interfaces. Low-level"
        " queries are compiled to machine code and run in the capture process; high-level queries"
        " run on Spark. A first command to try:"
    )
    yield from example(["gscope replay trace.pcap -q top_talkers"])
    yield macro("SH", "COMMANDS")
    for name in top.list_commands(context):
        command = top.get_command(context, name)
        assert command is not None
        yield from _item(rf"\fBgscope {escaped(name)}\fR", command.get_short_help_str(limit=200))
    yield macro("SH", "OPTIONS")
    yield from _options(top, context)
    yield macro("SH", "EXIT STATUS")
    for code, meaning in (
        ("0", "Success."),
        ("1", "A capture, an interface or a process failed."),
        ("2", "A flag, a value, a file or a query is wrong."),
        ("3", "Success, but packets were lost and --strict was given."),
        ("128+n", "Terminated by signal n."),
    ):
        yield from _item(rf"\fB{escaped(code)}\fR", meaning)
    yield macro("SH", "ENVIRONMENT")
    yield line(
        "The description of an option names the environment variable that sets it, such as"
        " GSCOPE_OUTPUT. Options have precedence over variables, and these over the configuration"
        " file."
    )
    yield from _item(
        r"\fBGSCOPE_CONFIG\fR",
        "The configuration file. The option --config has precedence; without either, gscope reads"
        " the first file below that exists.",
    )
    yield from _item(r"\fBGSCOPE_DEBUG\fR", "If set, an unexpected error prints a traceback.")
    yield macro("SH", "FILES")
    yield from _item(
        r"\fI./gscope.yaml\fR, \fI\(ti/.config/gscope/gscope.yaml\fR",
        "The configuration file; `gscope config` prints what it amounts to.",
    )
    yield from _see_also([each for each in page_names(top) if each != "gscope"])


def _command(top: click.Group, context: click.Context, name: str) -> Iterator[str]:
    command = top.get_command(context, name)
    assert command is not None
    with click.Context(command, info_name=name, parent=context) as described:
        summary = command.get_short_help_str(limit=200).rstrip(".")
        yield from _head(f"gscope-{name}", summary[:1].lower() + summary[1:])
        yield macro("SH", "SYNOPSIS")
        usage = " ".join(command.collect_usage_pieces(described))
        yield rf"\fBgscope {escaped(name)}\fR {escaped(usage)}"
        yield macro("SH", "DESCRIPTION")
        codes = ""
        for number, (is_fixed, block) in enumerate(blocks(inspect.cleandoc(command.help or ""))):
            if block.startswith(_EXIT_CODES):
                codes = " ".join(block.removeprefix(_EXIT_CODES).split())
            elif is_fixed:
                yield from example(block.splitlines())
            else:
                if number:
                    yield macro("PP")
                yield line(block)
        yield macro("SH", "OPTIONS")
        yield from _options(command, described)
        if codes:
            yield macro("SH", "EXIT STATUS")
            yield line(codes[:1].upper() + codes[1:])
    others = [each for each in page_names(top) if each != f"gscope-{name}"]
    yield from _see_also(others, has_filters="pcap-filter(7)" in (command.get_help(context)))


def _head(name: str, summary: str) -> Iterator[str]:
    yield r".\" Made from the help of gscope; do not edit."
    source = f"gscope {gscope.__version__}"
    yield macro("TH", escaped(name.upper()), SECTION, _date(), source, "gscope manual")
    # Names of options and variables are not broken.
    yield from (macro("nh"), macro("ad", "l"))
    yield macro("SH", "NAME")
    yield rf"{escaped(name)} \- {escaped(summary)}"


def _date() -> str:
    """Return the day of the build, or that on which this gscope was installed."""
    built = os.environ.get("SOURCE_DATE_EPOCH")
    seconds = int(built) if built else Path(gscope.__file__).stat().st_mtime
    return time.strftime("%Y-%m-%d", time.gmtime(seconds))


def _options(command: click.Command, context: click.Context) -> Iterator[str]:
    """Yield the options, below the headings that help has; without headings if it has only one."""
    sections: dict[str, list[click.Option]] = {}
    for each in command.get_params(context):
        if isinstance(each, click.Option) and not each.hidden:
            sections.setdefault(getattr(each, "heading", ""), []).append(each)
    order = [*(name for name in sections if name and name != "Other options"), "Other options", ""]
    shown = [name for name in order if name in sections]
    headings = [name for name in shown if name]
    for name in shown:
        if name and len(headings) > 1:
            yield macro("SS", name)
        for each in sections[name]:
            record = each.get_help_record(context)
            assert record is not None
            yield from _item(rf"\fB{escaped(record[0])}\fR", _text(each))


def _text(option: click.Option) -> str:
    """Return what help says of an option, for any user of any machine."""
    text = (option.help or "").replace(
        str(default_work_dir()), "gscope-UID in the folder for temporary files"
    )
    if option.envvar and option.name != _HELP_OPTION:
        text += f" Environment variable: {option.envvar}."
    return text


def _item(tag: str, text: str) -> Iterator[str]:
    yield from (macro("TP"), tag, line(text))


def _see_also(names: list[str], *, has_filters: bool = False) -> Iterator[str]:
    yield macro("SH", "SEE ALSO")
    pages = [(name, SECTION) for name in names]
    if has_filters:
        pages.append(("pcap-filter", "7"))
    yield ",\n".join(rf"\fB{escaped(name)}\fR({section})" for name, section in pages)
