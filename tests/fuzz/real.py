"""Make a real store for the fuzzer, with Spark, in a process of its own: `python -m fuzz.real F`.

Its queries follow one another and are captured in different ways; one is unfolded in part, one
records keys, one is pruned, and a live graph has begun to follow them.
"""

from __future__ import annotations

import sys
from pathlib import Path

from pyspark.sql import functions as F

import clew
from clew.testing import read_batches, run_stream, write_batches
from frames import READINGS, READINGS_DDL, at
from session import make_session


def main(folder: Path) -> None:
    """Make the store `prov` in a folder."""
    store = folder / "prov"
    batches = [
        [{"rid": 1, "ts": at("12:00:01"), "meter": "a", "kwh": 3},
         {"rid": 2, "ts": at("12:00:04"), "meter": "a", "kwh": 4}],
        [{"rid": 3, "ts": at("12:00:08"), "meter": "b", "kwh": 5}],
        [{"rid": 4, "ts": at("12:30:00"), "meter": "a", "kwh": 6}],
    ]  # fmt: skip
    write_batches(folder / "in", READINGS, batches)
    spark = make_session(folder / "scratch")

    def readings() -> clew.TracedFrame:
        df = read_batches(spark, folder / "in", READINGS_DDL)
        return clew.trace(df, "readings", event_time="ts").withWatermark("ts", "0 seconds")

    window = F.window("ts", "10 seconds")
    counts = readings().filter("kwh > 0").named("used").groupBy(window, "meter").count()
    run_stream(counts, store, "counts", checkpoint=folder / "c1", assertions="all", content="all")
    sums = readings().groupBy(window, "meter").agg(F.sum("kwh").alias("total"))
    run_stream(sums, store, "sums", checkpoint=folder / "c2", capture="pointers")
    spans = readings().groupBy(window, "meter").agg(F.max("kwh").alias("most"))
    run_stream(spans, store, "spans", checkpoint=folder / "c3", capture="intervals", unfold="later")
    rows = clew.trace(spark.read.parquet(str(folder / "in")), "copies").filter("kwh > 3")
    rows.write.provenance(str(store), name="old").parquet(str(folder / "out"))
    with clew.open(store) as prov:
        prov.unfold("spans", first=1)
        prov.graph().advance()
        prov.prune("0 seconds", streams="old")
    spark.stop()


if __name__ == "__main__":
    main(Path(sys.argv[1]))
