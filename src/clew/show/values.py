"""Values and names as PROV and XML Schema spell them.

A row's values become literals with a type of XML Schema; what has no such type (structs, arrays,
maps) becomes JSON text. Names that come from data are percent-encoded but for letters, digits and
`_`, so they are names in every form without any escape of its own.
"""

from __future__ import annotations

import datetime as dt
import json
import math
from dataclasses import dataclass
from decimal import Decimal
from typing import TYPE_CHECKING, Any

from clew import show

if TYPE_CHECKING:
    from collections.abc import Mapping

_LONG = 1 << 63
_PLAIN = frozenset(b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_")

PREFIXES: Mapping[str, str] = {
    "clew": "urn:clew:term:",
    "column": "urn:clew:column:",
    "query": "urn:clew:query:",
    "row": "urn:clew:row:",
}
"""The namespaces of what an exported answer names."""


@dataclass(frozen=True, slots=True)
class Literal:
    """A value: its text, and its type unless it is plain text."""

    text: str
    type: str | None = None


def encode(name: str) -> str:
    """Write any text as a local name.

    Examples:
        >>> encode("stopped cars/v2")
        'stopped%20cars%2Fv2'
    """
    return "".join(chr(b) if b in _PLAIN else f"%{b:02X}" for b in name.encode())


def literal(value: Any) -> Literal | None:
    """Write a value of a row; null has none.

    Examples:
        >>> literal(7)
        Literal(text='7', type='xsd:long')
        >>> literal(float("-inf"))
        Literal(text='-INF', type='xsd:double')
        >>> literal([1, None])
        Literal(text='[1, null]', type=None)
    """
    if value is None:
        return None
    if isinstance(value, bool):
        return Literal("true" if value else "false", "xsd:boolean")
    if isinstance(value, int):
        kind = "xsd:long" if -_LONG <= value < _LONG else "xsd:integer"
        return Literal(str(value), kind)
    if isinstance(value, float):
        return Literal(_double(value), "xsd:double")
    if isinstance(value, str):
        return Literal(value)
    return _other(value)


def _other(value: Any) -> Literal:
    if isinstance(value, Decimal):
        return Literal(f"{value:f}", "xsd:decimal")
    if isinstance(value, dt.datetime):
        return Literal(show.iso(value), "xsd:dateTime")
    if isinstance(value, dt.date):
        return Literal(value.isoformat(), "xsd:date")
    if isinstance(value, dt.time):
        return Literal(value.isoformat(), "xsd:time")
    if isinstance(value, bytes | bytearray | memoryview):
        return Literal(bytes(value).hex().upper(), "xsd:hexBinary")
    return Literal(json.dumps(show.plain(value), ensure_ascii=False))


def _double(value: float) -> str:
    if math.isnan(value):
        return "NaN"
    if math.isinf(value):
        return "INF" if value > 0 else "-INF"
    return repr(value)
