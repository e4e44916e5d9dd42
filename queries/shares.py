"""Shares as users write them: ``0.1``, ``10%`` or ``1/10``."""

from __future__ import annotations

import re
from fractions import Fraction

_SHARE = re.compile(r"\s*([0-9]*\.?[0-9]+([eE]-?[0-9]{1,2})?|[0-9]+\s*/\s*[0-9]+)\s*")
_LONGEST_SHARE = 40


def parse_share(text: str) -> float:
    """Return the number of ``0.1``, ``10%`` or ``1/10``: above 0, and at most 1.

    Raises:
        ValueError: the text is not such a share; the message says what is expected.
    """
    number = text.strip().removesuffix("%")
    scale = 100 if number != text.strip() else 1
    if len(number) <= _LONGEST_SHARE and _SHARE.fullmatch(number):
        try:
            share = float(Fraction(number.replace(" ", "")) / scale)
        except (ValueError, ZeroDivisionError):
            share = 0.0
        if 0 < share <= 1:
            return share
    message = f"invalid rate {text!r}: expected above 0 and at most 1, such as 0.1, 10% or 1/10"
    raise ValueError(message)
