"""The form of a source row, the same in every source.

A row is a dict. Timestamps are integers, microseconds since 1970 in UTC; arrays and windows are
tuples; `rid` is the row's number in its source.
"""

from __future__ import annotations

from typing import Any, Literal, TypeAlias

Row: TypeAlias = dict[str, Any]
Tables: TypeAlias = dict[str, list[Row]]
Batches: TypeAlias = dict[str, list[list[Row]]]
Kind: TypeAlias = Literal["int", "long", "double", "string", "timestamp", "array", "window"]
How: TypeAlias = Literal["inner", "left", "right", "full", "leftsemi", "leftanti"]

SECOND = 1_000_000
"""Microseconds in a second: the unit of every timestamp here."""

BASE = 1_767_225_600 * SECOND
"""2026-01-01 00:00:00 UTC, where the random event times start."""

COLUMNS: dict[str, Kind] = {
    "rid": "long",
    "ts": "timestamp",
    "k": "string",
    "g": "int",
    "v": "int",
    "tags": "array",
}
"""The schema that every source has."""

DDL = "rid long, ts timestamp, k string, g int, v int, tags array<int>"
