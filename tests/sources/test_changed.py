"""A source that has changed since a query read it is a named gap or a refusal, never an answer."""

from __future__ import annotations

import os
import shutil
from typing import TYPE_CHECKING, Any

import pytest
from pyspark.sql import functions as F

import clew
from clew.again.tables import covered
from clew.exceptions import SourceChangedError
from clew.testing import all_traces, read_batches, run_stream, write_batches
from frames import READINGS, READINGS_DDL, at

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import SparkSession


def reading(rid: int, second: int, kwh: int) -> dict[str, Any]:
    return {"rid": rid, "ts": at(f"12:00:{second:02d}"), "meter": "a", "kwh": kwh}


BATCHES = [
    [reading(1, 0, 10), reading(2, 1, 20), reading(3, 2, 30)],
    [{"rid": 9, "ts": at("13:00:00"), "meter": "z", "kwh": 1}],
]


def run(spark: SparkSession, folder: Path, capture: str) -> clew.TracedFrame:
    write_batches(folder / "in", READINGS, BATCHES)
    stream = read_batches(spark, folder / "in", READINGS_DDL)
    frame = (
        clew.trace(stream, "readings", event_time="ts")
        .withWatermark("ts", "0 seconds")
        .groupBy(F.window("ts", "10 seconds"), "meter")
        .agg(F.sum("kwh").alias("total"), F.count("*").alias("n"))
    )
    later: dict[str, Any] = {"unfold": "later"} if capture == "pointers" else {}
    run_stream(frame, folder / "prov", "sums", checkpoint=folder / "chk", capture=capture, **later)
    return frame


def rewrite(folder: Path) -> None:
    other = folder / "other"
    write_batches(other, READINGS, [[reading(4, 0, -555)]])
    shutil.copy(other / "00000.parquet", folder / "in" / "00000.parquet")


def restore_times(folder: Path) -> None:
    path = folder / "in" / "00000.parquet"
    stat = path.stat()
    rewrite(folder)
    os.utime(path, ns=(stat.st_atime_ns, stat.st_mtime_ns))


def delete(folder: Path) -> None:
    (folder / "in" / "00000.parquet").unlink()


@pytest.mark.parametrize("change", [rewrite, restore_times, delete])
@pytest.mark.parametrize("capture", ["pointers", "intervals", "keys"])
def test_a_file_changed_before_it_is_read_again_gives_no_answer(
    spark: SparkSession, tmp_path: Path, capture: str, change: Any
) -> None:
    run(spark, tmp_path, capture)
    change(tmp_path)
    prov = clew.open(tmp_path / "prov")

    if capture != "pointers":
        with pytest.raises(SourceChangedError, match=r"00000.parquet (was rewritten|is gone)"):
            prov.backward("sums", {"meter": "a"})
        return
    why = prov.backward("sums", {"meter": "a"})

    assert not why.complete
    assert len(why.rows) == 0
    assert "00000.parquet" in why.gaps[0].reason
    assert "after batch 0 had read it" in why.gaps[0].reason


@pytest.mark.parametrize("capture", ["pointers", "intervals", "keys"])
def test_results_whose_files_are_intact_are_answered_beside_one_whose_file_is_gone(
    spark: SparkSession, tmp_path: Path, capture: str
) -> None:
    hours = [
        [{"rid": n, "ts": at(f"{10 + n}:00:00"), "meter": f"m{n}", "kwh": n}] for n in range(6)
    ]
    write_batches(tmp_path / "in", READINGS, hours)
    stream = clew.trace(
        read_batches(spark, tmp_path / "in", READINGS_DDL), "readings", event_time="ts"
    )
    sums = (
        stream.withWatermark("ts", "0 seconds")
        .groupBy(F.window("ts", "10 seconds"), "meter")
        .agg(F.sum("kwh").alias("total"))
    )
    later: dict[str, Any] = {"unfold": "later"} if capture == "pointers" else {}
    place = tmp_path / "prov"
    run_stream(sums, place, "sums", checkpoint=tmp_path / "chk", capture=capture, **later)
    (tmp_path / "in" / "00001.parquet").unlink()
    prov = clew.open(place)
    if capture == "pointers":
        prov.unfold("sums")

    traces = {n: prov.backward("sums", {"meter": f"m{n}"}) for n in (0, 2, 3, 4)}

    assert {n: [row["rid"] for row in trace.rows] for n, trace in traces.items()} == {
        n: [n] for n in traces
    }
    assert all(trace.complete for trace in traces.values())
    if capture != "pointers":
        with pytest.raises(SourceChangedError, match=r"00001.parquet is gone"):
            prov.backward("sums", {"meter": "m1"})
        return
    gone = prov.backward("sums", {"meter": "m1"})
    assert "00001.parquet is gone" in gone.gaps[0].reason
    assert len(gone.rows) == 0


