"""What a frame is read from is told by its plan."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyspark.sql import functions as F

from clew.sources.origins import is_as_loaded

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def test_a_frame_is_as_loaded_until_rows_are_left_out_or_changed(spark: SparkSession) -> None:
    loaded = spark.readStream.format("rate").load()
    as_it_is = [
        loaded,
        loaded.select("value", "timestamp"),
        loaded.alias("r"),
        loaded.withWatermark("timestamp", "1 second"),
    ]
    changed = [
        loaded.filter("value > 3"),
        loaded.withColumn("value", F.col("value") + 1),
        loaded.select(F.lit(1).cast("bigint").alias("value"), "timestamp"),
        loaded.union(loaded),
        loaded.dropDuplicates(["value"]),
    ]

    assert [is_as_loaded(df) for df in as_it_is] == [True] * len(as_it_is)
    assert [is_as_loaded(df) for df in changed] == [False] * len(changed)
