"""The file in which a log stores the limits above which it has removed rows.

A reader that cannot lease, because the daemon has died, reads it as well.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from gscope.errors import StreamError
from gscope.queries.streams.leases import limits_from_json, limits_to_json

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from gscope.queries.streams.thresholds import ThresholdSchedule


def limits_text(limits: Mapping[str, ThresholdSchedule]) -> str:
    """Return the contents of the file for the limits of streams."""
    return json.dumps({stream: limits_to_json(each) for stream, each in limits.items()})


def read_limits(path: Path) -> dict[str, ThresholdSchedule]:
    """Return the limits in a file; {} if there is none.

    Raises:
        StreamError: it is unreadable or damaged.
    """
    try:
        stored = json.loads(path.read_bytes())
        return {str(stream): limits_from_json(steps) for stream, steps in stored.items()}
    except FileNotFoundError:
        return {}
    except OSError as error:
        message = f"cannot read the limits {path} of the stream log: {error.strerror}"
        raise StreamError(message) from error
    except (ValueError, AttributeError) as error:
        message = f"the limits {path} of the stream log are damaged"
        raise StreamError(message) from error
