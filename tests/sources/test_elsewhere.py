"""Files that are not on this machine are compared, too, before they are read again."""

from __future__ import annotations

import shutil
from typing import TYPE_CHECKING, Any

import pytest
from pyspark.sql import functions as F

import clew
from clew.exceptions import SourceChangedError
from clew.sources.state import FileState, states_elsewhere
from clew.testing import run_stream, write_batches
from frames import READINGS, READINGS_DDL, at

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from pyspark.sql import DataFrame, SparkSession

BATCHES = [
    [{"rid": rid, "ts": at(f"12:00:0{rid}"), "meter": "a", "kwh": 10 * rid} for rid in range(1, 4)],
    [{"rid": 9, "ts": at("13:00:00"), "meter": "z", "kwh": 1}],
]


@pytest.fixture
def far(spark: SparkSession, tmp_path: Path) -> Iterator[str]:
    """Name a folder by another file system than the local one."""
    name = f"far{abs(hash(tmp_path))}"
    link = f"fs.viewfs.mounttable.{name}.link./data"
    spark.conf.set(link, f"file://{tmp_path}/data")
    yield f"viewfs://{name}/data"
    spark.conf.unset(link)


def rewrite(folder: Path) -> None:
    write_batches(folder / "other", READINGS, [[{**BATCHES[0][0], "rid": 4, "kwh": -555}]])
    shutil.copy(folder / "other" / "00000.parquet", folder / "data" / "in" / "00000.parquet")


def delete(folder: Path) -> None:
    (folder / "data" / "in" / "00000.parquet").unlink()


def read(spark: SparkSession, far: str, *, stream: bool) -> DataFrame:
    if stream:
        reader = spark.readStream.schema(READINGS_DDL).option("maxFilesPerTrigger", 1)
        return reader.parquet(f"{far}/in")
    return spark.read.schema(READINGS_DDL).parquet(f"{far}/in")


def summed(readings: DataFrame) -> clew.TracedFrame:
    traced = clew.trace(readings, "readings", event_time="ts").withWatermark("ts", "0 seconds")
    grouped = traced.groupBy(F.window("ts", "10 seconds"), "meter")
    return grouped.agg(F.sum("kwh").alias("total"), F.count("*").alias("n"))


@pytest.mark.parametrize("change", [rewrite, delete])
@pytest.mark.parametrize("capture", ["pointers", "intervals"])
def test_a_stream_of_far_files_that_changed_gives_no_answer(
    spark: SparkSession, tmp_path: Path, far: str, capture: str, change: Any
) -> None:
    write_batches(tmp_path / "data" / "in", READINGS, BATCHES)
    frame = summed(read(spark, far, stream=True))
    later: dict[str, Any] = {"unfold": "later"} if capture == "pointers" else {}
    run_stream(
        frame, tmp_path / "prov", "sums", checkpoint=tmp_path / "chk", capture=capture, **later
    )
    change(tmp_path)
    prov = clew.open(tmp_path / "prov")

    if capture == "intervals":
        with pytest.raises(SourceChangedError, match=r"00000.parquet (was rewritten|is gone)"):
            prov.backward("sums", {"meter": "a"})
        return
    why = prov.backward("sums", {"meter": "a"})

    assert (len(why.rows), why.complete) == (0, False)
    assert "after batch 0 had read it" in why.gaps[0].reason


@pytest.mark.parametrize("change", [rewrite, delete])
def test_a_table_of_far_files_that_changed_gives_no_answer(
    spark: SparkSession, tmp_path: Path, far: str, change: Any
) -> None:
    write_batches(tmp_path / "data" / "in", READINGS, BATCHES)
    frame = summed(read(spark, far, stream=False))
    store = str(tmp_path / "prov")
    frame.write.provenance(store, capture="intervals", name="sums").format("noop").mode(
        "append"
    ).save()
    change(tmp_path)

    with pytest.raises(SourceChangedError, match=r"00000.parquet (was rewritten|is gone)"):
        clew.open(store).backward("sums", {"meter": "a"})


def test_far_files_that_hold_still_are_answered(
    spark: SparkSession, tmp_path: Path, far: str
) -> None:
    write_batches(tmp_path / "data" / "in", READINGS, BATCHES)
    frame = summed(read(spark, far, stream=True))
    run_stream(frame, tmp_path / "prov", "sums", checkpoint=tmp_path / "chk", capture="intervals")
    table = summed(read(spark, far, stream=False))
    writer = table.write.provenance(str(tmp_path / "prov"), capture="intervals", name="again")
    writer.format("noop").mode("append").save()

    for stream in ("sums", "again"):
        why = clew.open(tmp_path / "prov").backward(stream, {"meter": "a"})
        assert sorted(row["rid"] for row in why.rows) == [1, 2, 3]
        assert (why.complete, why.exactness) == (True, "exact")


def test_of_far_files_those_that_are_there_are_looked_at(
    spark: SparkSession, tmp_path: Path, far: str
) -> None:
    names = ["a b.parquet", "c[1].parquet", "d%.parquet"]
    (tmp_path / "data").mkdir()
    for name in names:
        (tmp_path / "data" / name).write_bytes(b"12345")
    spelled = [f"{far}/a%20b.parquet", f"{far}/c%5B1%5D.parquet", f"{far}/d%25.parquet"]

    seen = states_elsewhere(spark, [*spelled, f"{far}/gone.parquet", "file:/etc/hosts"])

    stats = [(tmp_path / "data" / name).stat() for name in names]
    assert seen == {
        path: FileState(5, stat.st_mtime_ns // 1_000_000)
        for path, stat in zip(spelled, stats, strict=True)
    }
