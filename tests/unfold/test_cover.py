"""How much of a source is read again: enough to have windows whole, and not much more."""

from __future__ import annotations

import datetime as dt
import random
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest
from pyspark.sql import functions as F

import clew
from clew.unfold.cover import Cover, Reach, Span, covers
from clew.unfold.reach import reach
from frames import READINGS_DDL, answers, at, stream_traces

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from pyspark.sql import SparkSession

    Frame = clew.TracedFrame

SECONDS = 1_000_000


def dark(frame: Frame, slide: str = "10 seconds", outer: str = "1 minute") -> Frame:
    """Count the windows of 10 seconds without consumption."""
    inner = frame.withWatermark("ts", "0 seconds").groupBy(F.window("ts", "10 seconds", slide))
    still = inner.agg(F.sum("kwh").alias("kwh")).filter("kwh = 0")
    return still.groupBy(F.window(F.window_time("window"), outer)).agg(F.count("*").alias("n"))


def spans(*pairs: tuple[int, int]) -> pa.Table:
    lows, highs = zip(*pairs, strict=True)
    return pa.table({"_clew_lo_readings": lows, "_clew_hi_readings": highs})


@pytest.mark.parametrize(
    ("how_far", "expected"),
    [
        (Reach(0), [(12, 17), (41, 41)]),
        (Reach(5), [(7, 22), (36, 46)]),
        (Reach(5, frozenset({"readings"})), [(12, 17), (36, 46)]),
        (Reach(5, cell=10), [(10, 19), (40, 49)]),
    ],
)
def test_what_is_read_around_a_span(how_far: Reach, expected: list[tuple[int, int]]) -> None:
    found = covers([spans((12, 17), (41, 41))], how_far)
    assert found == {"readings": Cover(tuple(Span(*each) for each in expected))}


def test_how_much_of_a_file_is_needed() -> None:
    cover = Cover((Span(10, 19), Span(40, 49)))
    assert [cover.within(0, 99), cover.within(15, 44), cover.within(20, 39)] == [20, 10, 0]
    assert Cover().within(3, 5) == 3


@pytest.mark.parametrize(
    ("query", "cell"),
    [
        (dark, 10 * SECONDS),
        (lambda f: dark(f.filter("kwh < 2")), 10 * SECONDS),
        (lambda f: dark(f, slide="5 seconds"), None),
        (lambda f: dark(f.withColumn("ts", F.expr("ts + INTERVAL 3 SECONDS"))), None),
        (lambda f: dark(f).filter("n > 2").select("window"), 10 * SECONDS),
        (lambda f: dark(dark(f).selectExpr("window_time(window) AS ts", "n AS kwh")), None),
        (lambda f: f.groupBy(F.window("ts", "10 seconds")).count(), None),
    ],
)
def test_windows_side_by_side_are_read_whole(
    spark: SparkSession, tmp_path: Path, query: Callable[[Frame], Frame], cell: int | None
) -> None:
    (tmp_path / "in").mkdir()
    stream = spark.readStream.schema(READINGS_DDL).parquet(str(tmp_path / "in"))
    node = query(clew.trace(stream, "readings", event_time="ts")).node
    assert reach(node, whole=False).cell == cell
    assert reach(node, whole=True).cell is None


@pytest.mark.parametrize(
    ("slide", "outer"), [("10 seconds", "1 minute"), ("5 seconds", "1 minute")]
)
@pytest.mark.parametrize("seed", [1, 2])
def test_no_window_that_is_cut_off_passes_for_another(
    spark: SparkSession, tmp_path: Path, slide: str, outer: str, seed: int
) -> None:
    print(f"seed {seed}")
    chosen = random.Random(seed)
    rows: list[dict[str, Any]] = [
        {
            "rid": second,
            "ts": at("12:00:00") + dt.timedelta(seconds=second),
            "meter": "m",
            "kwh": int(chosen.random() < 0.06),
        }
        for second in range(240)
    ]
    cuts = sorted(chosen.sample(range(1, 240), 6))
    files = [rows[i:j] for i, j in zip([0, *cuts], [*cuts, 240], strict=True)]
    end = {**rows[0], "rid": 999, "ts": at("13:00:00"), "kwh": 1}

    step = int(slide.split(maxsplit=1)[0])
    expected: dict[dt.datetime, set[int]] = {}
    for begin in range(step - 10, 240, step):
        inside = [row for row in rows if begin <= row["rid"] < begin + 10]
        if not any(row["kwh"] for row in inside):
            minute = at("12:00:00") + dt.timedelta(minutes=(begin + 9) // 60)
            expected.setdefault(minute, set()).update(row["rid"] for row in inside)

    traces = stream_traces(
        spark,
        tmp_path,
        lambda frame: dark(frame, slide, outer).selectExpr("window.start AS start", "n"),
        *files,
        [end],
        capture="pointers",
    )
    found = answers(traces, "start")
    found = {start.replace(tzinfo=dt.timezone.utc): rids for start, rids in found.items()}
    assert found == expected