def test_sets_read_no_source_again_and_still_answer(spark: SparkSession, tmp_path: Path) -> None:
    run(spark, tmp_path, "sets")
    rewrite(tmp_path)

    [trace] = all_traces(tmp_path / "prov", "sums")

    assert sorted(row["rid"] for row in trace.sources["readings"]) == [1, 2, 3]


def test_what_a_file_covers_is_read_anew_when_it_was_rewritten(tmp_path: Path) -> None:
    write_batches(tmp_path / "in", READINGS, [[reading(1, 0, 10)]])
    path = f"file:{tmp_path}/in/00000.parquet"
    before = covered(path, "ts")
    write_batches(tmp_path / "other", READINGS, [[reading(1, 30, 10)]])
    shutil.copy(tmp_path / "other" / "00000.parquet", tmp_path / "in" / "00000.parquet")

    after = covered(path, "ts")

    assert before is not None
    assert after == tuple(moment + 30_000_000 for moment in before)


@pytest.mark.parametrize("capture", ["sets", "pointers"])
def test_a_checkpoint_restored_from_a_backup_is_refused_and_not_skipped(
    spark: SparkSession, tmp_path: Path, capture: str
) -> None:
    write_batches(tmp_path / "in", READINGS, BATCHES[:1])

    def go() -> None:
        stream = read_batches(spark, tmp_path / "in", READINGS_DDL)
        frame = clew.trace(stream, "readings", event_time="ts").filter("kwh > 0")
        place = tmp_path / "prov"
        run_stream(frame, place, "kept", checkpoint=tmp_path / "chk", capture=capture)

    go()
    shutil.copytree(tmp_path / "chk", tmp_path / "backup")
    write_batches(tmp_path / "more", READINGS, [[reading(5, 5, 50)], [reading(6, 6, 60)]])
    shutil.copy(tmp_path / "more" / "00000.parquet", tmp_path / "in" / "b.parquet")
    go()
    shutil.rmtree(tmp_path / "chk")
    shutil.copytree(tmp_path / "backup", tmp_path / "chk")
    (tmp_path / "in" / "b.parquet").unlink()
    shutil.copy(tmp_path / "more" / "00001.parquet", tmp_path / "in" / "c.parquet")

    with pytest.raises(Exception, match="restored from a backup"):
        go()


def test_an_overwrite_that_is_cut_off_leaves_a_gap_and_no_old_provenance(
    spark: SparkSession, tmp_path: Path
) -> None:
    spark.createDataFrame([("a", 1)], "k string, v long").write.parquet(str(tmp_path / "in"))
    frame = clew.trace(spark.read.parquet(str(tmp_path / "in")), "rows").groupBy("k").count()
    store = str(tmp_path / "prov")
    frame.write.provenance(store, name="out").mode("overwrite").parquet(str(tmp_path / "out"))
    assert len(clew.open(store).rows("out")) == 1

    with pytest.raises(Exception, match="nosuchformat"):
        frame.write.provenance(store, name="out").format("nosuchformat").mode("overwrite").save()

    assert len(clew.open(store).rows("out")) == 0
    [stream] = [each for each in clew.open(store).streams() if each.name == "out"]
    assert "overwritten" in stream.gaps[0].reason
