"""A table beside a stream, and the source of a batch query, are read again as they were."""

from __future__ import annotations

import shutil
from typing import TYPE_CHECKING, Any

import pytest
from pyspark.sql import functions as F

import clew
from clew.again import known
from clew.again.held import rows_digest
from clew.exceptions import SourceChangedError
from clew.steps import listen, unlisten
from clew.testing import read_batches, run_stream, write_batches
from frames import READINGS, READINGS_DDL, at

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import SparkSession


def reading(rid: int, clock: str, kwh: int) -> dict[str, Any]:
    return {"rid": rid, "ts": at(clock), "meter": "a", "kwh": kwh}


def write_rates(spark: SparkSession, folder: Path, rows: list[tuple[str, str, int]]) -> None:
    rates = spark.createDataFrame(rows, "meter string, rate string, price int")
    rates.coalesce(1).write.mode("append").parquet(str(folder))


def priced(spark: SparkSession, folder: Path) -> clew.TracedFrame:
    """Count, for each minute and meter, the readings and their rates."""
    stream = read_batches(spark, folder / "in", READINGS_DDL)
    readings = clew.trace(stream, "readings", event_time="ts").withWatermark("ts", "0 seconds")
    rates = clew.trace(spark.read.parquet(str(folder / "my rates")), "rates")
    joined = readings.join(rates, "meter")
    grouped = joined.groupBy(F.window("ts", "1 minute"), "meter")
    return grouped.agg(F.count("*").alias("n"), F.sum("price").alias("price"))


def run(spark: SparkSession, folder: Path, capture: str) -> clew.TracedFrame:
    frame = priced(spark, folder)
    later: dict[str, Any] = {"unfold": "later"} if capture == "pointers" else {}
    run_stream(frame, folder / "prov", "bills", checkpoint=folder / "chk", capture=capture, **later)
    return frame


def rates_behind(prov: clew.Provenance, minute: str) -> list[str]:
    [row] = [r for r in prov.rows("bills") if f"{r['window']['start']:%H:%M}" == minute]
    why = prov.backward("bills", row.id)
    assert why.complete, why.gaps
    return sorted(row["rate"] for row in why.rows if row.stream == "rates")


def grow(spark: SparkSession, folder: Path, capture: str) -> clew.Provenance:
    """Run, let the table grow, and go on: first with one rate, then with two."""
    write_rates(spark, folder / "my rates", [("a", "old", 1)])
    write_batches(
        folder / "in", READINGS, [[reading(1, "12:00:00", 10)], [reading(2, "12:01:10", 20)]]
    )
    run(spark, folder, capture)
    write_rates(spark, folder / "my rates", [("a", "new", 5)])
    write_batches(
        folder / "in", READINGS, [[reading(3, "12:02:10", 30)], [reading(4, "12:04:00", 40)]]
    )
    run(spark, folder, capture)
    return clew.open(folder / "prov")


@pytest.mark.parametrize("capture", ["sets", "pointers", "intervals", "keys"])
def test_rows_that_were_appended_later_are_not_in_the_trace_of_an_older_result(
    spark: SparkSession, tmp_path: Path, capture: str
) -> None:
    prov = grow(spark, tmp_path, capture)

    assert rates_behind(prov, "12:00") == ["old"]
    if capture == "sets":
        assert rates_behind(prov, "12:01") == ["old"]
        assert rates_behind(prov, "12:02") == ["new", "old"]
        return
    # The reading of this minute came before the table grew, and its result after.
    [row] = [r for r in prov.rows("bills") if f"{r['window']['start']:%H:%M}" == "12:01"]
    if capture == "pointers":
        [gap] = prov.backward("bills", row.id).gaps
        assert "`rates` was another table in batch" in gap.reason
    else:
        with pytest.raises(SourceChangedError, match="`rates` was another table in batch"):
            prov.backward("bills", row.id)


