"""Where lines of PROV come from: files, Kafka topics, and stores of clew's own.

A store's edges become statements, a file for each batch that it committed. The file bears the
batch's name, so a batch is published once however often this is asked for, and the folder is a
stream like any other.
"""

from __future__ import annotations

import os
import uuid
from pathlib import Path
from typing import TYPE_CHECKING

from clew.exceptions import ReduceSettingError
from clew.store.layout import is_store, quote_name, store_root
from clew.store.packed import read_edges
from clew.store.reader import Store
from clew.store.spill import database

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from clew.store.records import Batch

_STATEMENTS = """
COPY (
  SELECT 'wasDerivedFrom' AS prov,
    sink || '/' || lower(lpad(hex(sink_a), 16, '0') || lpad(hex(sink_b), 16, '0'))
      AS "generatedEntity",
    source || '/' || lower(lpad(hex(source_a), 16, '0') || lpad(hex(source_b), 16, '0'))
      AS "usedEntity",
    $writer AS "function", $time AS "time"
  FROM edges
) TO '{path}' (FORMAT json)
"""


def files(
    spark: SparkSession, path: str | os.PathLike[str], *, documents: bool = False
) -> DataFrame:
    """Read a folder of files as a stream.

    Args:
        spark: The session.
        path: The folder.
        documents: Each file is one document of PROV-JSON, over any number of lines.
    """
    return spark.readStream.text(str(Path(path).absolute()), wholetext=documents)


def topic(spark: SparkSession, servers: str, name: str, **options: str) -> DataFrame:
    """Read a Kafka topic as a stream, from its beginning.

    Args:
        spark: The session; it needs Spark's connector for Kafka.
        servers: The brokers, as `host:port,host:port`.
        name: The topic.
        options: More options of the connector.
    """
    reader = spark.readStream.format("kafka").option("kafka.bootstrap.servers", servers)
    reader = reader.option("subscribe", name).option("startingOffsets", "earliest")
    return reader.options(**options).load()


def check(source: DataFrame | str | os.PathLike[str]) -> None:
    """Refuse what cannot be reduced as it arrives.

    Raises:
        ReduceSettingError: It is no folder, no stream, or has no lines.
    """
    if isinstance(source, (str, os.PathLike)):
        if not Path(source).exists():
            allowed = "a folder with files of PROV, a store, or a streaming DataFrame"
            raise ReduceSettingError("source", os.fspath(source), allowed)
    elif not source.isStreaming:
        allowed = "a streaming DataFrame; `clew.prov.reduce_table(df)` reduces one that is there"
        raise ReduceSettingError("source", "a table", allowed)
    elif "value" not in source.columns:
        allowed = "a DataFrame with a column `value` that holds lines of PROV"
        raise ReduceSettingError("source", source.columns, allowed)


def lines_of(
    spark: SparkSession, source: DataFrame | str | os.PathLike[str], intake: Path
) -> DataFrame:
    """Make a stream of lines of whatever is to be reduced.

    Args:
        spark: The session.
        source: A stream, a folder of files, or a store.
        intake: Where the edges of a store are published.
    """
    if not isinstance(source, (str, os.PathLike)):
        return source
    if not is_store(source):
        return files(spark, source)
    publish(store_root(source), intake)
    return files(spark, intake)


def publish(store: Path, folder: Path) -> int:
    """Write the edges of a store as statements, a file for each batch that is not there yet.

    Args:
        store: The store.
        folder: Where the files go.

    Returns:
        How many batches were published.
    """
    snapshot = Store(store).snapshot()
    folder.mkdir(parents=True, exist_ok=True)
    done = 0
    for writer in sorted({*snapshot.batches, *snapshot.unfolded}):
        for batch in snapshot.parts(writer):
            path = folder / f"{quote_name(writer)}-{_name(batch)}.jsonl"
            if batch.edge_files and not path.exists():
                _publish(store, batch, path)
                done += 1
    return done


def _name(batch: Batch) -> str:
    """Name what was committed: the first of its files tells batches and unfoldings apart."""
    return Path(batch.edge_files[0]).parent.name if batch.edge_files else ""


def _publish(store: Path, batch: Batch, path: Path) -> None:
    draft = path.with_name(f".{path.name}.{uuid.uuid4().hex}.tmp")
    with database() as connection:
        for number, name in enumerate(batch.edge_files):
            connection.register("part", read_edges(store / name))
            verb = "CREATE TABLE edges AS" if number == 0 else "INSERT INTO edges"
            connection.execute(f"{verb} SELECT * FROM part")  # noqa: S608 (our own words)
        target = str(draft).replace("'", "''")
        told = {"writer": batch.writer, "time": batch.committed}
        connection.execute(_STATEMENTS.format(path=target), told)
    draft.replace(path)
