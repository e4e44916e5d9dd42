"""Plots as SVG and PNG, drawn by Vega-Lite in this process.

That works without a browser, and without a network. The text of a plot comes from packets. It
enters the specification as data and as literal strings only, never as an expression or a name of a
field.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any
from xml.sax.saxutils import quoteattr

import numpy as np

from gscope.cli.report.clock_text import clock_text
from gscope.cli.report.time_axis import clock_axis
from gscope.errors import UsageError
from gscope.records import dataclass

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from types import ModuleType

    from gscope.cli.config.time_style import TimeStyle
    from gscope.cli.report.series import Line, Plot
    from gscope.cli.report.time_axis import ClockAxis

COLOURS = (
    "#3b82c4",
    "#d06a0c",
    "#2f9462",
    "#c2559d",
    "#8468cc",
    "#a07c1e",
    "#d64545",
    "#2391a0",
)
"""The colours of lines, which stand out from white and from black."""

REST_COLOUR = "#80858f"
_WHOLE, _DASHED = [1, 0], [5, 3]
_MOST_DOTS = 40
"""The most points of a line that are all shown as dots."""

_SCHEMA = "https://vega.github.io/schema/vega-lite/v6.json"
_LEGEND_COLUMNS_WIDTH = 250
_LONGEST_LABEL = 230
_LEAST_WITH_PREFIX = 10_000

_CHARACTER_WIDTH = 8
"""Pixels of a character in a label: fonts of browsers may be wider than that of the layout."""

_MORE_TICKS = 1.6
"""How many times as many ticks as requested Vega chooses at most: steps are 1, 2 and 5."""


@dataclass(frozen=True, slots=True)
class PlotSize:
    """The size of a plot.

    Attributes:
        width: the width of its area, without axes, in pixels.
        height: the height.
    """

    width: int
    height: int


WIDE = PlotSize(880, 220)
NARROW = PlotSize(300, 180)


def ensure_plots(what: str) -> None:
    """Check that the library for plots is installed.

    Args:
        what: what needs it.

    Raises:
        UsageError: it is not.
    """
    _library(what)


def _library(what: str) -> ModuleType:
    try:
        import vl_convert
    except ImportError as error:
        message = f"{what} needs vl-convert-python; install it with: pip install 'gscope[report]'"
        raise UsageError(message) from error
    library: ModuleType = vl_convert
    return library


def svg_in_page(plot: Plot, style: TimeStyle, size: PlotSize) -> str:
    """Return a plot for a page, which has its legend and chooses its colours of text."""
    text: str = _library("a report").vegalite_to_svg(_specification(plot, style, size))
    return _described(text, described(plot, style), "plot")


def svg_alone(plots: Sequence[Plot], style: TimeStyle) -> str:
    """Return the plots of an answer as an SVG of its own, one below the other."""
    text: str = _library("-o svg").vegalite_to_svg(_stacked(plots, style))
    return _described(text, "; ".join(described(each, style) for each in plots), "plot") + "\n"


def png_alone(plots: Sequence[Plot], style: TimeStyle) -> bytes:
    """Return the plots of an answer as a picture, with two pixels for each of an SVG."""
    data: bytes = _library("-o png").vegalite_to_png(_stacked(plots, style), scale=2)
    return data


def _stacked(plots: Sequence[Plot], style: TimeStyle) -> dict[str, Any]:
    return {
        "$schema": _SCHEMA,
        "padding": 10,
        "vconcat": [_body(plot, style, WIDE, is_alone=True) for plot in plots],
        "resolve": {"scale": {"color": "independent", "strokeDash": "independent"}},
        "config": _config(is_alone=True),
    }


def described(plot: Plot, style: TimeStyle) -> str:
    """Return what a plot shows, in a sentence."""
    first, last = (clock_text(each, style, plot.grain_ns) for each in (plot.first_ns, plot.last_ns))
    lines = [line for line in plot.lines if len(line.values)]
    greatest = max(float(np.nanmax(line.values)) for line in lines)
    named = f" of {len(lines)} series" if len(lines) > 1 else ""
    span = f"from {first} to {last}" if first != last else f"at {first}"
    return f"{title(plot)} over time{named}, {span}; the greatest value is {greatest:,.6g}"


def title(plot: Plot) -> str:
    """Return the heading of a plot."""
    return f"{plot.measure} ({plot.unit})" if plot.unit else plot.measure


def colour(line: Line) -> str:
    """Return the colour of a line."""
    return REST_COLOUR if line.is_rest else COLOURS[line.colour]


def _described(svg: str, text: str, name: str) -> str:
    """Return an SVG that says what it shows to programs that read it aloud."""
    opening = f'<svg role="img" class="{name}" aria-label={quoteattr(text)}'
    return svg.replace("<svg", opening, 1).replace(' class="marks"', "", 1)


def _specification(plot: Plot, style: TimeStyle, size: PlotSize) -> dict[str, Any]:
    """Return a plot for a page in Vega-Lite's terms."""
    return {
        "$schema": _SCHEMA,
        "padding": {"left": 2, "top": 6, "right": 14, "bottom": 2},
        **_body(plot, style, size, is_alone=False),
        "config": _config(is_alone=False),
    }


