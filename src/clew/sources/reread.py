"""Reading a source a second time, as a table.

A batch source is its own second reading. Of a stream Spark's public plan tells the format and the
folder, which is enough for formats without options that change rows (Parquet, ORC). Of Kafka the
user says how to reach it. For all others the user may hand in the table:
`clew.trace(stream, "name", again=spark.read...)`.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from clew.plan.analysis import explain
from clew.sources.identity import KafkaIdentity, offers_file
from clew.sources.origins import origins_of
from clew.sources.state import literal_path

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pyspark.sql import DataFrame
    from pyspark.sql.types import StructType

    from clew.sources.identity import Identity

_FORMAT = re.compile(r"^\+- UnresolvedDataSource format: (\w+), isStreaming: true", re.MULTILINE)
_FOLDER = re.compile(r"^StreamingRelation FileSource\[(.+?)\], \[", re.MULTILINE)
_PLAIN_FORMATS = ("parquet", "orc")


@dataclass(frozen=True, slots=True)
class Again:
    """How a source is read a second time.

    Attributes:
        table: The table to read; None if it is read from files.
        form: The format of the files.
        folder: The folder that the stream reads.
        is_stream: The source itself is a stream, whose rows came in batches.
        point: The columns that a connection point keeps of it, if it cannot be read again itself.
        options: How Kafka is reached, for a source of topics.
    """

    table: DataFrame | None = None
    form: str | None = None
    folder: str | None = None
    is_stream: bool = False
    point: tuple[str, ...] | None = None
    options: tuple[tuple[str, str], ...] = ()

    def read(
        self, like: DataFrame, schema: StructType, files: Sequence[str] | None = None
    ) -> DataFrame:
        """Read the source, or some of its files.

        Args:
            like: The source as it was traced, for its session.
            schema: The columns.
            files: Only these files; None for all.
        """
        if self.table is not None:
            return self.table
        assert self.form is not None
        assert self.folder is not None
        reader = like.sparkSession.read.schema(schema).format(self.form)
        if files is None:
            return reader.load(self.folder)
        return reader.option("basePath", self.folder).load([literal_path(each) for each in files])

    def read_topics(
        self, like: DataFrame, ends: Mapping[tuple[str, int], int], since_ms: int | None
    ) -> DataFrame:
        """Read topics from a time on.

        Args:
            like: The source as it was traced, for its session.
            ends: The partitions to read, and the offset to end before.
            since_ms: No record before this time is needed, in milliseconds; None for all.
        """
        if not ends:
            return like.sparkSession.createDataFrame([], like.schema)
        until: dict[str, dict[str, int]] = {}
        for (topic, partition), end in ends.items():
            until.setdefault(topic, {})[str(partition)] = end
        parts = {topic: [int(p) for p in partitions] for topic, partitions in until.items()}
        reader = like.sparkSession.read.format("kafka").options(**dict(self.options))
        reader = reader.option("assign", json.dumps(parts))
        if since_ms is not None:
            reader = reader.option("startingTimestamp", str(max(0, since_ms)))
            reader = reader.option("startingOffsetsByTimestampStrategy", "latest")
        return reader.option("endingOffsets", json.dumps(until)).load()


def read_again(
    df: DataFrame,
    identity: Identity,
    table: DataFrame | Mapping[str, str] | None,
    point: Sequence[str] | None = None,
) -> Again | str:
    """Find out how a source can be read a second time, or why it can not.

    Args:
        df: The source.
        identity: How its rows are told apart.
        table: The same rows as a table, if the user has one; or how to reach Kafka.
        point: The columns that a connection point shall keep, if the user wants one.
    """
    if isinstance(table, Mapping):
        return Again(None, is_stream=True, options=tuple(table.items()))
    if not df.isStreaming:
        read = table if table is not None else df
        if origins_of(read) == "unknown":
            return "Spark does not tell whether its rows are still the same"
        return Again(read)
    has_file = offers_file(df)
    if not has_file and not isinstance(identity, KafkaIdentity):
        return "it does not say which file or offset each row came from, and so not when it came"
    if point is not None:
        return Again(None, is_stream=True, point=tuple(point))
    if table is not None:
        if has_file and not offers_file(table):
            return "the table given as `again` does not say which file each row comes from"
        return Again(table, is_stream=True)
    text = explain(df)
    form, folder = _FORMAT.search(text), _FOLDER.search(text)
    if form is None or folder is None or form[1].lower() not in _PLAIN_FORMATS:
        what = form[1] if form else "this source"
        return f"how to read {what} again is not known"
    if "*" in folder[1] or "{" in folder[1]:
        return "its path is a pattern"
    return Again(None, form[1].lower(), _absolute(folder[1]), is_stream=True)


def _absolute(folder: str) -> str:
    """Name a folder as Spark's checkpoint does, which has no relative paths."""
    if "://" in folder or folder.startswith("file:"):
        return folder
    return os.path.abspath(folder)  # noqa: PTH100 (takes `..` out, as Spark does)
