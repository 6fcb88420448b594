"""The user's sink: where clean rows go, batch by batch.

Spark may run a batch again after a crash, so each sink says how it takes a batch a second time.
Files are published under names that hold the batch, after a list of those names was written: a
second run removes what the first one left. Delta has transactions of its own. Kafka and the
console take a batch at least once, as they do in Spark itself.
"""

from __future__ import annotations

import json
import os
import shutil
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

from pyspark.sql import functions as F

from clew.exceptions import WriterError
from clew.model import RowId
from clew.steps import reached
from clew.store.layout import store_root

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql import types as T

FILE_FORMATS = frozenset({"parquet", "orc", "json", "csv", "text", "avro", "xml"})
_STAGING = "_clew_staging"


class Sink(Protocol):
    """Takes the clean rows of a batch."""

    def prepare(self, clean: DataFrame) -> None:
        """Check and make what the sink needs, before the query starts."""

    def write(self, clean: DataFrame, run: str, batch: int) -> None:
        """Take the rows of a batch; called again if the batch is run again."""

    def done(self, run: str, batch: int) -> None:
        """Clear up after the batch was committed."""


@dataclass(frozen=True, slots=True)
class NoSink:
    """Rows go nowhere but into the store."""

    def prepare(self, clean: DataFrame) -> None:
        pass

    def write(self, clean: DataFrame, run: str, batch: int) -> None:
        pass

    def done(self, run: str, batch: int) -> None:
        pass


@dataclass(frozen=True, slots=True)
class FunctionSink(NoSink):
    """The user's own `foreachBatch` function."""

    function: Callable[[DataFrame, int], None]

    def write(self, clean: DataFrame, run: str, batch: int) -> None:
        self.function(clean, batch)


@dataclass(frozen=True, slots=True)
class FormatSink(NoSink):
    """Any format that Spark can write in batch; a batch run again is written again."""

    format: str
    options: dict[str, Any] = field(default_factory=dict)

    def write(self, clean: DataFrame, run: str, batch: int) -> None:
        if self.format == "kafka":
            clean = _with_id_header(clean)
        writer = clean.write.format(self.format).options(**self.options)
        if self.format == "delta":
            # Delta skips a transaction that it has seen from this application.
            writer = writer.option("txnAppId", f"clew-{run}").option("txnVersion", batch)
        writer.mode("append").save()


def _with_id_header(clean: DataFrame) -> DataFrame:
    """Send a row's id along as a header, where a topic's record has room for it."""
    if "clew_id" not in clean.columns:
        return clean
    own = "array(struct('clew_id' AS key, CAST(clew_id AS BINARY) AS value))"
    headers = f"concat(coalesce(headers, array()), {own})" if "headers" in clean.columns else own
    return clean.withColumn("headers", F.expr(headers)).drop("clew_id")


@dataclass(frozen=True, slots=True)
class ConsoleSink(NoSink):
    """Print each batch."""

    rows: int = 20
    truncate: bool = True

    def write(self, clean: DataFrame, run: str, batch: int) -> None:
        print(f"{'-' * 43}\nBatch: {batch}\n{'-' * 43}")
        clean.show(self.rows, self.truncate)


