"""Unfold a store in a process of its own, which can be killed at a named step.

Run as `python unfolding.py FOLDER run` to stream FOLDER/in into FOLDER/prov without unfolding, and
as `python unfolding.py FOLDER unfold [STEP OCCURRENCE]` to unfold it, a few batches at a time.
"""

from __future__ import annotations

import sys
from pathlib import Path

sys.path[:0] = [str(Path(__file__).parents[1]), str(Path(__file__).parents[2] / "src")]


def main(folder: Path, command: str) -> None:
    from pyspark.sql import functions as F

    import clew
    from clew.again.stage import Stage
    from clew.store.layout import read_json
    from clew.testing import read_batches
    from frames import READINGS_DDL
    from session import make_session

    spark = make_session(folder / "scratch", cores=1)
    spark.conf.set("spark.sql.shuffle.partitions", "1")
    readings = clew.trace(read_batches(spark, (folder / "in").resolve(), READINGS_DDL), "readings")
    tens = (
        readings.withWatermark("ts", "0 seconds")
        .groupBy(F.window("ts", "20 seconds", "10 seconds"), "meter")
        .agg(F.count("*").alias("n"))
        .named("tens")
    )
    minutes = tens.groupBy(F.window(F.window_time("window"), "60 seconds")).agg(
        F.sum("n").alias("n"), F.count("*").alias("windows")
    )
    if command == "run":
        query = (
            minutes.writeStream.provenance(str(folder / "prov"), capture="pointers", unfold="later")
            .queryName("counts")
            .option("checkpointLocation", str(folder / "chk"))
            .trigger(availableNow=True)
            .start()
        )
        query.awaitTermination()
    else:
        run = read_json(folder / "chk" / "clew.json")["run"]
        stage = Stage(
            folder / "prov", "counts", run, minutes.node, str(folder / "chk"), most_rows=2
        )
        stage.unfold()
    print("finished", flush=True)


if __name__ == "__main__":
    if len(sys.argv) > 3:
        from recovery.pipeline import kill_at

        kill_at(sys.argv[3], int(sys.argv[4]))
    main(Path(sys.argv[1]), sys.argv[2])
