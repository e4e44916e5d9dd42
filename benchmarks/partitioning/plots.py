"""Plots of D5 to D8 from their CSV files: load and bytes by hosts, costs of sets.

    python -m benchmarks.partitioning.plots

Needs the extra ``bench``. It writes an SVG file beside each CSV file of this folder. The same files
and the same version of matplotlib give the same bytes.
"""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import TYPE_CHECKING, Any

from benchmarks.partitioning.figures import (
    EXPERIMENTS,
    FOLDER,
    LOAD,
    LOAD_NOISE,
    LOAD_SHARE,
    LOGARITHMIC,
    NAIVE,
    NOTES,
    PANELS,
    PUBLISHED,
    RATES,
    panel_points,
    read_curves,
    read_orders,
)

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from benchmarks.partitioning.figures import Reading

_COLORS = ("#000000", "#0072b2", "#d55e00", "#009e73", "#cc79a7")
"""Colors that differ for everyone (Okabe and Ito), one for each curve."""

_MARKERS = "osD^v"
_ANY = "#777777"
_STYLE: Any = {
    "svg.hashsalt": "gscope",
    "svg.fonttype": "none",
    "font.sans-serif": ["DejaVu Sans"],
    "font.size": 9,
}
"""Names in an SVG file that do not change from run to run, and text as text."""


def plot_experiment(name: str, rate: float, source: Path, path: Path) -> None:
    """Plot an experiment.

    Args:
        name: D5 to D8.
        rate: the packets for each second of the trace.
        source: the CSV file with its points.
        path: the image to write.
    """
    import matplotlib as mpl
    from matplotlib.figure import Figure

    curves = read_curves(source)
    with mpl.rc_context(_STYLE):
        figure: Any = Figure(figsize=(11.0, 8.2), layout="constrained")
        figure.get_layout_engine().set(rect=(0, 0.08, 1, 0.92))
        columns = figure.subfigures(2, 2, wspace=0.03, hspace=0.03).flat
        for panel, part in zip(PANELS, columns, strict=True):
            _draw_panel(part, name, panel, curves)
        figure.suptitle(
            f"{name}: {EXPERIMENTS[name]}, {rate:,.0f} packets/s\n{NOTES[name]}", fontsize=10
        )
        _draw_legend(figure, name, curves)
        _save(figure, path)


def _draw_panel(part: Any, name: str, panel: str, curves: Mapping[str, Sequence[Reading]]) -> None:
    """Draw a panel: measured points at the left, simulated ones at the right, on one scale."""
    from matplotlib.ticker import LogLocator, NullLocator, StrMethodFormatter

    left, right = part.subplots(1, 2, sharey=True, width_ratios=(3, 2))
    for number, curve in enumerate(curves):
        if curve == NAIVE and panel not in PANELS[:2]:
            continue
        style = {"color": _COLORS[number], "marker": _MARKERS[number], "markersize": 6}
        measured = panel_points(panel, curve, curves, is_simulated=False)
        simulated = panel_points(panel, curve, curves, is_simulated=True)
        gid = f"{PANELS.index(panel)}-{number}"
        left.plot(*zip(*measured, strict=True), gid=f"{gid}-measured", **style)
        right.plot(*zip(measured[-1], simulated[0], strict=True), ":", color=_COLORS[number])
        right.plot(
            *zip(*simulated, strict=True),
            *("--",),
            gid=f"{gid}-simulated",
            markerfacecolor="white",
            **style,
        )
        if panel in (LOAD, LOAD_SHARE):
            _draw_noise(left, panel, curves, measured, _COLORS[number])
    if panel in LOGARITHMIC:
        left.set_yscale("log")
        left.yaxis.set_major_locator(LogLocator(subs=(1, 2, 5)))
        left.yaxis.set_major_formatter(StrMethodFormatter("{x:g}"))
        left.yaxis.set_minor_locator(NullLocator())
    elif panel == LOAD:
        left.set_ylim(bottom=min(0.0, left.get_ylim()[0]))
    if panel not in PANELS[:2]:
        left.axhline(1, color=_COLORS[0], linewidth=0.8)
        right.axhline(1, color=_COLORS[0], linewidth=0.8)
    _draw_published(left, name, panel, list(curves))
    left.set_ylabel(panel)
    left.set_title("measured", fontsize=9)
    left.set_xlim(0.7, 4.3)
    left.set_xticks([1, 2, 3, 4])
    right.set_title("simulated", fontsize=9)
    right.set_facecolor("#eeeeee")
    right.set_xlim(3, 17)
    right.set_xticks([4, 8, 12, 16])
    for axis in (left, right):
        axis.set_xlabel("hosts")
        axis.grid(visible=True, axis="y", alpha=0.4)


def _draw_noise(
    axis: Any,
    panel: str,
    curves: Mapping[str, Sequence[Reading]],
    points: Sequence[tuple[int, float]],
    color: str,
) -> None:
    """Draw by how much the load of each point may be off."""
    naive = {each.hosts: each.load for each in curves[NAIVE]}
    noise = [
        100 * LOAD_NOISE if panel == LOAD else LOAD_NOISE / naive[hosts] for hosts, _ in points
    ]
    axis.errorbar(*zip(*points, strict=True), noise, fmt="none", ecolor=color, alpha=0.35)


