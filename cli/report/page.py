"""The page of a report: one HTML file that loads nothing and runs one script, its own.

Names and values come from packets. All of them are escaped, and a policy in the page lets a browser
apply its one style sheet and its one script and nothing else, whatever else the page may hold.
"""

from __future__ import annotations

import base64
import hashlib
import json
from functools import cache
from html import escape
from importlib.resources import files
from typing import TYPE_CHECKING, Any

import numpy as np

from gscope import __version__
from gscope.cli.config.time_style import TimeStyle
from gscope.cli.report.clock_text import clock_texts
from gscope.cli.report.plot import (
    COLOURS,
    NARROW,
    REST_COLOUR,
    WIDE,
    colour,
    described,
    svg_in_page,
    title,
)
from gscope.cli.report.series import plots_of
from gscope.cli.report.tables import caption, table_html
from gscope.cli.report.time_axis import clock_axis
from gscope.cli.sinks.table_cells import printable

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from gscope.cli.report.contents import AnsweredRows, Facts, Report
    from gscope.cli.report.series import Plot

_ZONES = {
    TimeStyle.UTC: "UTC",
    TimeStyle.LOCAL: "local time, with its offset from UTC",
    TimeStyle.EPOCH: "seconds since 1970-01-01 00:00:00 UTC",
}
_TALL = 20
"""The most rows of a table that is shown whole."""

_UNSAFE_IN_SCRIPT = {"<": "\\u003c", ">": "\\u003e", "&": "\\u0026"}


def page_html(report: Report) -> Iterator[str]:
    """Yield the lines of a report."""
    facts = report.facts
    style, script = _asset("page.css") + _colour_rules(), _asset("page.js")
    yield "<!DOCTYPE html>"
    yield '<html lang="en">'
    yield "<head>"
    yield '<meta charset="utf-8">'
    policy = (
        "default-src 'none'; base-uri 'none'; form-action 'none'; "
        f"style-src '{_hash(style)}'; script-src '{_hash(script)}'"
    )
    yield f'<meta http-equiv="Content-Security-Policy" content="{policy}">'
    yield '<meta name="viewport" content="width=device-width, initial-scale=1">'
    yield '<meta name="color-scheme" content="light dark">'
    yield f'<meta name="generator" content="gscope {__version__}">'
    yield f"<title>{_text(facts.title)}</title>"
    yield f"<style>{style}</style>"
    yield "</head>"
    yield "<body>"
    yield from _head(report)
    yield "<main>"
    for number, rows in enumerate(report.answers, 1):
        yield from _section(rows, number, facts.time_style)
    yield from _queries(facts.queries)
    yield "</main>"
    yield f"<footer>Made by gscope {__version__}.</footer>"
    yield f"<script>{script}</script>"
    yield "</body>"
    yield "</html>"


def _text(text: str) -> str:
    """Return text as HTML; what is not printable, such as marks of direction, is escaped."""
    return escape(printable(text))


def _head(report: Report) -> Iterator[str]:
    facts = report.facts
    yield "<header>"
    yield f"<h1>{_text(facts.title)}</h1>"
    yield "<dl>"
    for name, value in (*facts.entries, ("times", _ZONES[facts.time_style])):
        yield f"<div><dt>{_text(name)}</dt><dd>{_text(value)}</dd></div>"
    yield "</dl>"
    yield from _losses(facts)
    if len(report.answers) > 1:
        links = "".join(
            f'<li><a href="#a{number}">{_text(rows.answer.query)}</a></li>'
            for number, rows in enumerate(report.answers, 1)
        )
        yield f'<nav aria-label="answers"><ul>{links}</ul></nav>'
    yield "</header>"


def _losses(facts: Facts) -> Iterator[str]:
    if facts.losses:
        yield '<section class="losses" aria-labelledby="losses">'
        yield '<h2 id="losses">Losses and damage</h2><ul>'
        for sentence in facts.losses:
            yield f"<li>{_text(sentence)}</li>"
        yield "</ul></section>"
    if not facts.accounts:
        return
    heading, *body = facts.accounts
    size = " tall" if len(body) > _TALL else ""
    yield f'<div class="scroll{size}" tabindex="0" role="region" aria-label="account of packets">'
    yield '<table class="accounts"><caption>Account of all packets</caption><thead><tr>'
    yield "".join(f'<th scope="col"{_right(p)}>{_text(t)}</th>' for p, t in enumerate(heading))
    yield "</tr></thead><tbody>"
    for row in body:
        cells = "".join(f"<td{_right(p)}>{_text(t)}</td>" for p, t in enumerate(row))
        yield f"<tr>{cells}</tr>"
    yield "</tbody></table></div>"