def _body(plot: Plot, style: TimeStyle, size: PlotSize, *, is_alone: bool) -> dict[str, Any]:
    """Return the area of a plot: its points, axes and lines."""
    labels = [line.label for line in plot.lines]
    axis = clock_axis(plot, style)
    has_names = len(labels) > 1 or labels[0] != plot.measure
    columns = max(1, size.width // _LEGEND_COLUMNS_WIDTH)
    legend = {
        "title": None,
        "orient": "top",
        "columns": columns,
        "labelLimit": _LONGEST_LABEL,
        "symbolType": "stroke",
        "symbolStrokeWidth": 3,
    }
    across = {
        "field": "t",
        **axis.encoding,
        "axis": {
            "format": axis.label_format,
            **_ticks(axis, size),
            "labelOverlap": False,
            "labelFlush": False,
        },
    }
    up = {
        "field": "v",
        "type": "quantitative",
        "title": title(plot) if is_alone else None,
        "scale": {"zero": True, "nice": True},
        "axis": {
            "format": _number_format(plot),
            "tickCount": 5,
            "tickMinStep": 1 if _is_whole(plot) else 0,
            "labelExpr": "datum.value === 0 ? '0' : datum.label",
        },
    }
    series = {
        "field": "s",
        "type": "nominal",
        "scale": {
            "domain": labels,
            "range": [colour(line) for line in plot.lines],
        },
        "legend": legend if is_alone and has_names else None,
    }
    dashes = {
        "field": "s",
        "type": "nominal",
        "scale": {
            "domain": labels,
            "range": [_DASHED if line.is_rest else _WHOLE for line in plot.lines],
        },
        "legend": None,
    }
    encoding = {"x": across, "y": up, "color": series}
    dots = {
        "transform": [{"filter": {"field": "d", "equal": 1}}],
        "mark": {"type": "point", "filled": True, "size": 22, "opacity": 1},
        "encoding": encoding,
    }
    lines = {
        "mark": {"type": "line", "strokeWidth": 1.75, "strokeJoin": "round", "clip": False},
        "encoding": encoding | {"strokeDash": dashes},
    }
    heading = (
        {"text": f"{plot.query}: {title(plot)}", "subtitle": list(plot.notes)} if is_alone else None
    )
    return {
        "width": size.width,
        "height": size.height,
        "data": {"values": list(_points(plot, axis))},
        "layer": [dots] if plot.is_scattered else [lines, dots],
        **({} if heading is None else {"title": heading}),
    }


def _points(plot: Plot, axis: ClockAxis) -> Iterator[dict[str, Any]]:
    """Yield the points of all lines; ``d`` is 1 if a point is drawn as a dot."""
    for line in plot.lines:
        is_value = ~np.isnan(line.values)
        # A value between gaps has nothing to be connected with.
        before = np.concatenate(([False], is_value[:-1]))
        behind = np.concatenate((is_value[1:], [False]))
        is_dot = is_value & ~before & ~behind
        if plot.is_scattered or int(is_value.sum()) <= _MOST_DOTS:
            is_dot = is_value & (plot.is_scattered | (line.values != 0))
        for moment, value, known, dot in zip(
            line.times_ns.tolist(),
            line.values.tolist(),
            is_value.tolist(),
            is_dot.tolist(),
            strict=True,
        ):
            yield {
                "t": axis.place(moment),
                "v": value if known else None,
                "s": line.label,
                "d": int(dot),
            }


def _ticks(axis: ClockAxis, size: PlotSize) -> dict[str, Any]:
    """Return the ticks of a calendar, or how many to choose, so that labels do not overlap."""
    most = min(10, size.width / (_CHARACTER_WIDTH * (axis.label_length + 1)))
    if axis.is_calendar:
        # As an expression of numbers: of a list, Vega-Lite makes dates, of which some get no tick.
        return {"values": {"expr": str(axis.ticks_ms(most))}}
    return {"tickCount": max(2, int(most / _MORE_TICKS))}


def _is_whole(plot: Plot) -> bool:
    """Return whether all values are integers."""
    values = (line.values[~np.isnan(line.values)] for line in plot.lines)
    return all(bool((each == np.floor(each)).all()) for each in values)


def _number_format(plot: Plot) -> str:
    """Return the format of values: with k, M and G from 10,000 on."""
    greatest = max(
        (float(np.nanmax(np.abs(line.values))) for line in plot.lines if len(line.values)),
        default=0.0,
    )
    return "~s" if greatest >= _LEAST_WITH_PREFIX else ",~f"


def _config(*, is_alone: bool) -> dict[str, Any]:
    text = {"labelFontSize": 12, "titleFontSize": 12, "titleFontWeight": "normal"}
    return {
        "aria": False,
        "background": "#ffffff" if is_alone else None,
        "font": "sans-serif",
        "view": {"stroke": None},
        "axis": {**text, "grid": True, "gridColor": "#d5d8dd", "domainColor": "#888888"},
        "axisX": {"grid": False, "tickColor": "#888888"},
        "axisY": {"domain": False, "ticks": False, "labelPadding": 6},
        "title": {"anchor": "start", "fontSize": 14, "subtitleFontSize": 12},
        "legend": {"labelFontSize": 12},
    }
