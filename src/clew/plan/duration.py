"""Lengths of time as Spark writes them."""

from __future__ import annotations

import math
import re
from fractions import Fraction

_UNITS = {
    "microsecond": 1,
    "millisecond": 1_000,
    "second": 1_000_000,
    "minute": 60_000_000,
    "hour": 3_600_000_000,
    "day": 86_400_000_000,
    "week": 604_800_000_000,
}
_AMOUNT = re.compile(r"(\d+(?:\.\d+)?)\s*([a-z]+?)s?\b")


def micros(text: str) -> int | None:
    """Read a length of time, in microseconds; None if it is none, or not of a fixed length.

    Examples:
        >>> micros("1 minute 30 seconds")
        90000000
        >>> micros("30.25 seconds")
        30250000
        >>> micros("1 month") is None
        True
    """
    plain = text.lower().strip().removeprefix("interval ")
    parts = _AMOUNT.findall(plain)
    # A sign, or anything else that is left over, may change what the rest means.
    if not parts or _AMOUNT.sub("", plain).strip() or any(u not in _UNITS for _, u in parts):
        return None
    return math.ceil(sum(Fraction(amount) * _UNITS[unit] for amount, unit in parts))
