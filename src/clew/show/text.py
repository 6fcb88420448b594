"""How values, tables and answers are shown: as text for people, as plain data for programs.

Text never holds a control character: what comes from data is escaped, so that printing a row
cannot steer a terminal. An answer is a list of `Line`s, each with the part it plays; `repr` joins
them, the command line gives each part its style.
"""

from __future__ import annotations

import datetime as dt
import json
import math
import re
import unicodedata
from collections.abc import Mapping, Sequence
from decimal import Decimal
from typing import Any, Literal, NamedTuple

_ELLIPSIS = "..."
_MAX_CELL = 70
_NUMBER = re.compile(r"-?[0-9][0-9,]*(\.[0-9]+)?(e[-+]?[0-9]+)?( ?(%|[kMGT]?B|h|min|m?s|us))?")
_ID_LENGTH = 32
_NOTHING = frozenset({"", "-", "null"})

Part = Literal["headline", "header", "row", "note", "warning"]


class Line(NamedTuple):
    """One line of an answer, and the part it plays."""

    part: Part
    text: str


def escape(text: str) -> str:
    r"""Replace what is not printable by its escape.

    Examples:
        >>> escape("red\x1b[31m\n")
        'red\\x1b[31m\\n'
    """
    if text.isprintable():
        return text
    return "".join(
        each if each.isprintable() else each.encode("unicode_escape").decode("ascii")
        for each in text
    )


def plain(value: Any) -> Any:
    r"""Turn a value of a row into something that JSON can hold.

    Points in time become ISO text in UTC, decimals text, bytes hexadecimal digits, maps objects.
    A number that JSON does not have (`NaN`, infinity) becomes its name.

    Examples:
        >>> plain({"at": dt.datetime(2026, 1, 1, tzinfo=dt.timezone.utc), "raw": b"\x01"})
        {'at': '2026-01-01T00:00:00Z', 'raw': '01'}
    """
    if value is None or isinstance(value, bool | int | str):
        return value
    if isinstance(value, float):
        return value if math.isfinite(value) else _name_of(value)
    if isinstance(value, Mapping):
        return {_key(key): plain(each) for key, each in value.items()}
    if isinstance(value, Sequence) and not isinstance(value, bytes | bytearray | memoryview):
        return [plain(each) for each in value]
    return _as_text(value)


def _as_text(value: Any) -> str:
    if isinstance(value, dt.datetime):
        return iso(value)
    if isinstance(value, dt.date | dt.time):
        return value.isoformat()
    if isinstance(value, bytes | bytearray | memoryview):
        return bytes(value).hex()
    return str(value)


def _name_of(value: float) -> str:
    if math.isnan(value):
        return "NaN"
    return "Infinity" if value > 0 else "-Infinity"


def _key(value: Any) -> str:
    return value if isinstance(value, str) else cell(value)


def iso(value: dt.datetime) -> str:
    """Write a point in time as ISO text in UTC; one without a zone stays without.

    Examples:
        >>> iso(dt.datetime(2026, 1, 1, 8, 0, 0, 500000, tzinfo=dt.timezone.utc))
        '2026-01-01T08:00:00.500000Z'
    """
    if value.tzinfo is None:
        return value.isoformat()
    return value.astimezone(dt.timezone.utc).replace(tzinfo=None).isoformat() + "Z"


def cell(value: Any) -> str:
    """Write a value on one line."""
    if value is None:
        return "null"
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, str):
        return escape(value)
    if isinstance(value, Decimal):
        return str(value)
    simple = plain(value)
    if isinstance(simple, str):
        return escape(simple)
    return escape(json.dumps(simple, ensure_ascii=False))


def table(header: Sequence[str], rows: Sequence[Sequence[str]], *, keep: int = 1) -> list[Line]:
    """Align cells in columns under a header; columns of numbers stand at the right.

    Args:
        header: The names of the columns.
        rows: The cells.
        keep: How many columns at the left are never shortened.
    """
    shown = [
        [escape(each) if i < keep else _shorten(escape(each)) for i, each in enumerate(row)]
        for row in (header, *rows)
    ]
    columns = list(zip(*shown, strict=True))
    shapes = [
        (max(map(_width, each)), i >= keep and _is_numbers(each[1:]))
        for i, each in enumerate(columns)
    ]
    lines = [
        "  ".join(_pad(each, *shape) for each, shape in zip(row, shapes, strict=True)).rstrip()
        for row in shown
    ]
    return [Line("header", lines[0]), *(Line("row", each) for each in lines[1:])]


def join(lines: Sequence[Line]) -> str:
    """Put lines together as text."""
    return "\n".join(each.text for each in lines)


def count(number: int, noun: str) -> str:
    """Write a number and its noun.

    Examples:
        >>> count(1, "row"), count(1200, "row"), count(2, "batch")
        ('1 row', '1,200 rows', '2 batches')
    """
    ending = "es" if noun.endswith(("ch", "s")) else "s"
    return f"{number:,} {noun}" + ("" if number == 1 else ending)


def listing(parts: Sequence[str]) -> str:
    """Write a list in a sentence.

    Examples:
        >>> listing(["a", "b", "c"])
        'a, b and c'
    """
    if len(parts) < 2:
        return "".join(parts)
    return f"{', '.join(parts[:-1])} and {parts[-1]}"


def _shorten(text: str) -> str:
    if len(text) <= _MAX_CELL:
        return text
    return text[: _MAX_CELL - len(_ELLIPSIS)] + _ELLIPSIS


def _is_numbers(cells: Sequence[str]) -> bool:
    """Tell whether a column holds numbers, with or without a unit, and nothing else."""
    known = [each for each in cells if each not in _NOTHING]
    # A row id may happen to have no letter in it, and is no number for that.
    return bool(known) and all(len(each) < _ID_LENGTH and _NUMBER.fullmatch(each) for each in known)


def _pad(text: str, width: int, is_number: bool) -> str:  # noqa: FBT001 (one of two shapes)
    room = " " * (width - _width(text))
    return room + text if is_number else text + room


def _width(text: str) -> int:
    if text.isascii():
        return len(text)
    wide = sum(unicodedata.east_asian_width(each) in "WF" for each in text)
    marks = sum(unicodedata.combining(each) != 0 for each in text)
    return len(text) + wide - marks