@dataclass(frozen=True, slots=True)
class FileSink:
    """Files in a folder: a batch that is run again replaces its own."""

    path: str
    format: str
    options: dict[str, Any] = field(default_factory=dict)
    partition_by: tuple[str, ...] = ()

    @property
    def root(self) -> Path:
        return store_root(self.path)

    def prepare(self, clean: DataFrame) -> None:
        missing = [c for c in self.partition_by if c not in clean.columns]
        if missing:
            msg = (
                f"`partitionBy` names the column `{missing[0]}`, which the result does not have; "
                f"it has {', '.join(f'`{c}`' for c in clean.columns)}."
            )
            raise WriterError(msg)
        if (self.root / "_spark_metadata").exists():
            msg = (
                f"`{self.path}` was written by a Spark stream without provenance: its "
                "`_spark_metadata` would hide new files from readers.\n\nName another path."
            )
            raise WriterError(msg)
        try:
            self.root.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            msg = (
                f"cannot write results to `{self.path}`: {error.strerror}.\n\n"
                "Name a folder that this user may write."
            )
            raise WriterError(msg) from error

    def write(self, clean: DataFrame, run: str, batch: int) -> None:
        self._withdraw(run, batch)
        staging = self._staging(run, batch)
        writer = clean.write.format(self.format).options(**self.options).mode("overwrite")
        if self.partition_by:
            writer = writer.partitionBy(*self.partition_by)
        writer.save(str(staging))
        self._publish(staging, run, batch)

    @property
    def takes_files(self) -> bool:
        """Whether rows can be taken from files of the store, without Spark."""
        return self.format == "parquet" and not self.options and not self.partition_by

    def write_files(
        self, files: Sequence[Path], users: T.StructType, run: str, batch: int, *, keep_id: bool
    ) -> None:
        """Take the rows of a batch from the store's files, if they are few: no job is needed.

        Args:
            files: The store's files.
            users: The user's columns.
            run: The run.
            batch: The batch.
            keep_id: Add the column `clew_id`.
        """
        import pyarrow as pa
        import pyarrow.parquet as pq
        from pyspark.sql.pandas.types import to_arrow_schema

        self._withdraw(run, batch)
        staging = self._staging(run, batch)
        staging.mkdir(parents=True, exist_ok=True)
        wanted = to_arrow_schema(users, timezone="UTC", prefers_large_types=False)
        names = ["a", "b", "row"] if keep_id else ["row"]
        tables = [pq.read_table(f, columns=names, partitioning=None) for f in files]
        for number, table in enumerate(tables):
            rows = table.column("row").combine_chunks()
            clean = pa.Table.from_arrays(rows.flatten(), wanted.names).cast(wanted)
            if keep_id:
                ids = zip(table.column("a").to_pylist(), table.column("b").to_pylist(), strict=True)
                texts = [RowId(self.path, a, b).text for a, b in ids]
                clean = clean.append_column("clew_id", pa.array(texts, pa.string()))
            pq.write_table(clean, staging / f"part-{number:05d}.parquet")
        self._publish(staging, run, batch)

    def _publish(self, staging: Path, run: str, batch: int) -> None:
        reached("sink staged", batch)
        moves = {str(part): str(self._target(part, run, batch)) for part in _parts(staging)}
        listed = self._list(run, batch)
        draft = listed.with_suffix(".tmp")
        draft.write_text(json.dumps(sorted(moves.values())))
        draft.replace(listed)
        reached("sink listed", batch)
        for part, target in moves.items():
            (self.root / target).parent.mkdir(parents=True, exist_ok=True)
            (staging / part).replace(self.root / target)
            reached("sink file published", batch)

    def done(self, run: str, batch: int) -> None:
        shutil.rmtree(self._staging(run, batch), ignore_errors=True)
        self._list(run, batch).unlink(missing_ok=True)

    def _withdraw(self, run: str, batch: int) -> None:
        """Remove what an earlier, interrupted run of the batch published."""
        listed = self._list(run, batch)
        if not listed.exists():
            return
        for target in json.loads(listed.read_text()):
            (self.root / target).unlink(missing_ok=True)
        listed.unlink()

    def _staging(self, run: str, batch: int) -> Path:
        return self.root / _STAGING / f"{run}-{batch:010d}"

    def _list(self, run: str, batch: int) -> Path:
        return self.root / _STAGING / f"{run}-{batch:010d}.json"

    def _target(self, part: Path, run: str, batch: int) -> Path:
        return part.parent / f"part-{run}-{batch:010d}-{part.name.removeprefix('part-')}"


def _parts(folder: Path) -> Iterator[Path]:
    for at, _, names in os.walk(folder):
        for name in sorted(names):
            if not name.startswith(("_", ".")):
                yield (Path(at) / name).relative_to(folder)


@dataclass(frozen=True, slots=True)
class TableSink:
    """A table of the session's catalog, kept as files or by Delta."""

    table: str
    format: str | None
    options: dict[str, Any] = field(default_factory=dict)
    partition_by: tuple[str, ...] = ()

    def prepare(self, clean: DataFrame) -> None:
        spark = clean.sparkSession
        if not spark.catalog.tableExists(self.table):
            empty = spark.createDataFrame([], clean.schema)
            writer = empty.write.options(**self.options)
            writer = writer.format(self.format) if self.format else writer
            writer = writer.partitionBy(*self.partition_by) if self.partition_by else writer
            writer.saveAsTable(self.table)
        self._files(spark)

    def write(self, clean: DataFrame, run: str, batch: int) -> None:
        spark = clean.sparkSession
        sink = self._files(spark)
        if isinstance(sink, FileSink):
            columns = [c for c in spark.table(self.table).columns if c not in sink.partition_by]
            sink.write(clean.select(*columns, *sink.partition_by), run, batch)
            if sink.partition_by:
                spark.sql(f"ALTER TABLE {self.table} RECOVER PARTITIONS")
            spark.catalog.refreshTable(self.table)
            return
        writer = clean.write.format("delta").mode("append").options(**self.options)
        writer.option("txnAppId", f"clew-{run}").option("txnVersion", batch).saveAsTable(self.table)

    def done(self, run: str, batch: int) -> None:
        # Nothing is left behind but the staged files, which the next batch's folder does not hold.
        from pyspark.sql import SparkSession

        sink = self._files(SparkSession.getActiveSession() or SparkSession.builder.getOrCreate())
        if isinstance(sink, FileSink):
            sink.done(run, batch)

    def _files(self, spark: SparkSession) -> FileSink | None:
        found = {
            row["col_name"]: row["data_type"]
            for row in spark.sql(f"DESCRIBE TABLE EXTENDED {self.table}").collect()
        }
        provider = str(found.get("Provider", "")).lower()
        if provider == "delta":
            return None
        if provider not in FILE_FORMATS or "Location" not in found:
            msg = (
                f"table `{self.table}` is kept by `{provider or 'an unknown provider'}`, where a "
                "batch that is run again would be doubled.\n\nUse a Parquet, ORC or Delta table, "
                "or write it yourself with `.foreachBatch(function)`."
            )
            raise WriterError(msg)
        partitions = tuple(c.name for c in spark.catalog.listColumns(self.table) if c.isPartition)
        return FileSink(str(found["Location"]), provider, self.options, partitions)
