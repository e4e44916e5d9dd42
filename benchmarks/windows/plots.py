"""Plots of the benchmarks of windows (needs the extra ``bench``)."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path


def plot_curves(
    panels: Mapping[str, Mapping[str, Sequence[tuple[float, float]]]],
    x_label: str,
    y_label: str,
    path: Path,
) -> None:
    """Plot curves over a doubling x, one panel for each title; the y axis is logarithmic.

    Args:
        panels: for each title the curves by name, each as points in the order of x.
        x_label: below each panel.
        y_label: beside each panel.
        path: the image to write.
    """
    from matplotlib.figure import Figure

    figure = Figure(figsize=(5.5 * len(panels), 4.2))
    for axis, (title, curves) in zip(
        figure.subplots(1, len(panels), squeeze=False)[0], panels.items(), strict=True
    ):
        for name, points in curves.items():
            axis.plot([x for x, _ in points], [y for _, y in points], "o-", label=name)
        axis.set_xscale("log", base=2)
        axis.set_yscale("log")
        axis.set_title(title)
        axis.set_xlabel(x_label)
        axis.set_ylabel(y_label)
        axis.grid(visible=True, alpha=0.3)
        axis.legend(fontsize=8)
    figure.tight_layout()
    figure.savefig(path, dpi=130)
