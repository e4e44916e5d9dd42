"""Plots of D5 to D8 (needs the extra ``bench``): load and bytes by hosts, costs of sets."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

    Points = Sequence[tuple[int, float]]

MEASURED = 4
"""Hosts up to which figures are measured; beyond, they are simulated."""


def plot_curves(title: str, panels: Mapping[str, Mapping[str, Points]], path: Path) -> None:
    """Plot the curves of an experiment.

    Args:
        title: above all.
        panels: curves by their name, by the label of the axis of values.
        path: the image to write.
    """
    from matplotlib.figure import Figure

    figure = Figure(figsize=(6.0 * len(panels), 5.2))
    axes = figure.subplots(1, len(panels), squeeze=False)[0]
    for axis, (label, curves) in zip(axes, panels.items(), strict=True):
        for number, (name, points) in enumerate(curves.items()):
            color = f"C{number}"
            measured = [point for point in points if point[0] <= MEASURED]
            beyond = [point for point in points if point[0] >= MEASURED]
            axis.plot(*zip(*measured, strict=True), "o-", color=color, label=name)
            if len(beyond) > 1:
                axis.plot(*zip(*beyond, strict=True), "--", color=color)
                axis.plot(*zip(*beyond[1:], strict=True), "o", color=color, markerfacecolor="white")
        axis.axvspan(MEASURED, 16.5, color="tab:gray", alpha=0.12)
        axis.text(MEASURED + 0.2, 0.98, "simulated", transform=axis.get_xaxis_transform(), va="top")
        axis.set_xlim(0.5, 16.5)
        axis.set_ylim(bottom=0)
        axis.set_xticks([1, 2, 3, 4, 8, 12, 16])
        axis.set_xlabel("hosts")
        axis.set_ylabel(label)
        axis.grid(visible=True, alpha=0.3)
    axes[0].legend(fontsize=8, loc="upper center", bbox_to_anchor=(1.0, -0.13), ncol=2)
    figure.suptitle(title)
    figure.tight_layout()
    figure.savefig(path, dpi=120)


def plot_orders(found: Mapping[str, Sequence[tuple[str, float, float]]], path: Path) -> None:
    """Plot predicted and measured costs of the candidates of each query set.

    Args:
        found: the name, predicted and measured cost of each candidate, by the name of the set.
        path: the image to write.
    """
    from matplotlib.figure import Figure

    heights = [len(own) for own in found.values()]
    figure = Figure(figsize=(9.0, 1.2 + 0.45 * sum(heights)))
    axes = figure.subplots(len(found), 1, squeeze=False, sharex=True, height_ratios=heights)[:, 0]
    for axis, (name, own) in zip(axes, found.items(), strict=True):
        candidates, predicted, measured = zip(*own, strict=True)
        places = range(len(own))
        axis.plot(predicted, places, "o", color="C0", markerfacecolor="none", label="predicted")
        axis.plot(measured, places, "x", color="C3", label="measured")
        axis.set_yticks(places, candidates)
        axis.set_ylim(len(own) - 0.5, -0.5)
        axis.set_xscale("log")
        axis.set_title(name, loc="left", fontsize=10)
        axis.grid(visible=True, alpha=0.3)
    axes[-1].set_xlabel("bytes for each packet that hosts send, all operators")
    axes[0].legend(fontsize=8, loc="best")
    figure.tight_layout()
    figure.savefig(path, dpi=120)
