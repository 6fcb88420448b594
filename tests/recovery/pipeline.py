"""A traced stream in a process of its own, which can be killed at a named step.

Run as `python pipeline.py FOLDER [STEP OCCURRENCE]`: it streams FOLDER/in to FOLDER/out with
provenance in FOLDER/prov, and dies by SIGKILL when the step is reached for the given time.
"""

from __future__ import annotations

import os
import signal
import sys
from pathlib import Path

sys.path[:0] = [str(Path(__file__).parents[1]), str(Path(__file__).parents[2] / "src")]


def kill_at(step: str, occurrence: int) -> None:
    from clew.steps import listen

    seen = 0

    def listener(reached: str, batch: int) -> None:
        nonlocal seen
        seen += reached == step
        if seen == occurrence and reached == step:
            print(f"killed at {step}, batch {batch}", flush=True)
            os.kill(os.getpid(), signal.SIGKILL)

    listen(listener)


def main(folder: Path) -> None:
    from pyspark.sql import functions as F

    import clew
    from clew.testing import read_batches
    from frames import READINGS_DDL
    from session import make_session

    spark = make_session(folder / "scratch", cores=1)
    spark.conf.set("spark.sql.shuffle.partitions", "1")
    readings = clew.trace(read_batches(spark, folder / "in", READINGS_DDL), "readings")
    tens = (
        readings.withWatermark("ts", "0 seconds")
        .groupBy(F.window("ts", "20 seconds", "10 seconds"), "meter")
        .agg(F.count("*").alias("n"), F.collect_set("rid").alias("rids"))
    )
    query = (
        tens.named("sums")
        .select("meter", "n", "rids", F.col("window.start").alias("start"))
        .writeStream.provenance(str(folder / "prov"), keep_id=True, capture="sets")
        .queryName("counts")
        .format("parquet")
        .option("path", str(folder / "out"))
        .option("checkpointLocation", str(folder / "chk"))
        .trigger(availableNow=True)
        .start()
    )
    query.awaitTermination()
    print("finished", flush=True)


if __name__ == "__main__":
    if len(sys.argv) > 2:
        kill_at(sys.argv[2], int(sys.argv[3]))
    main(Path(sys.argv[1]))
