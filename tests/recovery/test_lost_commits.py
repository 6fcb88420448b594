"""Batches at the end of a run whose commits are lost are named, by the checkpoint or the store."""

from __future__ import annotations

import shutil
from typing import TYPE_CHECKING, Any

import pytest
from pyspark.sql import functions as F

import clew
from clew.testing import read_batches, run_stream, write_batches
from frames import READINGS, READINGS_DDL, at

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import SparkSession


def run(spark: SparkSession, folder: Path, capture: str) -> None:
    rows = [[{"rid": n, "ts": at("12:00:00"), "meter": "a", "kwh": n}] for n in range(4)]
    write_batches(folder / "in", READINGS, rows)
    frame = clew.trace(read_batches(spark, folder / "in", READINGS_DDL), "readings")
    run_stream(
        frame.filter("kwh >= 0"),
        folder / "prov",
        "kept",
        checkpoint=folder / "chk",
        capture=capture,
    )


def lose_last_two(folder: Path) -> None:
    for path in sorted((folder / "prov" / "batches" / "kept").glob("*.json"))[-2:]:
        path.unlink()


@pytest.mark.parametrize("capture", ["sets", "pointers"])
def test_batches_at_the_end_without_a_commit_are_a_gap(
    spark: SparkSession, tmp_path: Path, capture: str
) -> None:
    run(spark, tmp_path, capture)
    prov = clew.open(tmp_path / "prov")
    [whole] = [each for each in prov.streams() if each.name == "kept"]
    assert whole.gaps == ()
    [first] = prov.rows("kept", where="kwh = 0")  # of batch 0; times are equal, ids are secret
    lose_last_two(tmp_path)

    [gap] = prov.forward("readings", prov.backward("kept", first.id).rows[0].id).gaps

    assert (gap.first, gap.last) == (2, 3)
    assert "its commit is not in the store" in gap.reason


def test_batches_at_the_beginning_without_a_commit_are_a_gap(
    spark: SparkSession, tmp_path: Path
) -> None:
    run(spark, tmp_path, "sets")
    for path in sorted((tmp_path / "prov" / "batches" / "kept").glob("*.json"))[:2]:
        path.unlink()
    prov = clew.open(tmp_path / "prov")
    [last] = prov.rows("kept", where="kwh = 3")

    trace = prov.forward("readings", prov.backward("kept", last.id).rows[0].id)

    assert not trace.complete
    assert [(gap.first, gap.last) for gap in trace.gaps] == [(0, 1)]


def test_batches_behind_one_whose_commit_is_lost_are_unfolded(
    spark: SparkSession, tmp_path: Path
) -> None:
    rows = [[{"rid": n, "ts": at(f"12:0{n}:00"), "meter": "a", "kwh": n}] for n in range(5)]
    # It is late for all that is open.
    rows[3] += [{"rid": 9, "ts": at("12:00:30"), "meter": "a", "kwh": 9}]
    write_batches(tmp_path / "in", READINGS, rows)
    frame = clew.trace(
        read_batches(spark, tmp_path / "in", READINGS_DDL), "readings", event_time="ts"
    )
    sums = frame.withWatermark("ts", "0 seconds").groupBy(F.window("ts", "1 minute")).count()
    run_stream(sums, tmp_path / "prov", "sums", checkpoint=tmp_path / "chk", unfold="later")
    [second] = (tmp_path / "prov" / "batches" / "sums").glob("*-0000000001.json")
    second.unlink()
    prov = clew.open(tmp_path / "prov")

    prov.unfold("sums")

    traces = [prov.backward("sums", row.id) for row in prov.rows("sums")]
    assert sorted([row["rid"] for row in trace.rows] for trace in traces) == [[0], [1], [2], [3]]
    assert all(trace.complete for trace in traces)


def test_a_store_without_its_checkpoint_knows_what_was_begun(
    spark: SparkSession, tmp_path: Path
) -> None:
    run(spark, tmp_path, "sets")
    lose_last_two(tmp_path)
    shutil.rmtree(tmp_path / "chk")

    [stream] = [each for each in clew.open(tmp_path / "prov").streams() if each.name == "kept"]

    [gap] = stream.gaps
    assert (gap.first, gap.last) == (2, 3)
    assert "was begun and is not committed" in gap.reason


def test_a_run_that_was_overwritten_is_not_missed(spark: SparkSession, tmp_path: Path) -> None:
    run(spark, tmp_path, "sets")
    frame = clew.trace(read_batches(spark, tmp_path / "in", READINGS_DDL), "readings")
    checkpoint = tmp_path / "second"
    run_stream(frame, tmp_path / "prov", "kept", checkpoint=checkpoint, restart="overwrite")

    [stream] = [each for each in clew.open(tmp_path / "prov").streams() if each.name == "kept"]

    assert (stream.batches, stream.gaps) == (4, ())


def test_another_query_at_the_place_of_a_checkpoint_says_nothing(
    spark: SparkSession, tmp_path: Path
) -> None:
    run(spark, tmp_path, "sets")
    shutil.rmtree(tmp_path / "chk")
    more: dict[str, Any] = {"capture": "sets"}
    frame = clew.trace(read_batches(spark, tmp_path / "in", READINGS_DDL), "readings")
    run_stream(frame, tmp_path / "other", "kept", checkpoint=tmp_path / "chk", **more)

    [stream] = [each for each in clew.open(tmp_path / "prov").streams() if each.name == "kept"]

    assert stream.gaps == ()
