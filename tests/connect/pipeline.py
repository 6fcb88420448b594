"""Trace, run and ask under Spark Connect, in a process of its own.

Run as `python pipeline.py FOLDER`: starts a local Connect server, streams FOLDER/in, asks
backward, and prints what it found as JSON on the last line.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

sys.path[:0] = [str(Path(__file__).parents[1]), str(Path(__file__).parents[2] / "src")]


def main(folder: Path) -> None:
    from pyspark.sql import SparkSession, Window
    from pyspark.sql import functions as F
    from pyspark.sql.utils import is_remote

    import clew
    from clew.exceptions import BeyondRowError
    from clew.testing import read_batches
    from frames import READINGS_DDL

    spark = (
        SparkSession.builder.remote("local[2]")
        .config("spark.ui.enabled", "false")
        .config("spark.sql.shuffle.partitions", "2")
        .config("spark.sql.session.timeZone", "UTC")
        .config("spark.sql.warehouse.dir", str(folder / "warehouse"))
        .getOrCreate()
    )
    readings = clew.trace(read_batches(spark, folder / "in", READINGS_DDL), "readings")
    refused = []
    for column in (F.sum("kwh").over(Window.partitionBy("meter")), F.expr("sum(kwh)")):
        try:
            readings.select(column)
        except BeyondRowError as error:
            refused.append(error.found)
    windows = readings.withWatermark("ts", "0 seconds").groupBy(
        F.window("ts", "10 seconds"), "meter"
    )
    counted = windows.agg(F.count("*").alias("n")).filter(F.col("n") > 1)
    writer = counted.writeStream.provenance(str(folder / "prov")).queryName("counts")
    writer = writer.format("parquet").option("path", str(folder / "out"))
    query = writer.trigger(availableNow=True).start()
    query.awaitTermination()
    prov = clew.open(str(folder / "prov"))
    answers = [
        {"meter": row["meter"], "rids": sorted(r["rid"] for r in prov.backward("counts", row).rows)}
        for row in prov.rows("counts")
    ]
    from clew.again.rebuild import check_stored, rebuild

    said = check_stored(folder / "prov", "counts")["pipeline"]
    prov._pipelines["counts"] = rebuild(folder / "prov", "counts")
    again = prov.replay(prov.backward("counts", list(prov.rows("counts"))))
    sink = spark.read.parquet(str(folder / "out")).select("meter", "n").collect()
    result = {
        "remote": is_remote(),
        "identity": str(readings.node.operator.origin.identity),  # type: ignore[attr-defined]
        "refused": refused,
        "answers": answers,
        "stored": said["steps"][-1]["with"]["args"]["tuple"][0]["sql"],
        "again": [again.unchanged, len(again.differences)],
        "sink": [list(row) for row in sink],
    }
    spark.stop()
    print(json.dumps(result))


if __name__ == "__main__":
    main(Path(sys.argv[1]))
