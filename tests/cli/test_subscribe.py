"""`clew subscribe`: a pipeline's property query, run from a shell."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

from clew.cli import main
from clew.pipelines import load_pipeline
from clew.testing import run_stream, write_batches
from frames import READINGS, at

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import SparkSession

MODULE = """
import clew
from clew.testing import read_batches
from pyspark.sql import functions as F
from frames import READINGS_DDL


def by_minute(spark):
    source = read_batches(spark, "{folder}/in", READINGS_DDL)
    traced = clew.trace(source, "readings", event_time="ts")
    traced = traced.property("highest", F.col("kwh"), merge="max").withWatermark("ts", "0 seconds")
    return traced.groupBy(F.window("ts", "1 minute"), "meter").agg(F.count("*").alias("n"))


def table(spark):
    source = spark.read.parquet("{folder}/in")
    traced = clew.trace(source, "readings").property("rids", F.col("rid"), merge="set")
    return {{"of meters": traced.groupBy("meter").count(), "all": traced.groupBy().count()}}
"""
ROWS = [("12:00:01", "a", 1), ("12:00:02", "a", 5), ("12:00:03", "b", 2), ("12:01:01", "b", 9)]


@pytest.fixture
def rooms(spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with a module and the rows that its pipelines read."""
    rows = [{"rid": i, "ts": at(t), "meter": m, "kwh": kwh} for i, (t, m, kwh) in enumerate(ROWS)]
    closing = {"rid": 9, "ts": at("13:00:00"), "meter": "a", "kwh": 0}
    write_batches(tmp_path / "in", READINGS, [rows, [closing]])
    name = f"rooms_{tmp_path.name}"
    (tmp_path / f"{name}.py").write_text(MODULE.format(folder=tmp_path))
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("clew.pipelines.make_session", lambda: spark)
    return tmp_path


def asked(rooms: Path, pipeline: str, *given: str) -> int:
    return main(["subscribe", "--pipeline", f"rooms_{rooms.name}:{pipeline}", *given])


def lines(text: str) -> list[dict[str, Any]]:
    return [json.loads(line) for line in text.splitlines()]


def test_results_of_a_stream_are_printed_once(
    rooms: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    once = ["--property", "highest", "--where", "highest > 2", "--once", "--json"]
    once += ["--checkpoint", str(rooms / "chk")]
    assert asked(rooms, "by_minute", *once) == 0
    out, err = capsys.readouterr()
    found = {(r["window"]["start"], r["meter"]): (r["n"], r["highest"]) for r in lines(out)}
    assert found == {
        ("2026-01-01 12:00:00.000000Z", "a"): (2, 5),
        ("2026-01-01 12:01:00.000000Z", "b"): (1, 9),
    }
    progress = lines(err)
    assert progress[-1] == {"results": 2}
    assert progress[-2]["watermark"] == "2026-01-01T13:00:00.000Z"

    assert asked(rooms, "by_minute", *once) == 0
    assert capsys.readouterr().out == "", "the checkpoint says that all is delivered"


def test_results_go_to_a_table(
    spark: SparkSession, rooms: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    to = ["--property", "rids", "--stream", "of meters", "--to-table", "heard"]
    assert asked(rooms, "table", *to, "--where", "array_contains(rids, 1)") == 0
    assert capsys.readouterr().out == ""
    found = [(r["meter"], r["count"], r["rids"]) for r in spark.table("heard").collect()]
    spark.sql("DROP TABLE heard")
    assert found == [("a", 3, [0, 1, 9])]


def test_a_store_says_what_the_pipeline_is(
    spark: SparkSession, rooms: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    frame = load_pipeline(f"rooms_{rooms.name}:by_minute", "out")["out"]
    run_stream(frame, rooms / "prov", "out", checkpoint=rooms / "chk", capture="keys")
    capsys.readouterr()
    wanted = ["--property", "highest", "--where", "highest > 8", "--once"]
    assert main(["subscribe", "--store", "prov", "--stream", "out", *wanted]) == 0
    [found] = lines(capsys.readouterr().out)
    assert (found["meter"], found["highest"]) == ("b", 9)


def test_what_is_missing_is_said(rooms: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert asked(rooms, "table", "--property", "rids") == 1
    assert "has `of meters`, `all`" in capsys.readouterr().err
    assert asked(rooms, "table", "--property", "x", "--stream", "all") == 1
    assert "no property `x`" in capsys.readouterr().err
    assert asked(rooms, "table", "--property", "x", "--topic", "t") == 1
    assert "`--to-kafka` and `--topic` go together" in capsys.readouterr().err
