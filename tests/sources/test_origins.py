"""What a frame is read from is told by its plan."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyspark.sql import functions as F

from clew.sources.origins import is_as_loaded, is_fixed, origins_of

if TYPE_CHECKING:
    from pathlib import Path

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


def test_a_subquery_reads_files_that_are_not_named(spark: SparkSession, tmp_path: Path) -> None:
    for name in ("own", "other"):
        spark.range(3).write.parquet(str(tmp_path / name))
        spark.read.parquet(str(tmp_path / name)).createOrReplaceTempView(name)
    own = spark.table("own")

    assert origins_of(own) == "files"
    assert origins_of(own.selectExpr("exists(array(id), x -> x > 1) AS large")) == "files"
    for condition in (
        "id = (SELECT max(id) FROM other)",
        "id IN (SELECT id FROM other)",
        "EXISTS (SELECT 1 FROM other WHERE other.id = own.id)",
    ):
        assert origins_of(own.filter(condition)) == "mixed", condition
    lateral = spark.sql("SELECT * FROM own, LATERAL (SELECT id AS x FROM other WHERE id = own.id)")
    assert origins_of(lateral) == "mixed"


def test_only_rows_that_stand_in_the_plan_are_fixed(spark: SparkSession) -> None:
    computed = spark.sparkContext.parallelize([1, 2]).map(lambda n: (n,)).toDF("n int")

    assert is_fixed(spark.sql("SELECT 1 AS n"))
    assert is_fixed(spark.range(3).filter("id > 1"))
    assert not is_fixed(computed)
    assert not is_fixed(spark.range(3).crossJoin(computed))
