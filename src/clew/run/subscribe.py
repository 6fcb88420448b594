"""Results with their properties, as a frame or for those who want to hear of some of them.

Nothing is stored: a property is computed inside the query, so what is delivered is known as soon as
the result is.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from clew.capture.properties import PROPERTIES, Properties
from clew.exceptions import PropertyError
from clew.plan.columns import JSON, named, user_columns
from clew.plan.merge import VALUE
from clew.plan.node import interpret
from clew.run.split import held
from clew.store.collect import AT, numbered

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from pyspark.sql import Column, Row
    from pyspark.sql.streaming.query import StreamingQuery

    from clew.plan.node import Node


@dataclass(frozen=True, slots=True)
class AsText:
    """A receiver of each result as JSON text, with times in their zones."""

    receive: Callable[[str], None]


if TYPE_CHECKING:
    Receiver = Callable[[Row], None] | AsText | str | Mapping[str, str]


_FEW = 20_000


def with_properties(node: Node) -> DataFrame:
    """Return the rows of a frame, each with its properties as further columns.

    Raises:
        PropertyError: The frame has no property, or a column of the name of one.
    """
    built = interpret(node, PROPERTIES)
    assert isinstance(built.annotation, Properties)
    names = list(built.annotation.kinds)
    if not names:
        msg = (
            "no property was declared for the rows of this frame.\n\nDeclare one where its values "
            'are known: `.property("sensors", F.col("sensor"), merge="set")`.'
        )
        raise PropertyError(msg)
    users = user_columns(built.df)
    taken = [name for name in names if name.lower() in {u.lower() for u in users}]
    if taken:
        msg = (
            f"the frame has a column `{taken[0]}`, and a property of that name.\n\n"
            "Give the property another name."
        )
        raise PropertyError(msg)
    return property_columns(built.df)


def property_columns(rows: DataFrame) -> DataFrame:
    """Return rows with the properties that they carry as further columns."""
    values = [named(c).alias(c.removeprefix(VALUE)) for c in rows.columns if c.startswith(VALUE)]
    return rows.select(*[named(u) for u in user_columns(rows)], *values)


def subscribe(
    node: Node,
    prop: str,
    *,
    where: Column | str | None,
    to: Receiver,
    checkpoint: str | None = None,
    trigger: Mapping[str, Any] | None = None,
) -> StreamingQuery | None:
    """Deliver results whose property meets a condition.

    Args:
        node: The query.
        prop: The property.
        where: The condition, over the result's columns and its properties; all if left out.
        to: A function that is called with each result, or with its text, the name of a table, or
            options of Spark's Kafka sink.
        checkpoint: Where Spark keeps how far the delivery is.
        trigger: When to deliver, as Spark's `trigger` takes it.

    Returns:
        The running delivery of a stream; None for a batch, which is delivered on return.

    Raises:
        PropertyError: There is no such property.
    """
    rows = with_properties(node)
    names = [c for c in rows.columns if c not in node.columns]
    if prop not in names:
        known = ", ".join(f"`{name}`" for name in names)
        msg = f"the frame has no property `{prop}`.\n\nIt has {known}."
        raise PropertyError(msg)
    rows = rows if where is None else rows.filter(where)
    if not rows.isStreaming:
        deliver(rows, to)
        return None
    writer: Any = _stream_writer(rows, to).trigger(**(trigger or {"processingTime": "0 seconds"}))
    if checkpoint is not None:
        writer = writer.option("checkpointLocation", checkpoint)
    started: StreamingQuery = writer.toTable(to) if isinstance(to, str) else writer.start()
    return started


def deliver(rows: DataFrame, to: Receiver) -> None:
    """Deliver rows that are all there."""
    if isinstance(to, AsText):
        _hand_over(_as_message(rows), lambda row: to.receive(row["value"]))
    elif callable(to):
        _hand_over(rows, to)
    elif isinstance(to, str):
        rows.write.mode("append").saveAsTable(to)
    else:
        _as_message(rows).write.format("kafka").options(**to).save()


def _stream_writer(rows: DataFrame, to: Receiver) -> Any:
    if isinstance(to, AsText):
        rows, said = _as_message(rows), to
        receive: Callable[[Row], None] = lambda row: said.receive(row["value"])  # noqa: E731
        return rows.writeStream.foreachBatch(lambda batch, _: _hand_over(batch, receive))
    if callable(to):
        receive = to
        return rows.writeStream.foreachBatch(lambda batch, _: _hand_over(batch, receive))
    if isinstance(to, str):
        return rows.writeStream
    return _as_message(rows).writeStream.format("kafka").options(**to)


def _hand_over(rows: DataFrame, receive: Callable[[Row], None]) -> None:
    """Call a function with each row: at once if they are few, else task by task."""
    with held(numbered(rows)) as kept:
        # No task hands over more, so the driver gets no more than it can hold.
        found: Any = kept.filter(named(AT) <= _FEW).drop(AT).collect()
        if len(found) > _FEW:
            found = kept.drop(AT).toLocalIterator()
        for row in found:
            receive(row)


def _as_message(rows: DataFrame) -> DataFrame:
    text = F.to_json(F.struct(*[named(c) for c in rows.columns]), JSON)
    return rows.select(text.alias("value"))
