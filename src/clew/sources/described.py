"""How a source is read, as plain data, so that it can be read in another process.

What can be said of a source is its format and folder, its table, the address of its topics, or the
columns that a connection point keeps. That a folder or a table is the right one is not taken from
Spark's text alone: it is read again, and Spark compares the plans. Options are not kept, since they
may hold passwords; a source that was read with some is not the same without, so it is not stored.
"""

from __future__ import annotations

import os
import re
from typing import TYPE_CHECKING, Any

from pyspark.errors import PySparkException
from pyspark.sql import functions as F

from clew.exceptions import GraphError
from clew.plan.analysis import explain
from clew.plan.columns import quote
from clew.plan.sql import quiet, same_rows
from clew.sources.reread import Again

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.types import StructType

Reading = dict[str, Any]
_FILES = re.compile(r"UnresolvedDataSource format: (\w+), isStreaming: false, paths: ")
_TABLE = re.compile(r"'UnresolvedRelation \[(?P<name>[^\]]+)\], \[\], false\n")
_LOCATION = re.compile(r"Location: \w+\(1 paths\)\[(?P<path>[^\],]+)\], ")
_READ = frozenset(("parquet", "orc", "json", "csv", "text", "avro", "xml", "delta", "iceberg"))
_ADDRESS = {"kafka.bootstrap.servers"}
_UNKNOWN = "how it was read is not in the store"


def describe_reading(df: DataFrame, again: Again | str) -> Reading:
    """Say how a source is read a second time, or why the store cannot say."""
    said: Reading = {"stream": df.isStreaming}
    if isinstance(again, str):
        return {**said, "why": again}
    if again.point is not None:
        return {**said, "point": list(again.point)}
    if again.options:
        if not {key for key, _ in again.options} <= _ADDRESS:
            return {**said, "why": "Kafka was reached with options that a store should not keep"}
        return {**said, "topics": dict(again.options)}
    if again.table is None:
        return {**said, "format": again.form, "folder": again.folder}
    try:
        return {**said, **_of_table(again.table)}
    except PySparkException as error:
        return {**said, "why": f"Spark does not say how it was read ({type(error).__name__})"}


def _of_table(df: DataFrame) -> Reading:
    plan = explain(df).removeprefix("== Parsed Logical Plan ==\n")
    table, files = _TABLE.match(plan), _FILES.match(plan)
    if table is not None:
        name = ".".join(quote(part.strip()) for part in table["name"].split(","))
        if same_rows(lambda: df.sparkSession.read.table(name), df):
            return {"table": name}
    if files is not None:
        for folder in _folders(df):
            reader = df.sparkSession.read.schema(df.schema).format(files[1])
            if same_rows(lambda reader=reader, folder=folder: reader.load(folder), df):  # type: ignore[misc]
                return {"format": files[1], "folder": folder}
    return {"why": _UNKNOWN}


def _folders(df: DataFrame) -> Iterator[str]:
    """Guess the folder that a table of files was read from: above its files and partitions."""
    # Spark cuts a long path short in its text; then its files tell, of which there may be many.
    said = _LOCATION.search(explain(df))
    if said is not None:
        yield said["path"].removeprefix("file:")
        return
    files = [name.removeprefix("file://") for name in df.inputFiles()]
    if not files or any("://" in name for name in files):
        return
    folder = os.path.commonpath([os.path.dirname(name) for name in files])  # noqa: PTH120
    while "=" in os.path.basename(folder):  # noqa: PTH119
        folder = os.path.dirname(folder)  # noqa: PTH120
    yield folder
    if len(files) == 1:
        yield files[0]


def source_from(
    said: Mapping[str, Any], spark: SparkSession, schema: StructType
) -> tuple[DataFrame, Again | str]:
    """Read a source the way a store says.

    Where the store does not say, or what it says is gone, an empty source stands in: results can
    still be made again from rows in the store.

    Returns:
        The source, and how it is read a second time or why it can not be.
    """
    try:
        with quiet():
            return _read(said, spark, schema)
    except PySparkException as error:
        why = f"reading it again failed ({str(error).splitlines()[0]})"
        return _stand_in(said, spark, schema), why


def _read(
    said: Mapping[str, Any], spark: SparkSession, schema: StructType
) -> tuple[DataFrame, Again | str]:
    is_stream = bool(said["stream"])
    if "why" in said:
        return _stand_in(said, spark, schema), str(said["why"])
    if "point" in said:
        kept = Again(is_stream=True, point=tuple(said["point"]))
        return _stand_in(said, spark, schema), kept
    if "topics" in said:
        others = sorted(set(said["topics"]) - _ADDRESS)
        if others:
            msg = f"the store says to reach Kafka with the option `{others[0]}`."
            raise GraphError(msg)
        reached = Again(is_stream=True, options=tuple(said["topics"].items()))
        return _stand_in(said, spark, schema), reached
    if "table" in said:
        table = spark.read.table(said["table"])
    else:
        if said["format"] not in _READ:
            msg = f"the store says to read by `{said['format']}`, which is no format of files."
            raise GraphError(msg)
        table = spark.read.schema(schema).format(said["format"]).load(said["folder"])
    if not is_stream:
        return table, Again(table)
    if said.get("format") not in ("parquet", "orc"):
        return _stand_in(said, spark, schema), Again(table, is_stream=True)
    reader = spark.readStream.schema(schema).format(said["format"])
    again = Again(None, said["format"], said["folder"], is_stream=True)
    return reader.load(said["folder"]), again


def _stand_in(said: Mapping[str, Any], spark: SparkSession, schema: StructType) -> DataFrame:
    if not said["stream"]:
        return spark.createDataFrame([], schema)
    empty = [F.lit(None).cast(f.dataType).alias(f.name, metadata=f.metadata) for f in schema.fields]
    return spark.readStream.format("rate").load().select(*empty)
