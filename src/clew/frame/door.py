"""`clew.trace`: the door from a DataFrame to a traced one."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from clew.exceptions import SourceError
from clew.frame.frame import TracedFrame
from clew.operators.source import Source
from clew.plan.algebra import Origin
from clew.plan.columns import refuse_lookalike_fields, refuse_reserved, sole
from clew.plan.node import Node
from clew.plan.settings import settings_of
from clew.sources.identity import KafkaIdentity, choose_identity
from clew.sources.origins import is_as_loaded
from clew.sources.reread import read_again

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pyspark.sql import DataFrame

    from clew.sources.identity import Identity

_KAFKA_COLUMNS = (
    "key",
    "value",
    "topic",
    "partition",
    "offset",
    "timestamp",
    "timestampType",
    "headers",
)


def trace(
    df: DataFrame,
    name: str,
    *,
    event_time: str | None = None,
    id: str | Sequence[str] | None = None,
    content: bool = True,
    again: DataFrame | Mapping[str, str] | None = None,
    point: Sequence[str] | bool = False,
) -> TracedFrame:
    """Wrap a DataFrame, streaming or batch, so that its rows can be traced.

    Args:
        df: The source. Trace it as it is read: files and topics lose their row positions when
            columns are selected before.
        name: What the source is called in answers.
        event_time: The column that says when a row happened.
        id: How rows are told apart: a list of key columns, or the name of a kind. By default
            the strongest that the source offers: `clew_id` of an upstream query, Kafka offsets,
            row ids of Delta or Iceberg, position in a Parquet file, and last a hash of the content.
            Kafka's only of what Spark reads from topics: for records that were landed elsewhere
            write `id="kafka"` if none is there twice.
        content: Keep the content of source rows that contributed. Without it answers hold ids only,
            and are a `superset` where only your word makes the ids unique: rows that share one
            could not be told apart.
        again: The same rows as a table, for a stream that clew cannot read a second time by
            itself: `spark.read.schema(s).json("in/")`. Parquet and ORC files need none. For a
            stream of Kafka topics, the options with which Kafka is reached:
            `{"kafka.bootstrap.servers": "host:9092"}`.
        point: Keep a connection point for a stream that cannot be read again at all: a side query
            copies these columns (all with `True`) into the store, as long as they can matter.

    Raises:
        SourceError: The source cannot be traced as given; the message says what to change.

    Examples:
        >>> df = spark.createDataFrame([("m1", 7)], "meter string, kwh int")
        >>> readings = trace(df, "readings")
        >>> readings.filter("kwh > 5").columns
        ['meter', 'kwh']
    """
    if isinstance(df, TracedFrame):
        msg = f"`clew.trace` was given a frame that is traced already.\n\nUse it as it is: {df!r}."
        raise SourceError(msg)
    if not name:
        msg = 'a source needs a name.\n\nWrite `clew.trace(df, "readings")`.'
        raise SourceError(msg)
    refuse_reserved(df.columns)
    sole(df.columns, "clew.trace", df)
    refuse_lookalike_fields(df.schema, f"`{name}`")
    if event_time is not None and event_time not in df.columns:
        msg = (
            f"`event_time` names `{event_time}`, which the source does not have; its columns are "
            f"{', '.join(f'`{c}`' for c in df.columns)}."
        )
        raise SourceError(msg)
    identity = choose_identity(df, id)
    origin = Origin(name, identity, df.schema, event_time, content)
    _check_again(df, identity, again)
    kept = _kept(df, event_time, point)
    settings = settings_of(df.sparkSession)
    return TracedFrame(Node(Source(origin, df, read_again(df, identity, again, kept), settings)))


def _check_again(
    df: DataFrame, identity: Identity, again: DataFrame | Mapping[str, str] | None
) -> None:
    if isinstance(again, Mapping):
        if not df.isStreaming or not isinstance(identity, KafkaIdentity):
            msg = (
                "`again` was given options, which say how to reach Kafka, and the source is no "
                'stream of Kafka records.\n\nTrace what `spark.readStream.format("kafka")` loads; '
                "for other sources, hand in a table with the same rows."
            )
            raise SourceError(msg)
        if added := set(df.columns) - set(_KAFKA_COLUMNS):
            msg = (
                "the source has columns that Kafka does not give, such as "
                f"`{min(added)}`, so reading the topics again "
                "would not give it.\n\nTrace the stream as it is loaded, and add columns to the "
                "traced frame."
            )
            raise SourceError(msg)
        if not is_as_loaded(df):
            msg = (
                "the stream was filtered or changed before `clew.trace`, and reading the topics "
                "again would give its records as they were.\n\nTrace the stream as it is loaded, "
                "and filter the traced frame."
            )
            raise SourceError(msg)
        return
    if again is not None and (again.isStreaming or again.schema.names != df.schema.names):
        msg = (
            "`again` must be a table with the columns of the source, "
            f"{', '.join(f'`{c}`' for c in df.columns)}.\n\nRead the same data with "
            "`spark.read` and the same schema."
        )
        raise SourceError(msg)


def _kept(df: DataFrame, event_time: str | None, point: Sequence[str] | bool) -> list[str] | None:
    if point is False:
        return None
    if event_time is None:
        msg = (
            "a connection point drops rows that can no longer matter, and needs to know when they "
            'happened.\n\nName the column: `clew.trace(df, "name", event_time="ts", point=True)`.'
        )
        raise SourceError(msg)
    wanted = df.columns if point is True else list(point)
    unknown = [name for name in wanted if name not in df.columns]
    if unknown:
        msg = (
            f"`point` names `{unknown[0]}`, which the source does not have; its columns are "
            f"{', '.join(f'`{c}`' for c in df.columns)}."
        )
        raise SourceError(msg)
    return [name for name in df.columns if name in wanted or name == event_time]
