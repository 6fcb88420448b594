"""A Spark session for the workloads, and their queries run over files as batch and as stream."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any
from uuid import uuid4

import pytest
from pyspark.sql import SparkSession

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence
    from pathlib import Path

    from pyspark.sql import DataFrame
    from pyspark.sql.streaming.query import StreamingQuery

    Rows = list[dict[str, Any]]


@dataclass(frozen=True)
class Finished:
    """What a finished stream gave, and how many rows its joins still keep."""

    rows: Rows
    kept_by_joins: int


@pytest.fixture(scope="module")
def workload_spark(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[SparkSession]:
    """Share the suite's `spark` where there is one; else run a small session of our own."""
    try:
        shared: SparkSession = request.getfixturevalue("spark")
    except pytest.FixtureLookupError:
        session = _small_session(tmp_path_factory.mktemp("spark"))
        yield session
        session.stop()
    else:
        yield shared


def _small_session(scratch: Path) -> SparkSession:
    return (
        SparkSession.builder.master("local[2]")
        .config("spark.ui.enabled", "false")
        .config("spark.ui.showConsoleProgress", "false")
        .config("spark.sql.session.timeZone", "UTC")
        .config("spark.sql.shuffle.partitions", "2")
        .config("spark.sql.warehouse.dir", str(scratch / "warehouse"))
        .config("spark.local.dir", str(scratch / "local"))
        .getOrCreate()
    )


@pytest.fixture
def stream(workload_spark: SparkSession) -> Callable[[Path, str], DataFrame]:
    """Read a folder as a stream that takes one file per micro-batch."""

    def read(folder: Path, schema: str) -> DataFrame:
        reader = workload_spark.readStream.schema(schema).option("maxFilesPerTrigger", 1)
        return reader.parquet(str(folder))

    return read


@pytest.fixture
def finish(workload_spark: SparkSession) -> Callable[[DataFrame], Finished]:
    """Run a streaming query in append mode to the end of its files and collect its rows."""

    def run(frame: DataFrame) -> Finished:
        name = f"results_{uuid4().hex}"
        writer = frame.writeStream.format("memory").queryName(name).outputMode("append")
        query = writer.trigger(availableNow=True).start()
        query.awaitTermination()
        rows: Rows = workload_spark.table(name).toArrow().to_pylist()
        workload_spark.catalog.dropTempView(name)
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
