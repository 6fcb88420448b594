"""Keys of every stream are recorded once, and are those of the rows that really came out."""

from __future__ import annotations

import datetime as dt
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import functions as F

import clew
from clew.exceptions import (
    AssertionsRefusedError,
    QueryError,
    ReplayError,
    UnknownStreamError,
    WriterError,
)
from clew.steps import listen, unlisten
from clew.testing import read_batches, run_stream, write_batches
from frames import READINGS, READINGS_DDL, at, scattered
from proof.recorded import hold_back, wrong_records

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import SparkSession

    Frame = clew.TracedFrame

NOON = at("12:00:00")
SEED = 31


def reading(meter: str, second: int, kwh: int) -> dict[str, Any]:
    return {"meter": meter, "ts": NOON + dt.timedelta(seconds=second), "kwh": kwh}


def readings(spark: SparkSession, folder: Path) -> Frame:
    df = read_batches(spark, folder / "in", "meter string, ts timestamp, kwh long")
    return clew.trace(df, "readings", event_time="ts")


def write(folder: Path, *batches: list[dict[str, Any]]) -> None:
    kind = pa.schema(
        [("meter", pa.string()), ("ts", pa.timestamp("us", "UTC")), ("kwh", pa.int64())]
    )
    write_batches(folder / "in", kind, batches)


def sums(frame: Frame) -> Frame:
    large = frame.withWatermark("ts", "0 seconds").withColumn("wh", F.col("kwh") * 1000)
    kept = large.filter("kwh > 1").named("kept")
    windows = kept.groupBy(F.window("ts", "10 seconds"), "meter").agg(F.sum("wh").alias("wh"))
    return windows.filter("wh > 3000")


def recorded(prov: clew.Provenance, stream: str) -> list[tuple[Any, ...]]:
    """Seconds after noon, sequence number and delay in seconds of a stream's rows."""
    out = []
    for each in prov.assertions(stream, limit=None):
        assert each.time is not None
        assert each.delay is not None
        out.append(((each.time - NOON).total_seconds(), each.seq, each.delay / 1e6))
    return out


def test_keys_have_time_number_and_delay(spark: SparkSession, tmp_path: Path) -> None:
    write(
        tmp_path,
        [reading("a", 1, 1), reading("a", 3, 2), reading("a", 4, 3)],
        [reading("b", 6, 9), reading("a", 12, 2)],
        [reading("a", 60, 5)],  # closes the windows before it
    )

    run_stream(
        sums(readings(spark, tmp_path)),
        tmp_path / "prov",
        "out",
        checkpoint=tmp_path / "chk",
        assertions="all",
    )
    prov = clew.open(tmp_path / "prov")

    assert recorded(prov, "readings") == [
        (second, n, 0.0) for n, second in enumerate((1.0, 3.0, 4.0, 6.0, 12.0, 60.0), 1)
    ]
    assert recorded(prov, "kept") == [
        (second, n, 0.0) for n, second in enumerate((3.0, 4.0, 6.0, 12.0, 60.0), 1)
    ]
    # Both windows end ten seconds after noon; their last rows were 6 and 4 seconds before.
    assert sorted(recorded(prov, "out")) == [(10.0, 1, 0.0), (10.0, 2, 0.0)]
    sums_of_windows = [r.stream for r in prov.recordings() if r.stream == "out.5"]
    assert sums_of_windows == ["out.5"]
    assert {(time, delay) for time, _, delay in recorded(prov, "out.5")} == {
        (10.0, 6.0),
        (10.0, 4.0),
        (20.0, 8.0),
    }


def test_a_window_that_closed_before_does_not_come_out_again(
    spark: SparkSession, tmp_path: Path
) -> None:
    def run() -> None:
        frame = readings(spark, tmp_path).withWatermark("ts", "0 seconds")
        windows = frame.groupBy(F.window("ts", "10 seconds")).agg(F.sum("kwh").alias("kwh"))
        even = windows.filter("kwh % 2 = 0")
        place = tmp_path / "chk"
        run_stream(even, tmp_path / "prov", "out", checkpoint=place, assertions="all")

    # The first window has 5; without its oldest row, which later rounds do not read, it has 4.
    first = [[reading("a", 12, 2), reading("a", 0, 1), reading("a", 8, 2)]]
    first += [[reading("a", 7, 1), reading("a", 7, 1)]]
    write(tmp_path, *first)
    run()
    later = [reading("a", second, 1) for second in (58, 66, 72, 73, 74, 74)]
    # A row without a time: Parquet's statistics no longer say that all is worth reading.
    later.append({"meter": "a", "ts": None, "kwh": 1})
    write(tmp_path, later, [reading("a", 2000, 1)])
    run()

    prov = clew.open(tmp_path / "prov")
    assert [time for time, _, _ in recorded(prov, "out")] == [20.0, 80.0]


