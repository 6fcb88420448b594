"""Alive or expired: of one row, of a stream, of an answer; and erasing what is expired."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from pyspark.sql import functions as F

import clew
from clew.cli import main
from clew.exceptions import QueryError, RowNotFoundError
from clew.testing import run_stream, write_batches
from frames import READINGS, at
from live.graphs import elements, large, readings, run, summed

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

ROWS: list[list[dict[str, Any]]] = [
    [
        {"rid": 1, "ts": at("12:00:05"), "meter": "a", "kwh": 3},
        {"rid": 2, "ts": at("12:00:45"), "meter": "a", "kwh": 1},
    ],
    [{"rid": 3, "ts": at("12:01:35"), "meter": "a", "kwh": 2}],
    [{"rid": 4, "ts": at("12:02:10"), "meter": "a", "kwh": 5}],
]
"""The watermark is ten seconds behind the latest row, so 12:02:00 at the end; windows have 40."""


@pytest.fixture
def prov(spark: SparkSession, tmp_path: Path) -> Any:
    with run(spark, tmp_path, ["summed"], ROWS) as opened:
        yield opened


def test_a_row_is_expired_once_the_watermark_is_a_window_past_it(prov: clew.Provenance) -> None:
    # Windows are [0, 40), [20, 60), ... seconds; the last that closed ends at 12:02:00.
    status = {row["rid"]: prov.status("readings", row) for row in prov.rows("readings")}

    assert status == {1: "expired", 2: "expired", 3: "alive"}
    assert [row["rid"] for row in prov.expired("readings")] == [1, 2]
    assert [row["rid"] for row in prov.alive("readings")] == [3]
    [row] = prov.alive("readings")
    found = prov.expiry("readings", row)
    assert (found.expires, found.watermark) == (at("12:02:15"), at("12:02:00"))
    assert prov.alive("readings", limit=1).total == 1
    assert len(prov.expired("summed")) == len(prov.rows("summed")), "nothing is made of results"


def test_an_answer_says_whether_more_may_follow(prov: clew.Provenance) -> None:
    [row] = prov.rows("readings", "rid = 3")
    trace = prov.forward("readings", row)

    assert trace.status == "alive"
    assert trace.to_dict()["status"] == "alive"
    assert "status: alive, more results may follow" in repr(trace)
    assert prov.forward("readings", {"rid": 1}).status == "expired"
    assert prov.backward("summed", prov.rows("summed")[0]).status is None


def test_a_stateless_query_is_done_with_a_row_it_has_read(
    spark: SparkSession, tmp_path: Path
) -> None:
    with run(spark, tmp_path, ["large"], ROWS) as opened:
        assert [row["rid"] for row in opened.expired("readings")] == [1, 3, 4]

        run(spark, tmp_path, ["summed"]).close()
        assert [row["rid"] for row in opened.expired("readings")] == [1, 2], "a window keeps them"


def test_a_stateless_query_that_has_not_read_a_row_keeps_it_alive(
    spark: SparkSession, tmp_path: Path
) -> None:
    write_batches(tmp_path / "in", READINGS, ROWS[:1])
    run(spark, tmp_path, ["large"]).close()
    write_batches(tmp_path / "in", READINGS, ROWS[1:])
    with run(spark, tmp_path, ["summed"]) as opened:
        # By its windows 3 is alive; 1 and 2 are expired, and `large` has read their file.
        assert [row["rid"] for row in opened.expired("readings")] == [1, 2]

    other = tmp_path / "other"
    write_batches(other / "in", READINGS, ROWS[:1])
    frame = large(readings(spark, other))
    run_stream(frame, other / "prov", "large", checkpoint=other / "large", capture="sets")
    write_batches(other / "in", READINGS, [[{**ROWS[0][0], "rid": 9, "ts": at("12:00:06")}]])
    write_batches(other / "in", READINGS, ROWS[1:])
    frame = summed(readings(spark, other))
    run_stream(frame, other / "prov", "summed", checkpoint=other / "summed", capture="sets")
    with clew.open(other / "prov") as opened:
        alive = {row["rid"] for row in opened.alive("readings")}
        assert 9 in alive, "`large` would still pass it on"


def test_a_row_that_is_alive_is_not_erased(prov: clew.Provenance) -> None:
    with pytest.raises(QueryError, match="is alive") as refused:
        prov.erase("readings", {"rid": 3})
    assert "wait=True" in str(refused.value)
    assert [row["rid"] for row in prov.rows("readings", "rid = 3")] == [3]
    with pytest.raises(QueryError, match="is alive"):
        prov.erase("readings", {"rid": 3}, wait=True, timeout=0.05, every=0.01)


def test_a_window_that_was_computed_before_the_grouping_keeps_its_rows(
    spark: SparkSession, tmp_path: Path
) -> None:
    write_batches(tmp_path / "in", READINGS, ROWS[:2])

    def go() -> None:
        windows = readings(spark, tmp_path).withWatermark("ts", "10 seconds")
        computed = windows.select(F.window("ts", "1 minute", "30 seconds").alias("w"), "kwh")
        sums = computed.withColumnRenamed("w", "span").groupBy("span").agg(F.sum("kwh"))
        run_stream(sums, tmp_path / "prov", "sums", checkpoint=tmp_path / "sums", capture="sets")

    go()
    with clew.open(tmp_path / "prov") as opened:
        # The watermark is 12:01:25; 2 is at 12:00:45 and in the window from 12:00:30 on.
        assert len(opened.forward("readings", {"rid": 2}).rows) == 1
        assert {row["rid"] for row in opened.alive("readings")} == {2}
        assert opened.expiry("readings", {"rid": 2}).expires == at("12:01:45")
        with pytest.raises(QueryError, match="keeps rows for 1 min"):
            opened.erase("readings", {"rid": 2})
        before = {row["rid"] for row in opened.expired("readings")}
        graph = opened.graph()
        graph.advance()
        labels = [e for e in elements(opened) if e["element"] == "label"]
        assert [e["side"] for e in labels if e["stream"] == "readings"] == ["source"]

        write_batches(tmp_path / "in", READINGS, ROWS[2:])
        known = {rid: len(opened.forward("readings", {"rid": rid}).rows) for rid in before}
        go()
        assert len(opened.forward("readings", {"rid": 2}).rows) == 2, "it did go into another"
        graph.advance()
        assert not graph.verify().violations
        assert before == {1}
        assert known == {1: len(opened.forward("readings", {"rid": 1}).rows)}


def test_a_row_is_not_labelled_while_another_query_reads_the_results(
    spark: SparkSession, tmp_path: Path
) -> None:
    with run(spark, tmp_path, ["large"], ROWS) as opened:
        prov, out = tmp_path / "prov", tmp_path / "out"
        first = summed(readings(spark, tmp_path)).select(
            F.window_time("window").alias("ts"), "meter", "kwh", "n"
        )
        writer = first.writeStream.provenance(str(prov), capture="sets", keep_id=True)
        writer = writer.queryName("sums").option("checkpointLocation", str(tmp_path / "sums"))
        writer.format("parquet").trigger(availableNow=True).start(str(out)).awaitTermination()
        schema = spark.read.parquet(str(out)).schema
        sums = clew.trace(
            spark.readStream.schema(schema).parquet(str(out)), "sums", event_time="ts"
        )
        hours = sums.withWatermark("ts", "1 second").groupBy(F.window("ts", "1 hour"))
        run_stream(
            hours.agg(F.sum("kwh")), prov, "hours", checkpoint=tmp_path / "hours", capture="sets"
        )

        assert not opened.expired("readings")
        assert "it reads what `sums` makes of it" in opened.expiry("readings", {"rid": 1}).why
        opened.graph().advance()
        found = [e for e in elements(opened) if e["stream"] == "readings"]
        assert [e for e in found if e["element"] == "vertex"]
        assert not [e for e in found if e["element"] == "label"]


def test_erasing_a_row_leaves_its_skeleton(prov: clew.Provenance) -> None:
    prov.graph().advance()
    [row] = prov.rows("readings", "rid = 1")
    before = prov.forward("readings", row)

    erased = prov.erase("readings", row)

    assert erased.results.rows.ids() == before.rows.ids()
    assert erased.copies == 3, "in two batches, and in the graph"
    assert not prov.rows("readings", "rid = 1")
    again = prov.forward("readings", row.id)
    assert again.rows.ids() == before.rows.ids()
    assert again.status == "expired"
    why = prov.backward("summed", before.rows[0])
    assert [(each.id, each.known, dict(each)) for each in why.rows] == [(row.id, False, {})]
    [vertex] = [
        e
        for e in elements(prov)
        if e["element"] == "vertex" and e["b"] == row.id.b and e["a"] == row.id.a
    ]
    assert (vertex["row"], vertex["time"]) == (None, at("12:00:05"))
    for path in Path(prov.path).rglob("*.parquet"):
        assert b"12:00:05" not in path.read_bytes()
    assert prov.erase("readings", row.id).copies == 0, "nothing is left to erase"


def test_a_row_that_waits_to_expire_is_erased_then(
    spark: SparkSession, tmp_path: Path, prov: clew.Provenance
) -> None:
    import threading

    write_batches(tmp_path / "in", READINGS, [[{**ROWS[0][0], "rid": 5, "ts": at("13:00:00")}]])
    later = threading.Timer(0.2, lambda: run(spark, tmp_path, ["summed"]).close())
    later.start()
    erased = prov.erase("readings", {"rid": 3}, wait=True, timeout=60, every=0.1)
    later.join()

    assert [row["kwh"] for row in erased.results.rows] == [2, 2]


def test_the_command_line(prov: clew.Provenance, capsys: pytest.CaptureFixture[str]) -> None:
    def said(*arguments: str) -> str:
        code = main(list(arguments))
        out, err = capsys.readouterr()
        assert code == (1 if err else 0)
        return out + err

    path = prov.path
    assert said("status", path, "readings", "rid=1") == (
        "expired, nothing more will follow\n"
        "expired once the watermark is past 2026-01-01T12:00:45Z; it is 2026-01-01T12:02:00Z\n"
        "`summed` keeps rows for 40 s of event time\n"
    )
    assert said("rows", path, "readings", "--alive").splitlines()[1].split()[2] == "3"
    assert said("live", path).startswith("live (operator), at 2026-01-01T12:02:00Z: ")
    assert said("verify-live", path).rstrip().endswith("0 violations")
    assert "is alive" in said("erase", path, "readings", "rid=3")
    assert said("erase", path, "readings", "rid=1").startswith("3 copies of the row's content")


def test_a_row_that_nobody_knows(prov: clew.Provenance) -> None:
    assert prov.status("readings", "0" * 32) == "alive", "its time is not known"
    with pytest.raises(RowNotFoundError):
        prov.status("readings", {"rid": 99})
