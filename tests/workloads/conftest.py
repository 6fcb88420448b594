"""Folders as finite streams, and their results in an order that can be compared."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any
from uuid import uuid4

import pytest

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from pathlib import Path

    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.streaming.query import StreamingQuery

    Rows = list[dict[str, Any]]


@dataclass(frozen=True)
class Finished:
    """What a finished stream gave, and how many rows its joins still keep."""

    rows: Rows
    kept_by_joins: int


@pytest.fixture
def stream(spark: SparkSession) -> Callable[[Path, str], DataFrame]:
    """Read a folder as a stream that takes one file per micro-batch."""

    def read(folder: Path, schema: str) -> DataFrame:
        reader = spark.readStream.schema(schema).option("maxFilesPerTrigger", 1)
        return reader.parquet(str(folder))

    return read


@pytest.fixture
def finish(spark: SparkSession) -> Callable[[DataFrame], Finished]:
    """Run a streaming query in append mode to the end of its files and collect its rows."""

    def run(frame: DataFrame) -> Finished:
        name = f"results_{uuid4().hex}"
        writer = frame.writeStream.format("memory").queryName(name).outputMode("append")
        query = writer.trigger(availableNow=True).start()
        query.awaitTermination()
        rows: Rows = spark.table(name).toArrow().to_pylist()
        spark.catalog.dropTempView(name)
        return Finished(rows, _kept_by_joins(query))

    return run


def _kept_by_joins(query: StreamingQuery) -> int:
    assert query.lastProgress is not None
    return sum(
        operator.numRowsTotal
        for operator in query.lastProgress.stateOperators
        if operator.operatorName == "symmetricHashJoin"
    )


@pytest.fixture(scope="session")
def in_order() -> Callable[[Sequence[Mapping[str, Any]]], Rows]:
    """Put rows in an order that does not depend on how they were made."""

    def order(rows: Sequence[Mapping[str, Any]]) -> Rows:
        plain = [dict(row) for row in rows]
        return sorted(plain, key=lambda row: json.dumps(row, default=str, sort_keys=True))

    return order
