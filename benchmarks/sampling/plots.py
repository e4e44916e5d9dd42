"""Plots of the benchmarks of samples (needs the extra ``bench``): one panel for each experiment."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

    Points = Sequence[tuple[float, float]]


@dataclass(frozen=True, slots=True)
class Panel:
    """One experiment; all values are shares from 0 to 1, shown in percent.

    Attributes:
        title: above it.
        y_label: beside it.
        curves: measured points by name, in the order of the rate.
        published: published points by name.
        band: the published range of values, and its name; None for none.
        lines: values that do not depend on the rate, by name.
        least: where the axis of values begins.
    """

    title: str
    y_label: str
    curves: Mapping[str, Points]
    published: Mapping[str, Points] = field(default_factory=dict)
    band: tuple[float, float, str] | None = None
    lines: Mapping[str, float] = field(default_factory=dict)
    least: float = 0.0


def plot_panels(panels: Sequence[Panel], path: Path, *, has_log_rates: bool = False) -> None:
    """Plot values over the sampling rate.

    Args:
        panels: from left to right.
        path: the image to write.
        has_log_rates: whether the axis of rates is logarithmic.
    """
    from matplotlib.figure import Figure
    from matplotlib.ticker import FuncFormatter, MultipleLocator

    percent = FuncFormatter(lambda value, _: f"{100 * value:.4g}%")
    figure = Figure(figsize=(5.4 * len(panels), 5.4))
    for axis, panel in zip(figure.subplots(1, len(panels), squeeze=False)[0], panels, strict=True):
        if panel.band is not None:
            low, high, name = panel.band
            axis.axhspan(low, high, color="tab:gray", alpha=0.25, label=name)
        for name, points in panel.curves.items():
            axis.plot(*zip(*points, strict=True), "o-", markersize=4, label=name)
        for style, (name, points) in zip(("--", ":", "-."), panel.published.items(), strict=False):
            axis.plot(*zip(*points, strict=True), style, color="black", label=name)
        for name, value in panel.lines.items():
            axis.axhline(value, linestyle="--", linewidth=1, color="tab:gray", label=name)
        if has_log_rates:
            axis.set_xscale("log")
            axis.set_xticks(sorted({x for each in panel.curves.values() for x, _ in each}))
            axis.minorticks_off()
        else:
            axis.set_xlim(left=0)
            axis.xaxis.set_major_locator(MultipleLocator(0.04))
        axis.set_ylim(bottom=panel.least)
        axis.xaxis.set_major_formatter(percent)
        axis.yaxis.set_major_formatter(percent)
        axis.set_title(panel.title, fontsize=11)
        axis.set_xlabel("sampling rate")
        axis.set_ylabel(panel.y_label)
        axis.grid(visible=True, alpha=0.3)
        # Below the panel, where it hides no curve.
        axis.legend(fontsize=8, loc="upper center", bbox_to_anchor=(0.5, -0.13), ncol=2)
    figure.tight_layout()
    figure.savefig(path, dpi=130)