def _draw_published(axis: Any, name: str, panel: str, curves: Sequence[str]) -> None:
    """Draw the published shares of a panel, in the color of their curve."""
    for each in PUBLISHED[name]:
        if each.panel != panel:
            continue
        color = _ANY if each.curve is None else _COLORS[curves.index(each.curve)]
        first, last = each.hosts[0] - 0.15, each.hosts[1] + 0.15
        axis.fill_between([first, last], each.least, each.most, color=color, alpha=0.3)
        bottom, top = axis.get_ylim()
        if panel not in LOGARITHMIC:
            axis.set_ylim(bottom=bottom - (top - bottom) / 12)
        axis.text(0.02, 0.03, each.label, transform=axis.transAxes, fontsize=8, color=color)


def _draw_legend(figure: Any, name: str, curves: Mapping[str, Sequence[Reading]]) -> None:
    from matplotlib.lines import Line2D
    from matplotlib.patches import Patch

    entries: list[Any] = [
        Line2D([], [], color=_COLORS[number], marker=_MARKERS[number], label=curve)
        for number, curve in enumerate(curves)
    ]
    entries += [
        Line2D([], [], color=_ANY, marker="o", label="filled: measured, 1 to 4 hosts"),
        Line2D(
            *([], []),
            color=_ANY,
            linestyle="--",
            marker="o",
            markerfacecolor="white",
            label="hollow: simulated, 8 to 16 hosts",
        ),
        Line2D(
            *([], []),
            color=_ANY,
            linestyle="none",
            marker="|",
            markersize=10,
            label="bars: the CPU time of a start varies by about 1 s",
        ),
    ]
    if PUBLISHED[name]:
        entries.append(Patch(facecolor=_ANY, alpha=0.3, label="published"))
    figure.legend(handles=entries, loc="lower center", ncols=3, fontsize=9, frameon=False)


def plot_orders(source: Path, hosts: int, path: Path) -> None:
    """Plot predicted and measured costs of the candidates of each query set.

    Args:
        source: the CSV file with the costs.
        hosts: the number of hosts.
        path: the image to write.
    """
    import matplotlib as mpl
    from matplotlib.figure import Figure

    found = read_orders(source)
    heights = [len(own) for own in found.values()]
    with mpl.rc_context(_STYLE):
        figure: Any = Figure(figsize=(9.0, 1.6 + 0.45 * sum(heights)), layout="constrained")
        axes = figure.subplots(len(found), 1, squeeze=False, sharex=True, height_ratios=heights)[
            :, 0
        ]
        for number, (axis, (name, own)) in enumerate(zip(axes, found.items(), strict=True)):
            candidates, predicted, measured = zip(*own, strict=True)
            places = range(len(own))
            axis.plot(
                *(predicted, places, "o"),
                color=_COLORS[1],
                markerfacecolor="none",
                label="predicted",
                gid=f"{number}-predicted",
            )
            axis.plot(
                *(measured, places, "x"),
                color=_COLORS[2],
                label="measured",
                gid=f"{number}-measured",
            )
            axis.set_yticks(places, candidates)
            axis.set_ylim(len(own) - 0.5, -0.5)
            axis.set_xscale("log")
            axis.set_title(name, loc="left", fontsize=10)
            axis.grid(visible=True, alpha=0.4)
        axes[-1].set_xlabel("bytes for each packet that hosts send, all operators")
        figure.suptitle(
            f"Costs of sets on {hosts} hosts, in the order that was predicted", fontsize=10
        )
        handles, labels = axes[0].get_legend_handles_labels()
        figure.legend(handles, labels, loc="outside lower center", ncols=2, frameon=False)
        _save(figure, path)


def _save(figure: Any, path: Path) -> None:
    """Write an image without a date, or the version of what made it."""
    kept = {"Date": None, "Creator": None} if path.suffix == ".svg" else {"Software": None}
    figure.savefig(path, dpi=110, metadata=kept)


def plot_all(folder: Path, suffix: str = ".svg") -> list[Path]:
    """Plot all committed CSV files into ``folder``; return the images."""
    made = []
    for name, rate in RATES.items():
        made.append(folder / f"{name}{suffix}")
        plot_experiment(name, rate, FOLDER / f"{name}.csv", made[-1])
    for hosts in (2, 4):
        made.append(folder / f"set_orders-{hosts}{suffix}")
        plot_orders(FOLDER / f"set_orders-{hosts}.csv", hosts, made[-1])
    return made


def _main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, allow_abbrev=False)
    parser.add_argument("--folder", type=Path, default=FOLDER, help="where to write the images")
    parser.add_argument("--png", action="store_true", help="write PNG files instead of SVG files")
    arguments = parser.parse_args()
    for path in plot_all(arguments.folder, ".png" if arguments.png else ".svg"):
        print(path)


if __name__ == "__main__":
    _main()
