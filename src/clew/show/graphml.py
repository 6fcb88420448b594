"""GraphML, for tools that draw and measure graphs.

Nodes are rows and edges lead the way that data went, from a source row to the row made of it. XML
has no control characters, so those are written as escapes, and a lone surrogate likewise.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING
from urllib.parse import unquote
from xml.sax.saxutils import escape, quoteattr

from clew.show.statements import row_name

if TYPE_CHECKING:
    from collections.abc import Iterator

    from clew.show.statements import Statements
    from clew.show.values import Literal

_FORBIDDEN = re.compile("[^\t\n\r -\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
_TYPES = {"xsd:boolean": "boolean", "xsd:long": "long", "xsd:double": "double"}
_OURS = ("type", "stream", "id", "segment", "position", "time")


def graphml(said: Statements) -> Iterator[str]:
    """Write GraphML."""
    yield '<?xml version="1.0" encoding="UTF-8"?>\n'
    yield '<graphml xmlns="http://graphml.graphdrawing.org/xmlns">\n'
    keys = _keys(said)
    for number, (name, kind) in enumerate(keys.items()):
        yield (
            f'<key id="d{number}" for="node" attr.name={quoteattr(_text(name))} '
            f'attr.type="{kind}"/>\n'
        )
    yield f'<graph id="{said.trace.direction}" edgedefault="directed">\n'
    numbers = {name: f"d{number}" for number, name in enumerate(keys)}
    for name, values in _nodes(said):
        data = "".join(
            f'<data key="{numbers[key]}">{escape(_text(_value(value, keys[key])))}</data>'
            for key, value in values.items()
        )
        yield f"<node id={quoteattr(name)}>{data}</node>\n"
    for number, edge in enumerate(said.edges):
        source, target = quoteattr(row_name(edge.source)), quoteattr(row_name(edge.sink))
        yield f'<edge id="e{number}" source={source} target={target}/>\n'
    yield "</graph>\n</graphml>\n"


def _nodes(said: Statements) -> Iterator[tuple[str, dict[str, Literal]]]:
    """Yield each row's name and its attributes, by the names that a tool shows."""
    for name, attributes in said.entities():
        shown: dict[str, Literal] = {}
        for key, value in attributes:
            shown[_shown(key)] = value
        yield name, shown


def _shown(key: str) -> str:
    prefix, _, local = key.partition(":")
    if prefix != "column":
        return local
    column = unquote(local)
    return f"row.{column}" if column in _OURS else column


def _keys(said: Statements) -> dict[str, str]:
    """Find the type of each attribute: that of all its values, or text where they differ."""
    keys: dict[str, str] = {}
    for _, values in _nodes(said):
        for key, value in values.items():
            kind = _TYPES.get(value.type or "", "string")
            keys[key] = kind if keys.setdefault(key, kind) == kind else "string"
    return keys


def _value(value: Literal, kind: str) -> str:
    text = value.text
    return text.replace("INF", "Infinity") if kind == "double" else text


def _text(text: str) -> str:
    return _FORBIDDEN.sub(lambda found: found[0].encode("unicode_escape").decode(), text)
