"""Unfolded and replayed answers: late rows, parts of the results, sources that are gone."""

from __future__ import annotations

import json
import os
import shutil
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from pyspark.sql import functions as F

import clew
from clew.exceptions import ReplayError
from clew.store.layout import read_json
from clew.testing import (
    Traced,
    all_traces,
    read_batches,
    replayed_traces,
    run_stream,
    stream_pointed_rows,
    stream_traces,
    unfolded_traces,
    write_batches,
)
from frames import READINGS, READINGS_DDL, at, scattered

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def nested(frame: clew.TracedFrame, delay: str) -> clew.TracedFrame:
    first = (
        frame.withWatermark("ts", delay)
        .groupBy(F.window("ts", "20 seconds", "10 seconds"), "meter")
        .agg(F.sum("kwh").alias("kwh"), F.count("*").alias("n"))
        .filter("n % 2 = 1 or kwh > 2")
    )
    return first.groupBy(F.window(F.window_time("window"), "40 seconds"), "n").agg(
        F.count("*").alias("windows")
    )


def comparable(traces: list[Traced]) -> list[tuple[str, list[int]]]:
    return sorted(
        (str(t.values), sorted(row["rid"] for row in t.sources.get("readings", []))) for t in traces
    )


@pytest.mark.parametrize(
    ("delay", "files"), [("0 seconds", 1), ("10 seconds", 2), ("40 seconds", 3)]
)
def test_late_rows_are_in_no_answer(
    spark: SparkSession, tmp_path: Path, delay: str, files: int
) -> None:
    seed = files * 7
    print(f"seed {seed}")
    write_batches(tmp_path / "in", READINGS, scattered(seed, 14))
    reader = spark.readStream.schema(READINGS_DDL).option("maxFilesPerTrigger", files)
    source = clew.trace(reader.parquet(str(tmp_path / "in")), "readings", event_time="ts")
    frame = nested(source, delay)
    carried: list[Traced] = []
    pointed: list[Any] = []
    queries = [
        stream_traces(frame, tmp_path / "sets", carried),
        stream_pointed_rows(frame, tmp_path / "pointers", pointed),
    ]
    for query in queries:
        query.awaitTermination()
    import pyarrow as pa

    rows = pa.concat_tables(pointed)
    expected = comparable(carried)

    assert comparable(unfolded_traces(frame, rows, tmp_path / "pointers")) == expected
    assert comparable(replayed_traces(frame, rows, tmp_path / "pointers")) == expected
    everything = {row["rid"] for batch in scattered(seed, 14) for row in batch}
    traced = {rid for _, rids in expected for rid in rids}
    assert everything - traced - {999}, "no row was late or left out, so nothing was shown"


def test_a_row_that_came_after_its_session_was_closed_makes_another(
    spark: SparkSession, tmp_path: Path
) -> None:
    def row(rid: int, seconds: int, meter: str) -> dict[str, Any]:
        return {"rid": rid, "ts": at(f"12:00:{seconds:02d}"), "meter": meter, "kwh": 1}

    closing = {"rid": 9, "ts": at("13:00:00"), "meter": "z", "kwh": 1}
    # The session of `a` ends at 15 and is closed in the third batch, when the watermark is 16.
    # Row 5 is not late by itself, since it ends at 18; it would have joined that session before.
    batches = [
        [row(1, 0, "a"), row(2, 5, "a")],
        [row(3, 16, "b")],
        [row(4, 17, "b")],
        [row(5, 8, "a"), row(6, 2, "a")],
        [closing],
    ]
    write_batches(tmp_path / "in", READINGS, batches)
    stream = read_batches(spark, tmp_path / "in", READINGS_DDL)
    frame = (
        clew.trace(stream, "readings", event_time="ts")
        .withWatermark("ts", "0 seconds")
        .groupBy(F.session_window("ts", "10 seconds"), "meter")
        .agg(F.count("*").alias("n"))
    )
    run_stream(frame, tmp_path / "prov", "s", checkpoint=tmp_path / "chk", capture="pointers")

    found = [
        (t.values["meter"], t.values["n"], sorted(r["rid"] for r in t.sources["readings"]))
        for t in all_traces(tmp_path / "prov", "s")
    ]
    assert sorted(found) == [("a", 1, [5]), ("a", 2, [1, 2]), ("b", 2, [3, 4])]


@pytest.fixture(scope="module")
def ran(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Any]:
    """A query with intervals that has ended."""
    folder = tmp_path_factory.mktemp("intervals")
    write_batches(folder / "in", READINGS, scattered(3, 6))
    stream = read_batches(spark, folder / "in", READINGS_DDL)
    frame = nested(clew.trace(stream, "readings", event_time="ts"), "10 seconds")
    run_stream(frame, folder / "prov", "sums", checkpoint=folder / "chk", capture="intervals")
    run_stream(frame, folder / "sets", "sums", checkpoint=folder / "chk2", capture="sets")
    return folder, frame


