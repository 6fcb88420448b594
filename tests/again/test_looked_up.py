"""What pointers lead to besides windows: named frames, partitions, groups of a function.

Each query is run with `sets`, which carries everything, and with `pointers`; the stores must hold
the same edges and the same rows, also those of the frames inside the query.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow.parquet as pq
import pytest
from pyspark.sql import Window
from pyspark.sql import functions as F

import clew
from clew.again.choose import choose
from clew.exceptions import CaptureRefusedError
from clew.store.layout import EDGES, unquote_name
from clew.testing import (
    committed_files,
    make_alike,
    read_batches,
    read_edges,
    run_stream,
    without_zone,
    write_batches,
)
from frames import READINGS, READINGS_DDL, scattered

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    import pandas as pd
    from pyspark.sql import SparkSession

    Frame = clew.TracedFrame

SEED = 11


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> str:
    place = tmp_path_factory.mktemp("looked-up") / "in"
    write_batches(place, READINGS, scattered(SEED, 4, rows=8, late=60, meters="abc"))
    return str(place)


def edges(store: Path, writer: str) -> set[tuple[Any, ...]]:
    """Read every edge of a writer's store; none is twice in one file.

    Several batches may store the edges of one row of a named frame, each with the results on it.
    """
    found: set[tuple[Any, ...]] = set()
    for file in (Path(f) for f in committed_files(store, writer)):
        if file.parents[2].name == EDGES:
            held = [tuple(edge.values()) for edge in read_edges(file).to_pylist()]
            assert len(set(held)) == len(held), f"an edge is twice in {file}"
            found.update(held)
    return found


def rows(store: Path, writer: str) -> dict[tuple[str, int, int], Any]:
    """Read the content of every row in a writer's store, but for the results' own."""
    found = {}
    for file in committed_files(store, writer):
        stream = unquote_name(Path(file).parent.name)
        if Path(file).parents[2].name != EDGES and stream != writer:
            table = pq.read_table(file, partitioning=None, coerce_int96_timestamp_unit="us")
            for row in table.to_pylist():
                kept = {name: row[name] for name in ("segment", "time", "row")}
                found[stream, row["a"], row["b"]] = without_zone(kept)
    return found


def per_meter(frame: Frame, size: str = "20 seconds") -> Frame:
    grouped = frame.groupBy(F.window("ts", size, "10 seconds"), "meter")
    return grouped.agg(F.sum("kwh").alias("kwh"), F.count("*").alias("n"))


def named_before(frame: Frame) -> Frame:
    used = frame.filter("kwh > 0").withColumn("wh", F.expr("kwh * 1000")).named("used")
    return per_meter(used.withWatermark("ts", "10 seconds"))


def named_after(frame: Frame) -> Frame:
    return per_meter(frame.withWatermark("ts", "10 seconds")).filter("n > 1").named("sums")


def named_between(frame: Frame) -> Frame:
    sums = named_after(frame.named("all"))
    over = F.window(F.window_time("window"), "40 seconds")
    return sums.groupBy(over, "n").agg(F.count("*").alias("windows"))


STREAMS: list[Callable[[Frame], Frame]] = [named_before, named_after, named_between]


@pytest.mark.parametrize("query", STREAMS)
def test_named_frames_of_a_stream(
    spark: SparkSession, tmp_path: Path, folder: str, query: Callable[[Frame], Frame]
) -> None:
    print(f"seed {SEED}")
    source = clew.trace(read_batches(spark, folder, READINGS_DDL), "readings", event_time="ts")
    frame = query(source)
    assert choose(frame.node, "auto").capture == "pointers"
    make_alike(tmp_path / "sets", tmp_path / "pointers")
    for capture in ("sets", "pointers"):
        checkpoint = tmp_path / f"chk-{capture}"
        run_stream(frame, tmp_path / capture, "out", checkpoint=checkpoint, capture=capture)

    expected = edges(tmp_path / "sets", "out")
    assert len({(sink, source) for sink, _, _, source, _, _ in expected}) >= 3
    assert edges(tmp_path / "pointers", "out") == expected
    assert rows(tmp_path / "pointers", "out") == rows(tmp_path / "sets", "out")


def mapped(frame: Frame) -> Frame:
    def doubled(batches: Iterator[pd.DataFrame]) -> Iterator[pd.DataFrame]:
        for pdf in batches:
            yield pdf.assign(kwh=pdf.kwh * 2)

    schema = "rid long, ts timestamp, meter string, kwh long, clew_id string"
    doubles = frame.mapInPandas(doubled, schema, carries="id").named("doubled")
    return per_meter(doubles.join(frame.select("rid", F.col("kwh").alias("before")), "rid"))


def grouped_function(frame: Frame) -> Frame:
    def spread(key: tuple[Any, ...], pdf: pd.DataFrame) -> pd.DataFrame:
        import pandas as pd

        ends = [int(pdf.kwh.min()), int(pdf.kwh.max())]
        return pd.DataFrame({"meter": [key[0]] * 2, "end": ["low", "high"], "kwh": ends})

    made = (
        frame.named("all")
        .groupBy("meter", F.minute("ts"))
        .applyInPandas(spread, "meter string, end string, kwh long", carries="group")
    )
    return made.named("ends").groupBy("end").agg(F.sum("kwh").alias("kwh"))


def window_function(frame: Frame) -> Frame:
    ranked = F.row_number().over(Window.partitionBy("meter").orderBy("ts", "rid"))
    kept = frame.named("all").withColumn("rank", ranked, partition=["meter"])
    return kept.filter("rank <= 2")


def window_function_of_sums(frame: Frame) -> Frame:
    share = F.sum("kwh").over(Window.partitionBy("window"))
    return per_meter(frame).withColumn("all", share, partition=["window"])


def all_duplicates(frame: Frame) -> Frame:
    one = frame.dropDuplicates(["meter", "kwh"], contributes="all")
    return one.named("kinds").groupBy("meter").agg(F.count("*").alias("kinds"))


BATCHES: list[Callable[[Frame], Frame]] = [
    mapped,
    window_function,
    window_function_of_sums,
    all_duplicates,
]


@pytest.mark.parametrize("query", BATCHES)
def test_groups_and_partitions_of_a_batch(
    spark: SparkSession, tmp_path: Path, folder: str, query: Callable[[Frame], Frame]
) -> None:
    table = spark.read.schema(READINGS_DDL).parquet(folder)
    frame = query(clew.trace(table, "readings", event_time="ts"))
    assert choose(frame.node, "auto").capture == "pointers"
    make_alike(tmp_path / "sets", tmp_path / "pointers")
    for capture in ("sets", "pointers"):
        out = frame.write.provenance(str(tmp_path / capture), name="out", capture=capture)
        out.parquet(str(tmp_path / f"out-{capture}"))

    expected = edges(tmp_path / "sets", "out")
    assert len(expected) > 33, "each of 33 readings is behind some result, and some are shared"
    assert edges(tmp_path / "pointers", "out") == expected
    assert rows(tmp_path / "pointers", "out") == rows(tmp_path / "sets", "out")


def test_rows_that_a_function_of_groups_decides_about_are_carried(
    spark: SparkSession, folder: str
) -> None:
    table = spark.read.schema(READINGS_DDL).parquet(folder)
    frame = grouped_function(clew.trace(table, "readings"))

    assert choose(frame.node, "auto").capture == "sets"
    with pytest.raises(CaptureRefusedError, match="function that gets a whole group"):
        choose(frame.node, "pointers")


def test_rows_chosen_by_a_window_function_are_carried(spark: SparkSession, folder: str) -> None:
    table = clew.trace(spark.read.schema(READINGS_DDL).parquet(folder), "readings")
    kept = window_function(table)

    with pytest.raises(CaptureRefusedError, match="equal in its order another way round"):
        choose(kept.groupBy("meter").agg(F.sum("kwh").alias("kwh")).node, "pointers")
    with pytest.raises(CaptureRefusedError, match="equal in its order another way round"):
        choose(kept.named("first").groupBy("meter").count().node, "pointers")
