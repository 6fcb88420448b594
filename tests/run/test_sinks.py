"""Sinks get the rows they would have had, once, in the layout that was asked for."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from pyspark.sql import functions as F

import clew
from clew.exceptions import GraphError, StoreConflictError, StoreError, WriterError
from clew.testing import all_traces, read_batches, write_batches
from frames import READINGS, READINGS_DDL, at

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from pyspark.sql import DataFrame, SparkSession

BATCHES = [
    [{"rid": 1, "ts": at("12:00:00"), "meter": "m1", "kwh": 5}],
    [
        {"rid": 2, "ts": at("12:00:01"), "meter": "m2", "kwh": 6},
        {"rid": 3, "ts": at("12:00:02"), "meter": None, "kwh": None},
    ],
]


@pytest.fixture
def readings(spark: SparkSession, tmp_path: Path) -> clew.TracedFrame:
    write_batches(tmp_path / "in", READINGS, BATCHES)
    return clew.trace(read_batches(spark, tmp_path / "in", READINGS_DDL), "readings")


def start(writer: Any) -> Any:
    query = writer.trigger(availableNow=True).start()
    query.awaitTermination()
    return query


@pytest.mark.parametrize("form", ["parquet", "orc", "json", "csv"])
def test_file_sinks_hold_clean_rows(
    spark: SparkSession, readings: clew.TracedFrame, tmp_path: Path, form: str
) -> None:
    out = tmp_path / "out"
    writer = readings.select("rid", "kwh").writeStream.provenance(str(tmp_path / "prov"))
    start(writer.queryName("all").format(form).option("path", str(out)))

    found = spark.read.schema("rid long, kwh long").format(form).load(str(out))
    assert sorted(map(tuple, found.collect()), key=str) == [(1, 5), (2, 6), (3, None)]
    assert not any(p.is_dir() for p in out.iterdir() if not p.name.startswith("_"))


def test_partitioned_files_and_the_id_column(
    spark: SparkSession, readings: clew.TracedFrame, tmp_path: Path
) -> None:
    writer = readings.select("rid", "meter").writeStream.partitionBy("meter")
    writer = writer.provenance(str(tmp_path / "prov"), keep_id=True)
    start(writer.queryName("all").format("parquet").option("path", str(tmp_path / "out")))

    found = spark.read.parquet(str(tmp_path / "out")).orderBy("rid").collect()

    assert [(row["rid"], row["meter"]) for row in found] == [(1, "m1"), (2, "m2"), (3, None)]
    prov = clew.open(str(tmp_path / "prov"))
    trace = prov.backward("all", found[1]["clew_id"])
    assert [row["rid"] for row in trace.rows] == [2]


def test_table_sink_creates_and_appends(
    spark: SparkSession, readings: clew.TracedFrame, tmp_path: Path
) -> None:
    spark.sql("DROP TABLE IF EXISTS kept_readings")
    writer = readings.select("kwh", "meter", "rid").writeStream.provenance(str(tmp_path / "prov"))
    writer = writer.queryName("kept").partitionBy("meter").trigger(availableNow=True)

    writer.toTable("kept_readings").awaitTermination()

    rows = spark.table("kept_readings").select("rid", "meter", "kwh").orderBy("rid").collect()
    spark.sql("DROP TABLE kept_readings")
    assert [tuple(row) for row in rows] == [(1, "m1", 5), (2, "m2", 6), (3, None, None)]


def test_the_users_own_function_gets_each_batch_once(
    readings: clew.TracedFrame, tmp_path: Path
) -> None:
    seen: list[tuple[int, list[str], int]] = []

    def take(df: DataFrame, batch: int) -> None:
        seen.append((batch, df.columns, df.count()))

    writer = readings.select("rid").writeStream.provenance(str(tmp_path / "prov"))
    start(writer.queryName("mine").foreachBatch(take))

    assert seen == [(0, ["rid"], 1), (1, ["rid"], 2)]


def test_without_a_place_for_provenance_the_query_is_sparks_own(
    spark: SparkSession, readings: clew.TracedFrame, tmp_path: Path
) -> None:
    writer = readings.filter(readings["rid"] > 1).writeStream.format("parquet")
    writer = writer.option("checkpointLocation", str(tmp_path / "chk"))

    start(writer.option("path", str(tmp_path / "out")))

    assert (tmp_path / "out" / "_spark_metadata").is_dir()
    found = spark.read.parquet(str(tmp_path / "out"))
    assert found.columns == ["rid", "ts", "meter", "kwh"]
    assert found.count() == 2


def test_a_second_start_goes_on_where_the_first_stopped(
    spark: SparkSession, readings: clew.TracedFrame, tmp_path: Path
) -> None:
    def run() -> None:
        writer = readings.writeStream.provenance(str(tmp_path / "prov")).queryName("all")
        writer = writer.format("parquet").option("path", str(tmp_path / "out"))
        start(writer.option("checkpointLocation", str(tmp_path / "chk")))

    run()
    write_batches(tmp_path / "in", READINGS, [[{**BATCHES[0][0], "rid": 4}]])
    run()

    assert spark.read.parquet(str(tmp_path / "out")).count() == 4
    traces = all_traces(tmp_path / "prov", "all")
    assert sorted((t.values["rid"], len(t.refs("rid"))) for t in traces) == [
        (1, 1),
        (2, 1),
        (3, 1),
        (4, 1),
    ]


def test_another_checkpoint_needs_a_decision(readings: clew.TracedFrame, tmp_path: Path) -> None:
    def run(checkpoint: str, **options: Any) -> None:
        writer = readings.writeStream.provenance(str(tmp_path / "prov"), **options)
        start(writer.queryName("all").option("checkpointLocation", str(tmp_path / checkpoint)))

    run("one")
    with pytest.raises(StoreConflictError, match='restart="overwrite"'):
        run("two")
    run("two", restart="overwrite")

    assert len(all_traces(tmp_path / "prov", "all")) == 3


@pytest.mark.parametrize("mode", ["update", "complete"])
def test_other_output_modes_are_refused(
    readings: clew.TracedFrame, tmp_path: Path, mode: str
) -> None:
    counted = readings.groupBy("meter").count()
    writer = counted.writeStream.provenance(str(tmp_path / "prov")).queryName("n").outputMode(mode)

    with pytest.raises(WriterError, match=f"got `{mode}`"):
        writer.start()
    assert not (tmp_path / "prov").exists()


def test_settings_that_cannot_work_are_refused_before_anything_is_written(
    spark: SparkSession, readings: clew.TracedFrame, tmp_path: Path
) -> None:
    prov = str(tmp_path / "prov")
    traced = readings.writeStream.provenance(prov)
    cases: list[tuple[Any, str]] = [
        (traced, "queryName"),
        (traced.queryName("q").format("parquet"), "needs a path"),
        (traced.queryName("q").format("memory"), "clew.open"),
        (
            traced.queryName("q").format("parquet").option("path", "x").partitionBy("nope"),
            "`partitionBy` names the column `nope`",
        ),
        (readings.writeStream.provenance(prov, event_time="nope").queryName("q"), "nope"),
    ]
    for writer, message in cases:
        with pytest.raises(WriterError, match=message):
            writer.start()
    with pytest.raises(WriterError, match="foreachBatch"):
        traced.foreach(print)
    with pytest.raises(WriterError, match="on_error"):
        readings.writeStream.provenance(prov, on_error="ignore")  # type: ignore[arg-type]
    with pytest.raises(WriterError, match="`.writeStream`"):
        readings.write.provenance(prov).parquet("x")
    batch = clew.trace(spark.range(3), "n", id=["id"])
    with pytest.raises(WriterError, match="`.write`"):
        batch.writeStream.provenance(prov).queryName("q").start()
    assert not (tmp_path / "prov").exists()


def test_a_query_that_spark_refuses_leaves_nothing_behind(
    readings: clew.TracedFrame, tmp_path: Path
) -> None:
    from pyspark.errors import AnalysisException

    counted = readings.groupBy("meter").count()
    with pytest.raises(AnalysisException, match="watermark"):
        counted.writeStream.provenance(str(tmp_path / "prov")).queryName("n").start()
    assert not (tmp_path / "prov").exists()

    start(readings.writeStream.provenance(str(tmp_path / "prov")).queryName("all"))
    with pytest.raises(AnalysisException, match="watermark"):
        counted.writeStream.provenance(str(tmp_path / "prov")).queryName("n").start()
    assert [s.name for s in clew.open(str(tmp_path / "prov")).streams()] == ["all", "readings"]


def test_a_folder_that_is_no_store_is_left_alone(
    readings: clew.TracedFrame, tmp_path: Path
) -> None:
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "notes.txt").write_text("keep me")

    with pytest.raises(StoreConflictError, match="not a clew store"):
        readings.writeStream.provenance(str(tmp_path / "mine")).queryName("q").start()

    assert [p.name for p in (tmp_path / "mine").iterdir()] == ["notes.txt"]


def test_a_path_of_a_plain_stream_is_refused(readings: clew.TracedFrame, tmp_path: Path) -> None:
    (tmp_path / "out" / "_spark_metadata").mkdir(parents=True)
    writer = readings.writeStream.provenance(str(tmp_path / "prov")).queryName("q")

    with pytest.raises(WriterError, match="_spark_metadata"):
        writer.format("parquet").option("path", str(tmp_path / "out")).start()


def break_store(readings: clew.TracedFrame, tmp_path: Path, on_error: str) -> Any:
    """Put a file where the edges of the query would go."""
    prov = tmp_path / "prov"
    writer = readings.writeStream.provenance(str(prov), on_error=on_error)  # type: ignore[arg-type]
    calls: list[int] = []

    def take(df: DataFrame, batch: int) -> None:
        calls.append(batch)
        if batch == 0:
            (prov / "edges").mkdir(exist_ok=True)
            (prov / "edges" / "all").write_text("in the way")
        else:
            (prov / "edges" / "all").unlink()

    query = writer.queryName("all").foreachBatch(take).trigger(availableNow=True).start()
    return query, calls


def test_a_failure_to_write_provenance_stops_the_query(
    readings: clew.TracedFrame, tmp_path: Path
) -> None:
    query, calls = break_store(readings, tmp_path, "fail")

    with pytest.raises(Exception, match="so the query stops"):
        query.awaitTermination()

    assert calls == [0]
    assert all_traces(tmp_path / "prov", "all") == []


def test_a_gap_is_recorded_and_answers_name_it(readings: clew.TracedFrame, tmp_path: Path) -> None:
    query, calls = break_store(readings, tmp_path, "gap")
    query.awaitTermination()

    assert calls == [0, 1]
    prov = clew.open(str(tmp_path / "prov"))
    [row] = prov.rows("all", where="rid = 2")
    forward = prov.forward("readings", prov.backward("all", row).rows[0])
    assert not forward.complete
    assert [(gap.first, gap.last) for gap in forward.gaps] == [(0, 0)]


def test_batch_writes_append_overwrite_and_name_themselves(
    spark: SparkSession, tmp_path: Path
) -> None:
    prov = str(tmp_path / "prov")
    rows = clew.trace(spark.createDataFrame([(1, "a"), (2, "b")], "rid long, k string"), "rows")

    rows.filter("rid = 1").write.provenance(prov).parquet(str(tmp_path / "out"))
    rows.filter("rid = 2").write.provenance(prov).mode("append").parquet(str(tmp_path / "out"))
    assert sorted(t.values["rid"] for t in all_traces(prov, "out")) == [1, 2]

    rows.filter("rid = 2").write.provenance(prov).mode("overwrite").parquet(str(tmp_path / "out"))
    assert [t.values["rid"] for t in all_traces(prov, "out")] == [2]
    assert spark.read.parquet(str(tmp_path / "out")).count() == 1

    with pytest.raises(WriterError, match="ignore"):
        rows.write.provenance(prov).mode("ignore").parquet(str(tmp_path / "out"))


def test_an_empty_result_is_written_too(spark: SparkSession, tmp_path: Path) -> None:
    rows = clew.trace(spark.createDataFrame([(1,)], "rid long"), "rows").filter("rid > 9")

    rows.write.provenance(str(tmp_path / "prov")).parquet(str(tmp_path / "out"))

    assert spark.read.parquet(str(tmp_path / "out")).count() == 0
    assert all_traces(tmp_path / "prov", "out") == []


def test_a_source_keeps_its_identity_in_a_store(spark: SparkSession, tmp_path: Path) -> None:
    df = spark.createDataFrame([(1,)], "rid long")
    prov = str(tmp_path / "prov")
    clew.trace(df, "rows", id=["rid"]).write.provenance(prov, name="a").format("noop").mode(
        "append"
    ).save()

    again = clew.trace(df, "rows").write.provenance(prov, name="b").format("noop").mode("append")
    with pytest.raises(StoreConflictError, match="another row identity"):
        again.save()


def test_a_workflow_is_traced_through_both_queries(
    spark: SparkSession, readings: clew.TracedFrame, tmp_path: Path
) -> None:
    prov = str(tmp_path / "prov")
    writer = readings.filter("kwh > 0").writeStream.provenance(prov, keep_id=True)
    start(writer.queryName("high").format("parquet").option("path", str(tmp_path / "high")))

    high = clew.trace(spark.read.parquet(str(tmp_path / "high")), "high")
    high.groupBy().count().write.provenance(prov, name="total").format("noop").mode("append").save()

    store = clew.open(prov)
    [total] = store.rows("total")
    assert sorted(row["rid"] for row in store.backward("total", total).rows) == [1, 2]
    assert sorted(r["rid"] for r in store.backward("total", total, scope="high").rows) == [1, 2]
    [first] = store.rows("readings", where="rid = 1")
    assert set(store.forward("readings", first).rows.streams) == {"high", "total"}


def test_an_unwritable_store_is_refused(spark: SparkSession, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("not a folder")
    frame = clew.trace(spark.range(1), "n", id=["id"])

    with pytest.raises((StoreError, WriterError), match="cannot write|not a clew store"):
        frame.write.provenance(str(tmp_path / "file" / "prov"), name="x").format("noop").mode(
            "append"
        ).save()


def test_names_that_would_mix_rows_up_are_refused(spark: SparkSession, tmp_path: Path) -> None:
    prov = str(tmp_path / "prov")
    one = clew.trace(spark.range(2), "n", id=["id"])
    other = clew.trace(spark.range(3), "n", id=["id"])

    def save(frame: clew.TracedFrame, name: str) -> None:
        frame.write.provenance(prov, name=name).format("noop").mode("append").save()

    with pytest.raises(GraphError, match="two sources of the pipeline are called `n`"):
        save(one.union(other), "out")
    with pytest.raises(GraphError, match="the results are called `n`"):
        save(one, "n")
    save(one, "out")
    elsewhere = clew.trace(spark.range(1), "m", id=["id"])
    with pytest.raises(StoreConflictError, match="the store has a source `n`"):
        save(elsewhere, "n")
    with pytest.raises(StoreConflictError, match="filled by `out`"):
        save(elsewhere.named("out"), "more")


ZONE = "spark.sql.session.timeZone"


@pytest.fixture
def zone(spark: SparkSession) -> Iterator[Callable[[str], None]]:
    before = str(spark.conf.get(ZONE))
    yield lambda name: spark.conf.set(ZONE, name)
    spark.conf.set(ZONE, before)


def days(frame: clew.TracedFrame) -> clew.TracedFrame:
    return frame.select(frame["rid"], F.to_date("ts").cast("string").alias("day"))


def test_settings_that_change_after_a_pipeline_was_built_do_not_change_its_result(
    spark: SparkSession, tmp_path: Path, zone: Callable[[str], None]
) -> None:
    write_batches(tmp_path / "in", READINGS, [[{"rid": 1, "ts": at("04:30:00")}]])
    store, out = str(tmp_path / "prov"), str(tmp_path / "out")
    zone("America/New_York")
    table = days(clew.trace(spark.read.parquet(str(tmp_path / "in")), "readings"))
    batches = read_batches(spark, tmp_path / "in", READINGS_DDL)
    stream = days(clew.trace(batches, "readings")).writeStream.queryName("days").format("noop")
    zone("Asia/Tokyo")

    for write in (
        lambda: table.write.provenance(store).parquet(out),
        lambda: start(stream.provenance(store)),
        lambda: start(stream.option("checkpointLocation", out).provenance(mode="receive")),
    ):
        with pytest.raises(WriterError, match=r'timeZone", "America/New_York"'):
            write()

    zone("America/New_York")
    table.write.provenance(store).parquet(out)
    assert spark.read.parquet(out).collect() == table.plain.collect() == [(1, "2025-12-31")]


def test_settings_that_change_before_a_pipeline_is_built_are_its_own(
    spark: SparkSession, tmp_path: Path, zone: Callable[[str], None]
) -> None:
    write_batches(tmp_path / "in", READINGS, [[{"rid": 1, "ts": at("04:30:00")}]])
    traced = clew.trace(spark.read.parquet(str(tmp_path / "in")), "readings")
    zone("America/New_York")
    same = F.udf(lambda rid: rid, "long")
    table = days(traced.withColumn("rid", same("rid")).filter("rid > 0"))

    table.write.provenance(str(tmp_path / "prov")).parquet(str(tmp_path / "out"))

    assert spark.read.parquet(str(tmp_path / "out")).collect() == [(1, "2025-12-31")]