def _right(place: int) -> str:
    return ' class="n"' if place else ""


def _section(rows: AnsweredRows, number: int, style: TimeStyle) -> Iterator[str]:
    yield f'<section class="answer" id="a{number}" aria-labelledby="h{number}">'
    yield f'<h2 id="h{number}">{_text(rows.answer.query)}</h2>'
    for sentence in rows.marks:
        yield f'<p class="mark">{_text(sentence)}</p>'
    plots = plots_of(rows)
    for place, plot in enumerate(plots, 1):
        yield from _figure(plot, f"p{number}-{place}", style)
    if (left := len(rows.answer.measures) - len(plots)) and plots:
        yield f"<p>{left:,} further columns have no plot.</p>"
    if not rows.total:
        yield f"<p>{caption(rows)}</p>"
    yield from table_html(rows, f"t{number}")
    yield "</section>"


def _figure(plot: Plot, name: str, style: TimeStyle) -> Iterator[str]:
    text = escape(described(plot, style))
    yield f'<figure class="plot" id="{name}" tabindex="0" aria-label="{text}">'
    yield f"<figcaption>{_text(title(plot))}</figcaption>"
    yield from _legend(plot)
    yield f'<div class="wide">{svg_in_page(plot, style, WIDE)}</div>'
    yield f'<div class="narrow">{svg_in_page(plot, style, NARROW)}</div>'
    if plot.notes:
        yield f'<p class="notes">{_text(" ".join(plot.notes))}</p>'
    data = json.dumps(plot_data(plot, style), ensure_ascii=True, separators=(",", ":"))
    for character, safe in _UNSAFE_IN_SCRIPT.items():
        data = data.replace(character, safe)
    yield f'<script type="application/json">{data}</script>'
    yield "</figure>"


def _legend(plot: Plot) -> Iterator[str]:
    if len(plot.lines) == 1 and plot.lines[0].label == plot.measure:
        return
    items = "".join(
        f'<li class="{_colour_class(colour(line))}">{_text(line.label)}</li>' for line in plot.lines
    )
    yield f'<ul class="legend" aria-label="series">{items}</ul>'


def plot_data(plot: Plot, style: TimeStyle) -> dict[str, Any]:
    """Return the points of a plot for the script that reads them out.

    Times have one list for all lines. A line has the places of its times in it, and its values.
    """
    drawn = [~np.isnan(line.values) for line in plot.lines]
    times = np.unique(
        np.concatenate(
            [line.times_ns[known] for line, known in zip(plot.lines, drawn, strict=True)]
        )
    )
    axis = clock_axis(plot, style)
    first, last = axis.first_ns, axis.last_ns
    lines = [
        {
            "label": printable(line.label),
            "i": np.searchsorted(times, line.times_ns[known]).tolist(),
            "v": [_plain(value) for value in line.values[known].tolist()],
        }
        for line, known in zip(plot.lines, drawn, strict=True)
    ]
    at = [round(each, 6) for each in ((times - first) / (last - first)).tolist()]
    texts = clock_texts(times.tolist(), style, plot.grain_ns)
    return {"measure": printable(title(plot)), "times": texts, "at": at, "lines": lines}


def _plain(value: float) -> float | int:
    return int(value) if value == int(value) and abs(value) < 1 << 53 else value


def _queries(queries: Sequence[tuple[str, str]]) -> Iterator[str]:
    if not queries:
        return
    yield '<section class="queries" aria-labelledby="queries"><h2 id="queries">Queries</h2>'
    for source, text in queries:
        yield f"<h3>{_text(source)}</h3>"
        lines = "\n".join(printable(line) for line in text.replace("\t", "    ").splitlines())
        yield f"<pre>{escape(lines)}</pre>"
    yield "</section>"


def _colour_class(value: str) -> str:
    return f"c{value[1:]}"


def _colour_rules() -> str:
    """Return the rules for the marks of a legend."""
    return "".join(
        f".{_colour_class(each)}::before{{background:{each}}}\n" for each in (*COLOURS, REST_COLOUR)
    )


def _hash(text: str) -> str:
    return "sha256-" + base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()


@cache
def _asset(name: str) -> str:
    return files("gscope.cli.report").joinpath("assets", name).read_text(encoding="utf-8")
