"""Pipelines as JSON."""

from __future__ import annotations

import dataclasses
import json
from typing import Any

from properties.expressions import Expr
from properties.operator_tree import Agg, Node, Spec, Window

_TYPES: dict[str, Any] = {
    kind.__name__: kind for kind in (Spec, Expr, Agg, Window, *Node.__subclasses__())
}


def to_json(spec: Spec) -> str:
    """Write a pipeline as JSON."""
    return json.dumps(_to_plain(spec))


def from_json(text: str) -> Spec:
    """Read a pipeline from JSON."""
    spec: Spec = _from_plain(json.loads(text))
    return spec


def _to_plain(value: object) -> object:
    if dataclasses.is_dataclass(value):
        fields = {f.name: _to_plain(getattr(value, f.name)) for f in dataclasses.fields(value)}
        return {"type": type(value).__name__, **fields}
    return [_to_plain(item) for item in value] if isinstance(value, tuple) else value


def _from_plain(value: Any) -> Any:
    if isinstance(value, list):
        return tuple(_from_plain(item) for item in value)
    if not isinstance(value, dict):
        return value
    made = {name: _from_plain(item) for name, item in value.items() if name != "type"}
    return _TYPES[value["type"]](**made)