@pytest.mark.parametrize("capture", ["pointers", "intervals"])
def test_a_table_of_another_process_that_was_rewritten_gives_no_answer(
    spark: SparkSession, tmp_path: Path, capture: str
) -> None:
    write_rates(spark, tmp_path / "my rates", [("a", "old", 1)])
    write_batches(
        tmp_path / "in", READINGS, [[reading(1, "12:00:00", 10)], [reading(2, "12:09:00", 20)]]
    )
    run(spark, tmp_path, capture)
    shutil.rmtree(tmp_path / "my rates")
    write_rates(spark, tmp_path / "my rates", [("a", "else", 7)])
    prov = clew.open(tmp_path / "prov", pipelines={"bills": priced(spark, tmp_path)})

    if capture == "intervals":
        with pytest.raises(SourceChangedError, match=r"part-.* is gone, after batch"):
            prov.backward("bills", {"meter": "a"})
        return
    why = prov.backward("bills", {"meter": "a"})
    assert (len(why.rows), why.complete) == (0, False)
    assert "is gone" in why.gaps[0].reason


def totals(spark: SparkSession, folder: Path) -> clew.TracedFrame:
    readings = clew.trace(spark.read.parquet(str(folder / "in")), "readings")
    return readings.groupBy("meter").agg(F.sum("kwh").alias("kwh"))


@pytest.mark.parametrize("capture", ["intervals", "keys"])
def test_files_that_came_to_a_batch_source_later_are_left_out(
    spark: SparkSession, tmp_path: Path, capture: Any
) -> None:
    write_batches(tmp_path / "in", READINGS, [[reading(1, "12:00:00", 10)]])
    writer = totals(spark, tmp_path).write.provenance(str(tmp_path / "prov"), capture=capture)
    writer.parquet(str(tmp_path / "sums"))
    write_batches(tmp_path / "in", READINGS, [[reading(2, "12:00:00", 20)]])

    prov = clew.open(tmp_path / "prov", pipelines={"sums": totals(spark, tmp_path)})

    assert [row["rid"] for row in prov.backward("sums", {"meter": "a"}).rows] == [1]
    assert prov.replay("sums").same


@pytest.mark.parametrize("capture", ["sets", "pointers", "intervals", "keys"])
def test_a_table_that_a_subquery_reads_is_looked_at_before_it_is_read_again(
    spark: SparkSession, tmp_path: Path, capture: Any
) -> None:
    def write_limit(most: int) -> None:
        frame = spark.createDataFrame([(most,)], "most int")
        frame.coalesce(1).write.mode("overwrite").parquet(str(tmp_path / "limit"))

    def counted() -> clew.TracedFrame:
        spark.read.parquet(str(tmp_path / "limit")).createOrReplaceTempView("most_of_all")
        readings = spark.read.parquet(str(tmp_path / "in"))
        few = readings.filter("kwh <= (SELECT max(most) FROM most_of_all)")
        traced = clew.trace(few, "readings", id=["rid"])
        return traced.groupBy("meter").agg(F.count("*").alias("n"))

    write_limit(15)
    day = [reading(1, "12:00:00", 10), reading(2, "12:00:00", 20)]
    write_batches(tmp_path / "in", READINGS, [day])
    writer = counted().write.provenance(str(tmp_path / "prov"), capture=capture)
    writer.parquet(str(tmp_path / "sums"))
    write_limit(25)
    prov = clew.open(tmp_path / "prov", pipelines={"sums": counted()})

    if capture in ("intervals", "keys"):
        with pytest.raises(SourceChangedError, match="`readings` holds other rows"):
            prov.backward("sums", {"meter": "a"})
    else:
        why = prov.backward("sums", {"meter": "a"})
        assert ([row["rid"] for row in why.rows], why.complete) == ([1], True)
    with pytest.raises(SourceChangedError, match="`readings` holds other rows|was not noted"):
        prov.replay("sums")


@pytest.mark.parametrize("capture", ["intervals", "keys"])
def test_files_that_came_later_are_not_left_out_of_a_frame_that_puts_rows_together(
    spark: SparkSession, tmp_path: Path, capture: Any
) -> None:
    def add_limit(most: int) -> None:
        frame = spark.createDataFrame([(most,)], "most int")
        frame.coalesce(1).write.mode("append").parquet(str(tmp_path / "limits"))

    def counted() -> clew.TracedFrame:
        most = spark.read.parquet(str(tmp_path / "limits")).agg(F.max("most").alias("most"))
        few = spark.read.parquet(str(tmp_path / "in")).join(most, F.col("kwh") <= F.col("most"))
        traced = clew.trace(few, "readings", id=["rid"])
        return traced.groupBy("meter").agg(F.count("*").alias("n"))

    add_limit(15)
    day = [reading(1, "12:00:00", 10), reading(2, "12:00:00", 20)]
    write_batches(tmp_path / "in", READINGS, [day])
    writer = counted().write.provenance(str(tmp_path / "prov"), capture=capture)
    writer.parquet(str(tmp_path / "sums"))
    add_limit(25)
    prov = clew.open(tmp_path / "prov", pipelines={"sums": counted()})

    with pytest.raises(SourceChangedError, match="came to `readings` after batch 0"):
        prov.backward("sums", {"meter": "a"})


