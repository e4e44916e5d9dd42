"""What clients send to the Flight servers of gscope: a JSON object."""

from __future__ import annotations

import json
from typing import Any

from gscope.errors import StreamError


def request_fields(request: bytes) -> dict[str, Any]:
    """Return the fields of a request.

    Raises:
        StreamError: it is not a JSON object.
    """
    try:
        fields = json.loads(request)
    except (ValueError, RecursionError) as error:
        message = "the request is not JSON"
        raise StreamError(message) from error
    if not isinstance(fields, dict):
        message = "the request is not a JSON object"
        raise StreamError(message)
    return fields
