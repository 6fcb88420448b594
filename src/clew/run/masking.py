"""What a mask means for a query: whether it can be held, and what is stored of the pipeline.

What would keep values as they are beside the rows, or decide something by values that are masked,
is refused before anything is written.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pyspark.sql import types as T

from clew.again.around import around
from clew.again.carried import repeating
from clew.again.points import pointed_sources
from clew.exceptions import WriterError
from clew.operators.source import Source
from clew.sources.identity import KeyIdentity

if TYPE_CHECKING:
    from collections.abc import Sequence

    from clew.capture.kinds import CaptureKind
    from clew.plan.mask import Mask
    from clew.plan.node import Node

HIDDEN = "?"
"""What stands for a text that may hold literals."""

_HASHABLE = (
    T.StringType,
    T.IntegralType,
    T.DecimalType,
    T.BooleanType,
    T.DateType,
    T.BinaryType,
)


def check_mask(mask: Mask, node: Node, capture: CaptureKind, event_time: str | None) -> None:
    """Refuse a mask that could not be held.

    Raises:
        WriterError: The message says which column, and why.
    """
    fields = [field for each in node.walk() for field in each.schema.fields]
    known = {field.name.lower() for field in fields}
    for name, way in mask.columns:
        if name not in known:
            named = ", ".join(f"`{each}`" for each in dict.fromkeys(f.name for f in fields))
            msg = (
                f"`mask` names the column `{name}`, and no frame of the query has it.\n\nThe "
                f"columns are: {named}. A field inside of a column is masked with the column."
            )
            raise WriterError(msg)
        kinds = [field.dataType for field in fields if field.name.lower() == name]
        if way == "hash" and not all(isinstance(kind, _HASHABLE) for kind in kinds):
            shown = next(k for k in kinds if not isinstance(k, _HASHABLE)).simpleString()
            msg = (
                f"the column `{name}` is `{shown}`, and only texts, whole numbers, decimals, dates,"
                f' booleans and binary values are hashed.\n\nWrite `mask={{"{name}": "drop"}}` or '
                '`"redact"`.'
            )
            raise WriterError(msg)
    _refuse_times(mask, node, capture, event_time)
    _refuse_repeats(mask, node)
    if capture.keeps_points:
        _refuse_points(mask, node)


def _refuse_times(mask: Mask, node: Node, capture: CaptureKind, event_time: str | None) -> None:
    origins = [n.operator.origin for n in node.walk() if isinstance(n.operator, Source)]
    times = [event_time, *(origin.event_time for origin in origins)]
    hidden = mask.hides([each for each in times if each is not None])
    where = around(node) if capture.spans_from_result else None
    hidden += mask.hides([where.column]) if where is not None else []
    if hidden:
        msg = (
            f"the column `{hidden[0]}` says when a row happened; the store keeps that of each row, "
            "to find it and to tell when it is expired, so it cannot be masked.\n\nLeave it out of "
            "`mask`, or name another event time."
        )
        raise WriterError(msg)


def _refuse_repeats(mask: Mask, node: Node) -> None:
    """Refuse to hide by what rows differ whose ids only somebody's word makes unique."""
    names = repeating(node)
    for each in node.walk():
        if not isinstance(each.operator, Source) or each.operator.origin.name not in names:
            continue
        origin = each.operator.origin
        keys = origin.identity.keys if isinstance(origin.identity, KeyIdentity) else ()
        lost = [n for n in mask.hides(origin.schema.names) if mask.way(n) != "hash"]
        lost = [name for name in lost if name not in keys]
        if lost:
            msg = (
                f"rows of `{origin.name}` may share an id, which the store tells by what is in "
                f"them; without `{lost[0]}` it could not.\n\n"
                f'Write `mask={{"{lost[0]}": "hash"}}`, or let the source give the rows ids.'
            )
            raise WriterError(msg)


def _refuse_points(mask: Mask, node: Node) -> None:
    for source in pointed_sources(node):
        point = getattr(source.again, "point", None) or ()
        hidden = mask.hides(point)
        if hidden:
            msg = (
                f"the source `{source.origin.name}` cannot be read again, so the store keeps its "
                f"rows for a while, with `{hidden[0]}` as it is.\n\n"
                'Write `capture="sets"`, which needs no such rows.'
            )
            raise WriterError(msg)


def mask_described(streams: Sequence[dict[str, Any]], mask: Mask) -> None:
    """Note the mask in what is stored of streams, and take literals out where that is asked for."""
    for stream in streams:
        if stream["kind"] == "source" or not mask:
            continue
        stream["mask"] = mask.to_dict()
        if mask.literals:
            _take_literals(stream)


def _take_literals(stream: dict[str, Any]) -> None:
    kept = {"source", "named"}
    for node in stream.get("graph", {}).get("nodes", ()):
        if node["kind"] not in kept:
            node["label"] = HIDDEN
            node.pop("detail", None)
            node.pop("names", None)
    for bound in stream.get("bounds", {}).values():
        bound["why"] = [HIDDEN for _ in bound.get("why") or ()]
    stream["why"] = HIDDEN
    stream["pipeline"] = None
    for run in stream.get("runs", ()):
        run["pipeline"] = None
    if "signature" in stream:
        stream["signature"] = None