def test_streams_with_the_same_rows_take_no_space(spark: SparkSession, tmp_path: Path) -> None:
    write(tmp_path, [reading("a", 1, 1), reading("a", 2, 7)])
    frame = readings(spark, tmp_path).withColumn("wh", F.col("kwh") * 1000)
    for step in range(4):
        frame = frame.withColumn("wh", F.col("wh") + step).withColumnRenamed("wh", f"wh{step}")
        frame = frame.withColumnRenamed(f"wh{step}", "wh")

    run_stream(frame, tmp_path / "prov", "out", checkpoint=tmp_path / "chk", assertions="all")
    prov = clew.open(tmp_path / "prov")

    found = {r.stream: r for r in prov.recordings()}
    assert len(found) == 14
    assert [name for name, r in found.items() if r.same_as is None] == ["readings"]
    assert {r.rows for r in found.values()} == {2}
    files = [p.name for p in (tmp_path / "prov" / "assertions").rglob("*.parquet")]
    assert files == ["copy-0.parquet"]
    assert recorded(prov, "out") == [(1.0, 1, 0.0), (2.0, 2, 0.0)]


def test_content_is_kept_of_first_inputs_or_of_all(spark: SparkSession, tmp_path: Path) -> None:
    write(tmp_path, [reading("a", 1, 4), reading("b", 2, 1)], [reading("a", 60, 5)])

    for content in ("first", "all"):
        run_stream(
            sums(readings(spark, tmp_path)),
            tmp_path / content,
            "out",
            checkpoint=tmp_path / f"chk-{content}",
            assertions=["readings", "kept"],
            content=content,
        )
    first, every = clew.open(tmp_path / "first"), clew.open(tmp_path / "all")

    kept = [r.row or {} for r in first.assertions("readings")]
    assert [(row["meter"], row["kwh"]) for row in kept] == [("a", 4), ("b", 1), ("a", 5)]
    assert [r.row for r in first.assertions("kept")] == [None, None]
    assert [(r.row or {})["wh"] for r in every.assertions("kept")] == [4000, 5000]
    assert [row["wh"] for row in every.rows("out")] == [4000]
    assert len(first.rows("out")) == 0


def test_results_without_content_are_traced_by_id(spark: SparkSession, tmp_path: Path) -> None:
    write(tmp_path, [reading("a", 1, 4), reading("a", 2, 3)], [reading("a", 60, 5)])
    frame = sums(readings(spark, tmp_path))
    run_stream(frame, tmp_path / "prov", "out", checkpoint=tmp_path / "chk", assertions=["out"])
    prov = clew.open(tmp_path / "prov", pipelines={"out": frame})

    [result] = prov.assertions("out")
    trace = prov.backward("out", result.id)

    assert sorted(row["kwh"] for row in trace.rows) == [3, 4]
    assert (prov.replay(trace).same, prov.replay(trace).unchanged) == (True, 1)
    with pytest.raises(ReplayError, match="nothing to compare"):
        prov.replay("out")
    with pytest.raises(ReplayError, match="no vertices"):
        prov.graph().advance()
    with pytest.raises(QueryError, match="asked for by id"):
        prov.unfold("out", where="wh > 1")


def late_and_nested(frame: Frame) -> Frame:
    kept = frame.withWatermark("ts", "1 minute").filter("kwh > 0")
    inner = kept.groupBy(F.window("ts", "20 seconds", "10 seconds"), "meter")
    few = inner.agg(F.count("*").alias("n")).filter("n < 3").named("few")
    outer = few.groupBy(F.window(F.window_time("window"), "20 seconds"), "meter")
    return outer.agg(F.count("*").alias("windows"))


def joined(frame: Frame) -> Frame:
    other = frame.select(F.col("ts").alias("ts2"), F.col("meter").alias("meter2"), "kwh")
    near = F.expr("meter = meter2 AND ts2 > ts AND ts2 <= ts + INTERVAL 20 SECONDS")
    one = frame.select("ts", "meter").withWatermark("ts", "1 minute")
    return one.join(other.withWatermark("ts2", "1 minute"), near)


@pytest.mark.parametrize(("query", "content"), [(late_and_nested, "all"), (joined, "first")])
def test_every_step_has_the_rows_that_came_out_of_it_over_two_runs(
    spark: SparkSession, tmp_path: Path, query: Any, content: str
) -> None:
    write_batches(tmp_path / "in", READINGS, scattered(SEED, 4, rows=10, late=150))
    df = read_batches(spark, tmp_path / "in", READINGS_DDL)
    frame = query(clew.trace(df, "readings", event_time="ts"))
    held = hold_back([tmp_path / "in"], tmp_path / "aside")

    assert wrong_records(frame, tmp_path, content, held, all_steps=False) == ""


