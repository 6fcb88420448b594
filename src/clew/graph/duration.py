"""Lengths of time as Spark writes them."""

from __future__ import annotations

import re

_UNITS = {
    "microsecond": 1,
    "millisecond": 1_000,
    "second": 1_000_000,
    "minute": 60_000_000,
    "hour": 3_600_000_000,
    "day": 86_400_000_000,
    "week": 604_800_000_000,
}
_AMOUNT = re.compile(r"(\d+)\s*([a-z]+?)s?\b")


def micros(text: str) -> int | None:
    """Read a length of time, in microseconds; None if it is none, or not of a fixed length.

    Examples:
        >>> micros("1 minute 30 seconds")
        90000000
        >>> micros("1 month") is None
        True
    """
    parts = _AMOUNT.findall(text.lower().removeprefix("interval "))
    if not parts or any(unit not in _UNITS for _, unit in parts):
        return None
    return sum(int(amount) * _UNITS[unit] for amount, unit in parts)
