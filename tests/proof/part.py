"""One of the two processes that a workload is cut into; the other reads the files it writes.

Run as `python part.py WORKLOAD FOLDER first|second`. GeneaLog's Send is a folder of Parquet files
whose rows keep their id, its Receive a stream that reads them; each process unfolds for itself.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

sys.path[:0] = [str(Path(__file__).parents[1]), str(Path(__file__).parents[2] / "src")]

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    import clew


def main(workload: str, folder: Path, part: str) -> None:
    from session import make_session

    spark = make_session(folder / f"scratch-{part}")
    build = {"accidents": _accidents, "anomalies": _anomalies}[workload]
    frame, name = build(spark, folder, part)
    query = (
        frame.writeStream.provenance(str(folder / "prov"), keep_id=part == "first")
        .queryName(name)
        .format("parquet")
        .option("path", str(folder / name))
        .option("checkpointLocation", str(folder / f"chk-{part}"))
        .trigger(availableNow=True)
        .start()
    )
    query.awaitTermination()
    print("finished", flush=True)


def _read(spark: SparkSession, folder: Path, name: str, time: str) -> clew.TracedFrame:
    import clew

    schema = spark.read.parquet(str(folder / name)).schema
    reader = spark.readStream.schema(schema).option("maxFilesPerTrigger", 2)
    return clew.trace(reader.parquet(str(folder / name)), name, event_time=time)


def _accidents(spark: SparkSession, folder: Path, part: str) -> tuple[Any, str]:
    from pyspark.sql import functions as F

    from clew.workloads import linear_road

    if part == "first":
        stopped = linear_road.stopped_cars(_read(spark, folder, "reports", "ts"))
        # The last instant of the window, as `window_time` has it.
        last = F.col("window.end") - F.expr("INTERVAL 1 MICROSECOND")
        return stopped.select(last.alias("ts"), "car", "n", "pos"), "stopped"
    stopped = _read(spark, folder, "stopped", "ts").withWatermark("ts", "0 seconds")
    grouped = stopped.groupBy(F.window("ts", "30 seconds"), "pos").agg(F.count("*").alias("cars"))
    return grouped.filter("cars >= 2").select("window", "pos", "cars"), "accidents"


def _anomalies(spark: SparkSession, folder: Path, part: str) -> tuple[Any, str]:
    from pyspark.sql import functions as F

    from domains import smart_grid

    readings = _read(spark, folder, "readings", "ts").withWatermark("ts", "1 hour")
    if part == "first":
        days = smart_grid.daily_consumption(readings)
        last = F.col("window.end") - F.expr("INTERVAL 1 MICROSECOND")
        start = F.col("window.start").alias("day")
        return days.select(start, last.alias("day_time"), "meter", "total"), "days"
    days = _read(spark, folder, "days", "day_time").withWatermark("day_time", "2 days")
    midnights = readings.filter(F.unix_seconds(F.col("ts")) % 86_400 < 3_600).select(
        F.col("ts").alias("midnight"),
        F.col("meter").alias("midnight_meter"),
        F.col("consumption").alias("reading"),
    )
    within_the_hour = (
        (F.col("meter") == F.col("midnight_meter"))
        & (F.col("midnight") > F.col("day_time"))
        & (F.col("midnight") <= F.col("day_time") + F.expr("INTERVAL 1 HOUR"))
    )
    difference = F.abs(F.col("total") - F.col("reading")).alias("difference")
    joined = days.join(midnights, within_the_hour, "inner")
    found = joined.select("day", "meter", "total", "reading", difference)
    return found.filter("difference > 30000"), "anomalies"


if __name__ == "__main__":
    main(sys.argv[1], Path(sys.argv[2]), sys.argv[3])