@pytest.mark.parametrize("capture", ["sets", "pointers", "intervals", "keys"])
def test_a_batch_source_that_was_rewritten_is_not_replayed(
    spark: SparkSession, tmp_path: Path, capture: Any
) -> None:
    write_batches(tmp_path / "in", READINGS, [[reading(1, "12:00:00", 10)]])
    frame = totals(spark, tmp_path)
    writer = frame.write.provenance(str(tmp_path / "prov"), capture=capture)
    writer.parquet(str(tmp_path / "sums"))
    write_batches(tmp_path / "other", READINGS, [[reading(2, "12:00:00", 20)]])
    shutil.copy(tmp_path / "other" / "00000.parquet", tmp_path / "in" / "00000.parquet")
    prov = clew.open(tmp_path / "prov")

    with pytest.raises(SourceChangedError, match=r"00000.parquet was rewritten"):
        prov.replay("sums")
    if capture in ("intervals", "keys"):
        with pytest.raises(SourceChangedError, match=r"00000.parquet was rewritten"):
            prov.backward("sums", {"meter": "a"})
    else:
        assert [row["rid"] for row in prov.backward("sums", {"meter": "a"}).rows] == [1]


def test_rows_in_memory_are_compared_when_another_frame_stands_for_them(
    spark: SparkSession, tmp_path: Path
) -> None:
    def frame(price: int) -> clew.TracedFrame:
        rates = spark.createDataFrame([("a", price)], "meter string, price int")
        return clew.trace(rates, "rates", id=["meter"]).groupBy("meter").agg(F.max("price"))

    writer = frame(1).write.provenance(str(tmp_path / "prov"), capture="intervals")
    writer.parquet(str(tmp_path / "best"))
    other = clew.open(tmp_path / "prov", pipelines={"best": frame(2)})
    same = clew.open(tmp_path / "prov", pipelines={"best": frame(1)})

    with pytest.raises(SourceChangedError, match="`rates` holds other rows"):
        other.backward("best", {"meter": "a"})
    assert [row["price"] for row in same.backward("best", {"meter": "a"}).rows] == [1]


@pytest.mark.parametrize("price", [1, 2])
def test_rows_in_memory_are_compared_for_a_batch_that_was_cut_off_before_its_edges(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, price: int
) -> None:
    def frame(price: int) -> clew.TracedFrame:
        rates = spark.createDataFrame([("a", price)], "meter string, price int")
        return clew.trace(rates, "rates", id=["meter"]).groupBy("meter").agg(F.count("*"))

    def die(reached: str, _: int) -> None:
        if reached == "unfolding begun":
            raise KeyboardInterrupt

    writer = frame(1).write.provenance(str(tmp_path / "prov"), capture="pointers")
    listen(die)
    try:
        with pytest.raises(KeyboardInterrupt):
            writer.parquet(str(tmp_path / "best"))
    finally:
        unlisten(die)
    monkeypatch.setattr(known, "_known", {})  # as another process would ask
    prov = clew.open(tmp_path / "prov", pipelines={"best": frame(price)})

    why = prov.backward("best", {"meter": "a"})

    if price == 1:
        assert ([row["price"] for row in why.rows], why.complete) == ([1], True)
    else:
        assert (len(why.rows), why.complete) == (0, False)
        assert "`rates` holds other rows" in why.gaps[0].reason


@pytest.mark.parametrize("kind", ["timestamp", "timestamp_ntz"])
def test_rows_in_memory_are_told_apart_by_a_microsecond(spark: SparkSession, kind: str) -> None:
    one, other = (
        rows_digest(spark.sql(f"SELECT {kind} '2026-01-01 12:00:00.00000{last}' AS at"))
        for last in (1, 2)
    )
    assert one != other
