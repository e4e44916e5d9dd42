"""The seed of a run's sample, which the HFTA job reads from the settings of the capture."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from gscope.queries.run_folder.layout import CAPTURE_SETTINGS_FILE

if TYPE_CHECKING:
    from pathlib import Path


def moving_seed(run_dir: Path) -> int | None:
    """Return the seed of a sample whose thresholds follow the load.

    None if they do not, or if packets are captured on other hosts. The settings are written before
    the capture begins.
    """
    try:
        text = (run_dir / CAPTURE_SETTINGS_FILE).read_text(encoding="utf-8")
    except FileNotFoundError:
        return None
    shedding = json.loads(text).get("shedding")
    return int(shedding["seed"]) if shedding and shedding["mode"] == "auto" else None