def test_a_round_that_died_is_recorded_once(spark: SparkSession, tmp_path: Path) -> None:
    write(tmp_path, [reading("a", 1, 4), reading("a", 2, 1)])
    frame = readings(spark, tmp_path).filter("kwh > 2").named("kept").select("ts")
    said: dict[str, Any] = {"checkpoint": tmp_path / "chk", "assertions": "all"}

    for step in ("round begun", "keys written", "round written"):

        def die(reached: str, _: int, step: str = step) -> None:
            if reached == step:
                raise RuntimeError(step)

        listen(die)
        try:
            with pytest.raises(RuntimeError, match=step):
                run_stream(frame, tmp_path / "prov", "out", **said)
        finally:
            unlisten(die)
    write(tmp_path, [reading("a", 3, 9)])
    run_stream(frame, tmp_path / "prov", "out", **said)
    run_stream(frame, tmp_path / "prov", "out", **said)

    prov = clew.open(tmp_path / "prov")
    assert recorded(prov, "kept") == [(1.0, 1, 0.0), (3.0, 2, 0.0)]
    assert recorded(prov, "readings") == [(1.0, 1, 0.0), (2.0, 2, 0.0), (3.0, 3, 0.0)]
    rounds = sorted((tmp_path / "prov" / "asserted" / "out").glob("*.json"))
    assert len(rounds) >= 1


def test_the_record_outlives_the_source(spark: SparkSession, tmp_path: Path) -> None:
    write(tmp_path, [reading("a", 1, 4)])
    frame = readings(spark, tmp_path).filter("kwh > 2")
    run_stream(frame, tmp_path / "prov", "out", checkpoint=tmp_path / "chk", assertions="all")

    (tmp_path / "in" / "00000.parquet").unlink()

    [kept] = clew.open(tmp_path / "prov").assertions("readings")
    assert kept.row == {"meter": "a", "ts": NOON + dt.timedelta(seconds=1), "kwh": 4}


def test_an_erased_row_is_erased_from_the_record(spark: SparkSession, tmp_path: Path) -> None:
    write(tmp_path, [reading("a", 1, 4), reading("a", 2, 3)], [reading("a", 60, 5)])
    frame = sums(readings(spark, tmp_path))
    run_stream(
        frame,
        tmp_path / "prov",
        "out",
        checkpoint=tmp_path / "chk",
        assertions=["readings"],
        content="all",
        capture="sets",
    )
    prov = clew.open(tmp_path / "prov")
    [gone] = [each for each in prov.assertions("readings") if (each.row or {})["kwh"] == 4]

    assert prov.erase("readings", gone.id).copies == 2

    after = [each.row for each in prov.assertions("readings")]
    assert after[0] == {"meter": None, "ts": NOON + dt.timedelta(seconds=1), "kwh": None}
    assert [(row or {})["kwh"] for row in after[1:]] == [3, 5]
    assert next(each.time for each in prov.assertions("readings")) == gone.time


def test_a_batch_is_recorded_too(spark: SparkSession, tmp_path: Path) -> None:
    write(tmp_path, [reading("a", 1, 4), reading("b", 2, 1)])
    table = spark.read.parquet(str(tmp_path / "in"))
    frame = clew.trace(table, "readings", event_time="ts").filter("kwh > 2")

    writer = frame.write.provenance(str(tmp_path / "prov"), name="out", assertions="all")
    writer.parquet(str(tmp_path / "out"))

    prov = clew.open(tmp_path / "prov")
    assert recorded(prov, "readings") == [(1.0, 1, 0.0), (2.0, 2, 0.0)]
    assert recorded(prov, "out") == [(1.0, 1, 0.0)]
    assert [row["kwh"] for row in prov.rows("out")] == [4]


def test_keys_take_few_bytes(tmp_path: Path) -> None:
    from clew.store.short_keys import put_keys

    rows = 100_000
    times = pa.array(range(0, rows * 1000, 1000), pa.timestamp("us", "UTC"))
    keys = {"b": pa.array(range(rows)), "time": times, "delay": pa.array([0] * rows)}
    put_keys(pa.table({"a": pa.array([7] * rows), **keys}), tmp_path / "positions.parquet")

    assert (tmp_path / "positions.parquet").stat().st_size < 20_000
    assert pq.read_table(tmp_path / "positions.parquet")["b"].to_pylist() == list(range(rows))


def test_what_cannot_be_recorded_is_said(spark: SparkSession, tmp_path: Path) -> None:
    write(tmp_path, [reading("a", 1, 4)])
    frame = readings(spark, tmp_path).withWatermark("ts", "1 minute")
    place = str(tmp_path / "prov")

    with pytest.raises(WriterError, match="no stream of this query"):
        frame.writeStream.provenance(place, assertions=["meters"]).queryName("out").start()
    with pytest.raises(WriterError, match='`content` is "first" or "all"'):
        frame.writeStream.provenance(place, assertions="all", content="none")  # type: ignore[arg-type]
    with pytest.raises(WriterError, match="keeps no results"):
        frame.writeStream.provenance(place, assertions="all", capture="sets")
    once = frame.dropDuplicatesWithinWatermark(["meter"])
    with pytest.raises(AssertionsRefusedError, match="leave this one out"):
        once.writeStream.provenance(place, assertions="all").queryName("out").start()
    run_stream(
        frame, tmp_path / "prov", "out", checkpoint=tmp_path / "chk", assertions=["readings"]
    )
    with pytest.raises(UnknownStreamError, match="readings"):
        clew.open(place).assertions("meters")
