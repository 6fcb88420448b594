"""A stream goes on after its old batches were pruned: restart, unfolding, answers."""

from __future__ import annotations

import datetime as dt
from typing import TYPE_CHECKING

from pyspark.sql import functions as F

import clew
from clew.store.layout import read_json
from clew.testing import read_batches, run_stream, write_batches
from frames import READINGS, READINGS_DDL, at

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import SparkSession


def reading(clock: str, rid: int) -> dict[str, object]:
    return {"ts": at(clock), "meter": "m", "kwh": rid, "rid": rid}


def sums(spark: SparkSession, folder: Path) -> clew.TracedFrame:
    frame = clew.trace(read_batches(spark, folder, READINGS_DDL), "readings", event_time="ts")
    return (
        frame.withWatermark("ts", "0 seconds")
        .groupBy(F.window("ts", "10 seconds"), "meter")
        .agg(F.sum("kwh").alias("kwh"))
    )


def test_a_stream_goes_on_after_its_old_batches_were_pruned(
    spark: SparkSession, tmp_path: Path
) -> None:
    batches = [
        [reading("12:00:01", 1), reading("12:00:02", 2)],
        [reading("12:00:11", 4)],
        [reading("12:00:21", 8), reading("12:00:03", 64)],
        [reading("12:00:31", 16)],
    ]
    source, store = tmp_path / "in", tmp_path / "prov"
    write_batches(source, READINGS, batches[:3])
    run_stream(sums(spark, source), store, "out", checkpoint=tmp_path / "c", capture="pointers")
    with clew.open(store) as prov:
        commits = sorted((store / "batches" / "out").glob("*.json"))
        full = [p for p in commits if read_json(p)["sink_rows"]]
        assert [read_json(p)["sink_rows"] for p in full] == [1, 1]
        cutoff = dt.datetime.fromisoformat(read_json(full[1])["committed"].replace("Z", "+00:00"))

        done = prov.prune(cutoff)

        assert done.batches == 1
        assert done.queries[0].unfoldings == 1
        assert [row["kwh"] for row in prov.rows("out")] == [4]

        write_batches(source, READINGS, batches[3:])
        run_stream(sums(spark, source), store, "out", checkpoint=tmp_path / "c", capture="pointers")

        assert [row["kwh"] for row in prov.rows("out", order_by="kwh")] == [4, 8]
        # The late reading of 64 is in no window: which watermark it missed is known still.
        for kwh in (4, 8):
            trace = prov.backward("out", {"kwh": kwh})
            assert [row["rid"] for row in trace.rows] == [kwh]
            assert trace.complete
        [gap] = prov.forward("readings", trace.rows[0]).gaps
        assert gap.is_pruned
