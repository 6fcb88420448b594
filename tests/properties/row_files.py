"""Source rows as files that Spark reads: of a stream, one file for each micro-batch."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.parquet as pq

from properties.row_form import DDL

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence
    from pathlib import Path

    from pyspark.sql import DataFrame, SparkSession

    from properties.operator_tree import Spec
    from properties.row_form import Batches, Row, Tables

_ARROW = pa.schema(
    [
        ("rid", pa.int64()),
        ("ts", pa.timestamp("us", tz="UTC")),
        ("k", pa.string()),
        ("g", pa.int32()),
        ("v", pa.int32()),
        ("tags", pa.list_(pa.int32())),
    ]
)


def write_files(folder: Path, batches: Sequence[Sequence[Row]]) -> Path:
    """Write one Parquet file per micro-batch, with rising modification times.

    Spark's file source takes files in the order of their modification times, so with one
    file per trigger the micro-batches are exactly these.
    """
    folder.mkdir(parents=True)
    for number, rows in enumerate(batches):
        path = folder / f"{number:05d}.parquet"
        plain = [{**row, "tags": _as_list(row["tags"])} for row in rows]
        pq.write_table(pa.Table.from_pylist(plain, schema=_ARROW), path)
        when = 1_700_000_000 + 10 * number
        os.utime(path, (when, when))
    return folder


def _as_list(tags: Iterable[int] | None) -> list[int] | None:
    return None if tags is None else list(tags)


def write_data(folder: Path, spec: Spec, data: Tables | Batches) -> dict[str, Path]:
    """Write every source of a pipeline; tables become one file, streams one file per batch."""
    paths = {}
    for name, rows in data.items():
        streamed = spec.streaming and name not in spec.statics
        paths[name] = write_files(folder / name, rows if streamed else [rows])  # type: ignore[list-item,arg-type]
    return paths


def read_frames(spark: SparkSession, spec: Spec, paths: Mapping[str, Path]) -> dict[str, DataFrame]:
    """Read what `write_data` wrote: a frame for each source, one file per trigger."""
    streamed = spec.sources if spec.streaming else ()
    stream = spark.readStream.schema(DDL).option("maxFilesPerTrigger", 1)
    table = spark.read.schema(DDL)
    return {
        name: stream.parquet(str(path)) if name in streamed else table.parquet(str(path))
        for name, path in paths.items()
    }
