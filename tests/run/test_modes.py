"""The three modes: what is stored, delivered and written in each, also when a batch runs again."""

from __future__ import annotations

import datetime as dt
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import functions as F

import clew
from clew.exceptions import WriterError
from clew.steps import listen, unlisten
from clew.testing import read_batches, write_batches
from frames import at

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import SparkSession

KIND = pa.schema(
    [("sensor", pa.string()), ("ts", pa.timestamp("us", "UTC")), ("trust", pa.float64())]
)


def averages(spark: SparkSession, folder: Path) -> clew.TracedFrame:
    """Two windows, of which the second rests on a sensor that is not trusted; one more closes."""
    noon = at("12:00:00")
    rows = [("s1", 1, 0.9), ("s2", 2, 0.8), ("s1", 11, 0.9), ("s3", 12, 0.1), ("s1", 60, 1.0)]
    batch = [
        {"sensor": sensor, "ts": noon + dt.timedelta(seconds=second), "trust": trust}
        for sensor, second, trust in rows
    ]
    write_batches(folder / "in", KIND, [batch[:3], batch[3:]])
    df = read_batches(spark, folder / "in", "sensor string, ts timestamp, trust double")
    traced = clew.trace(df, "readings", event_time="ts").property(
        "trust", F.col("trust"), merge="min"
    )
    windows = traced.withWatermark("ts", "0 seconds").groupBy(F.window("ts", "10 seconds"))
    return windows.agg(F.count("*").alias("n"))


def run(frame: clew.TracedFrame, folder: Path, **said: Any) -> None:
    writer = frame.writeStream.provenance(**said).queryName("out").format("parquet")
    writer = writer.option("path", str(folder / "out"))
    writer = writer.option("checkpointLocation", str(folder / "chk"))
    writer.trigger(availableNow=True).start().awaitTermination()


def written(folder: Path) -> list[int]:
    return sorted(pq.read_table(folder / "out")["n"].to_pylist())


def test_on_the_fly_delivers_and_stores_nothing(spark: SparkSession, tmp_path: Path) -> None:
    heard: list[Any] = []

    run(
        averages(spark, tmp_path), tmp_path, mode="on-the-fly", to=heard.append, where="trust < 0.5"
    )

    assert [(row["n"], row["trust"]) for row in heard] == [(2, 0.1)]
    assert written(tmp_path) == [2, 2]
    assert pq.read_table(tmp_path / "out").column_names == ["window", "n"]
    assert not list(tmp_path.rglob("edges"))
    assert not list((tmp_path / "chk" / "clew").rglob("*.parquet"))


def test_receive_carries_keys_and_lets_them_go(spark: SparkSession, tmp_path: Path) -> None:
    run(averages(spark, tmp_path), tmp_path, mode="receive", capture="keys", keep_id=True)

    table = pq.read_table(tmp_path / "out")
    assert sorted(table["n"].to_pylist()) == [2, 2]
    assert {len(each) for each in table["clew_id"].to_pylist()} == {32}
    assert not list((tmp_path / "chk" / "clew").rglob("*.parquet"))


@pytest.mark.parametrize("step", ["sink written", "batch committed"])
def test_a_batch_that_runs_again_is_written_once(
    spark: SparkSession, tmp_path: Path, step: str
) -> None:
    heard: list[Any] = []
    said: Any = {"mode": "on-the-fly", "to": heard.append}
    times = [0]

    def die(reached: str, _: int) -> None:
        times[0] += reached == step
        if reached == step and times[0] == 2:
            raise RuntimeError(step)

    listen(die)
    try:
        with pytest.raises(Exception, match=step):
            run(averages(spark, tmp_path), tmp_path, **said)
    finally:
        unlisten(die)
    df = read_batches(spark, tmp_path / "in", "sensor string, ts timestamp, trust double")
    traced = clew.trace(df, "readings", event_time="ts").property(
        "trust", F.col("trust"), merge="min"
    )
    windows = traced.withWatermark("ts", "0 seconds").groupBy(F.window("ts", "10 seconds"))
    run(windows.agg(F.count("*").alias("n")), tmp_path, **said)

    assert written(tmp_path) == [2, 2]
    assert {row["trust"] for row in heard} == {0.1, 0.8}


def test_settings_that_do_not_fit_are_refused(spark: SparkSession, tmp_path: Path) -> None:
    writer = averages(spark, tmp_path).writeStream

    with pytest.raises(WriterError, match='`mode` is one of "store", "receive", "on-the-fly"'):
        writer.provenance("prov", mode="later")  # type: ignore[arg-type]
    with pytest.raises(WriterError, match="needs a place"):
        writer.provenance()
    with pytest.raises(WriterError, match="somebody has to hear"):
        writer.provenance(mode="on-the-fly")
    with pytest.raises(WriterError, match='`to` is for mode "on-the-fly"'):
        writer.provenance("prov", to=print)
    with pytest.raises(WriterError, match='recorded in mode "store"'):
        writer.provenance(mode="receive", assertions="all")
    df = read_batches(spark, tmp_path / "in", "sensor string, ts timestamp, trust double")
    bare = clew.trace(df, "readings").writeStream.provenance(mode="on-the-fly", to=print)
    with pytest.raises(WriterError, match="none was declared"):
        bare.queryName("out").option("checkpointLocation", str(tmp_path / "c")).start()
    with pytest.raises(WriterError, match="place for its checkpoint"):
        writer.provenance(mode="receive").queryName("out").start()
