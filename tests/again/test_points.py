"""Connection points: the same answers, and a size that does not grow."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from pyspark.sql import functions as F

import clew
from clew.again.stage import Stage
from clew.exceptions import SourceError
from clew.expiry.bound import last_part
from clew.testing import all_traces, read_batches, run_stream, write_batches
from frames import READINGS, READINGS_DDL, at

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import SparkSession


def minute(number: int) -> list[dict[str, Any]]:
    hour, rest = divmod(number, 60)
    times = [at(f"{12 + hour}:{rest:02d}:{s:02d}") for s in (5, 25, 45)]
    return [{"rid": 10 * number + i, "ts": t, "meter": "m", "kwh": i} for i, t in enumerate(times)]


def sums(frame: clew.TracedFrame) -> clew.TracedFrame:
    grouped = frame.withWatermark("ts", "0 seconds").groupBy(F.window("ts", "1 minute"), "meter")
    return grouped.agg(F.sum("kwh").alias("kwh"))


def test_a_point_gives_the_answers_of_the_source_and_stays_small(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_batches(tmp_path / "in", READINGS, [minute(n) for n in range(12)])
    stream = read_batches(spark, tmp_path / "in", READINGS_DDL)
    plain = sums(clew.trace(stream, "readings", event_time="ts"))
    run_stream(plain, tmp_path / "sets", "sums", checkpoint=tmp_path / "c1", capture="sets")
    pointed = sums(clew.trace(stream, "readings", event_time="ts", point=["rid", "meter", "kwh"]))
    place = tmp_path / "prov" / "points" / "sums" / "readings"
    sizes = []
    unfold = Stage.unfold

    def counting(stage: Stage, *args: Any) -> int:
        edges = unfold(stage, *args)
        sizes.append(len(list(place.glob("[0-9]*"))))
        return edges

    monkeypatch.setattr(Stage, "unfold", counting)
    monkeypatch.setattr("clew.run.stream._UNFOLD_EVERY", 0.1)
    run_stream(pointed, tmp_path / "prov", "sums", checkpoint=tmp_path / "c2", capture="pointers")

    expected = [(t.values, t.refs("rid")) for t in all_traces(tmp_path / "sets", "sums")]
    found = [(t.values, t.refs("rid")) for t in all_traces(tmp_path / "prov", "sums")]
    assert sorted(found, key=str) == sorted(expected, key=str)
    assert len(found) == 11
    assert sizes[-1] <= 2, "only the open window's rows are left"


def test_a_point_needs_the_event_time(spark: SparkSession) -> None:
    stream = spark.readStream.format("rate").load()

    with pytest.raises(SourceError, match='event_time="ts", point=True'):
        clew.trace(stream, "ticks", point=True)
    with pytest.raises(SourceError, match="`point` names `speed`"):
        clew.trace(stream, "ticks", event_time="timestamp", point=["speed"])


def test_what_a_point_may_forget_follows_from_windows_over_the_event_time(
    spark: SparkSession, tmp_path: Path
) -> None:
    write_batches(tmp_path / "in", READINGS, [minute(0)])
    stream = read_batches(spark, tmp_path / "in", READINGS_DDL)
    readings = clew.trace(stream, "readings", event_time="ts", point=True)
    later = readings.withColumn("ts", F.expr("ts + interval 1 day"))

    assert last_part(sums(readings).node) == 60_000_000
    assert last_part(sums(readings.select("ts", "meter", "kwh")).node) == 60_000_000
    assert last_part(sums(later).node) is None, "the watermark runs a day ahead of the event time"