def test_only_what_is_asked_for_is_computed(ran: tuple[Path, Any]) -> None:
    folder, _ = ran
    prov = clew.open(folder / "prov")
    total = len(prov.rows("sums", limit=None))
    seen: list[tuple[int, int]] = []

    assert prov.unfold("sums", first=2, progress=lambda done, of: seen.append((done, of))) == 2
    assert seen == [(2, 2)]
    assert len(all_edges(folder)) == 2
    assert prov.unfold("sums", first=2) == 2, "the next two, since the first are known"
    assert prov.unfold("sums", sample=0.0) == 0
    assert prov.unfold("sums") == total - 4
    assert prov.unfold("sums") == 0
    found = comparable(all_traces(folder / "prov", "sums"))
    assert found == comparable(all_traces(folder / "sets", "sums"))


def all_edges(folder: Path) -> set[tuple[int, int]]:
    from clew.testing import committed_files, read_edges

    files = [f for f in committed_files(folder / "prov", "sums") if "/edges/" in f]
    return {(e["sink_a"], e["sink_b"]) for f in files for e in read_edges(Path(f)).to_pylist()}


def test_without_any_pipeline_the_error_says_how_to_hand_it_in(
    ran: tuple[Path, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    folder, frame = ran
    monkeypatch.setattr("clew.again.known._known", {})
    rebuilt, bare = folder / "elsewhere", folder / "without"
    for copy in (rebuilt, bare):
        shutil.copytree(folder / "prov", copy)
        shutil.rmtree(copy / "unfolded", ignore_errors=True)
    said = json.loads((bare / "streams" / "sums.json").read_text())
    (bare / "streams" / "sums.json").write_text(json.dumps({**said, "pipeline": None}))
    row = clew.open(bare).rows("sums", limit=1)[0]

    with pytest.raises(ReplayError, match="pipelines="):
        clew.open(bare).backward("sums", row)
    why = clew.open(bare, pipelines={"sums": frame}).backward("sums", row)
    same = clew.open(rebuilt).backward("sums", row)

    assert why.complete
    assert why.rows.total > 0
    assert {r.id for r in same.rows} == {r.id for r in why.rows}


def test_a_query_without_capture_is_recovered_from_its_checkpoint(
    spark: SparkSession, ran: tuple[Path, Any], tmp_path: Path
) -> None:
    folder, frame = ran
    query = (
        frame.writeStream.provenance(str(tmp_path / "unused"), capture="off")
        .format("parquet")
        .option("path", str(tmp_path / "out"))
        .option("checkpointLocation", str(tmp_path / "chk"))
        .trigger(availableNow=True)
        .start()
    )
    query.awaitTermination()
    assert not (tmp_path / "unused").exists()

    frame.recover(str(tmp_path / "prov"), name="sums", checkpoint=str(tmp_path / "chk"))

    assert comparable(all_traces(tmp_path / "prov", "sums")) == comparable(
        all_traces(folder / "sets", "sums")
    )


def test_rows_whose_source_is_gone_stay_pending(spark: SparkSession, tmp_path: Path) -> None:
    write_batches(tmp_path / "in", READINGS, scattered(5, 4))
    source = clew.trace(
        read_batches(spark, tmp_path / "in", READINGS_DDL), "readings", event_time="ts"
    )
    frame = nested(source, "10 seconds")
    run_stream(frame, tmp_path / "prov", "sums", checkpoint=tmp_path / "chk", unfold="later")
    (tmp_path / "in" / "00001.parquet").unlink()
    prov = clew.open(tmp_path / "prov")

    prov.unfold("sums")

    notes = [read_json(p) for p in (tmp_path / "prov" / "unfolded" / "sums").glob("*.json")]
    assert any("00001.parquet is gone" in (note["gap"] or "") for note in notes)
    assert all(note["edges"] == 0 for note in notes if note["gap"])
    assert any("00001.parquet is gone" in gap.reason for gap in prov.streams()[1].gaps)


def test_a_source_may_be_named_by_a_relative_path(spark: SparkSession, tmp_path: Path) -> None:
    write_batches(tmp_path / "in", READINGS, scattered(5, 3))
    # Relative to where the JVM began, which changing the folder now would not move.
    stream = read_batches(spark, os.path.relpath(tmp_path / "in"), READINGS_DDL)
    frame = nested(clew.trace(stream, "readings", event_time="ts"), "10 seconds")

    run_stream(frame, tmp_path / "prov", "out", checkpoint=tmp_path / "chk", capture="pointers")
    run_stream(frame, tmp_path / "sets", "out", checkpoint=tmp_path / "chk2", capture="sets")

    expected = comparable(all_traces(tmp_path / "sets", "out"))
    assert comparable(all_traces(tmp_path / "prov", "out")) == expected
    assert len(expected) > 1
