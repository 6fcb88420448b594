"""What is masked stands nowhere in a store: not in a row, not in a key, not in the live graph."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pyarrow.parquet as pq
import pytest
from pyspark.sql import functions as F

import clew
from clew.exceptions import ReplayError, WriterError
from clew.testing import read_batches, run_stream, write_batches
from frames import READINGS, READINGS_DDL, at
from store.build import StoreBuilder, row

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import SparkSession

SECRET = "4711-secret"
OTHER = "0815-secret"
BATCHES = [
    [
        {"rid": 1, "ts": at("12:00:01"), "meter": SECRET, "kwh": 3},
        {"rid": 2, "ts": at("12:00:04"), "meter": SECRET, "kwh": 4},
        {"rid": 3, "ts": at("12:00:05"), "meter": OTHER, "kwh": 5},
    ],
    [{"rid": 9, "ts": at("13:00:00"), "meter": "z", "kwh": 1}],
]


def _texts(root: Path) -> str:
    """Return all that a store holds, Parquet decoded."""
    found = []
    for path in sorted(root.rglob("*")):
        if path.suffix == ".parquet":
            table = pq.read_table(path, partitioning=None)
            found.append(f"{path} {table.schema} {table.to_pydict()} {pq.read_metadata(path)}")
        if path.is_file():
            found.append(path.read_bytes().decode("latin-1"))
    return "\n".join(found)


def _stream(spark: SparkSession, folder: Path, **provenance: Any) -> Path:
    write_batches(folder / "in", READINGS, BATCHES)
    source = read_batches(spark, folder / "in", READINGS_DDL)
    frame = (
        clew.trace(source, "readings", event_time="ts")
        .withWatermark("ts", "0 seconds")
        .filter("kwh > 0")
        .named("used")
        .groupBy(F.window("ts", "10 seconds"), "meter")
        .agg(F.sum("kwh").alias("total"))
    )
    store = folder / "prov"
    run_stream(frame, store, "out", checkpoint=folder / "chk", **provenance)
    return store


def _sources(trace: clew.Trace) -> set[int]:
    return {each["rid"] for each in trace.rows.of("readings")}


@pytest.mark.parametrize("capture", ["sets", "pointers", "intervals", "keys"])
def test_a_masked_column_stands_nowhere_and_traces_are_the_same(
    spark: SparkSession, tmp_path: Path, capture: str
) -> None:
    store = _stream(spark, tmp_path, capture=capture, mask=["meter"])

    with clew.open(store) as prov:
        rows = {each["total"]: each for each in prov.rows("out")}
        answers = {n: _sources(prov.backward("out", each)) for n, each in rows.items()}
        prov.graph().advance()
        again = prov.replay("out")

        assert answers == {7: {1, 2}, 5: {3}}
        assert list(rows[7]) == ["window", "total"]
        assert (again.unchanged, list(again.differences)) == (2, [])
        with pytest.raises(ReplayError, match="has no `meter`"):
            prov.replay(prov.backward("out", rows[7]))
        assert "does not keep `meter`" in str(prov.influence("out", rows[7], replay=False).why)
    texts = _texts(store)
    assert "secret" in texts  # the store's own
    assert SECRET not in texts
    assert OTHER not in texts
    assert json.loads((store / "streams" / "out.json").read_text())["mask"]["columns"] == {
        "meter": "drop"
    }


def test_recorded_streams_are_masked_too(spark: SparkSession, tmp_path: Path) -> None:
    store = _stream(spark, tmp_path, mask={"METER": "redact"}, assertions="all", content="all")

    assert {each.stream for each in clew.open(store).recordings()} >= {"readings", "used", "out"}
    texts = _texts(store)
    assert SECRET not in texts
    assert OTHER not in texts
    assert "***" in texts


def test_a_hash_tells_what_is_equal_and_no_more(spark: SparkSession, tmp_path: Path) -> None:
    hashes = []
    for name in ("one", "two"):
        (tmp_path / name).mkdir()
        store = _stream(spark, tmp_path / name, capture="sets", mask={"meter": "hash"})
        prov = clew.open(store)
        found = {each["rid"]: each["meter"] for each in prov.rows("readings")}

        assert found[1] == found[2] != found[3]
        assert all(len(text) == 64 for text in found.values())
        assert SECRET not in _texts(store)
        [result] = [each for each in prov.rows("out") if each["total"] == 7]
        assert result["meter"] == found[1]
        with pytest.raises(ReplayError, match="does not keep `meter` of `readings`"):
            prov.replay(prov.backward("out", result))
        hashes.append(found[1])
    assert hashes[0] != hashes[1]


def test_a_batch_is_masked_and_its_ids_are_the_same(spark: SparkSession, tmp_path: Path) -> None:
    rows = spark.createDataFrame([(1, SECRET), (2, OTHER)], "k int, name string")
    rows.write.parquet(str(tmp_path / "in"))
    store = tmp_path / "prov"
    for name, mask in (("plain", None), ("masked", ["name"])):
        frame = clew.trace(spark.read.parquet(str(tmp_path / "in")), f"{name} rows")
        writer = frame.filter("k > 0").write.provenance(str(store), name=name, mask=mask)
        writer.parquet(str(tmp_path / name))
    with clew.open(store) as prov:
        ids = [{r["k"]: r.id.text for r in prov.rows(name)} for name in ("plain", "masked")]

        assert ids[0] == ids[1]
        assert [list(each) for each in prov.rows("masked")] == [["k"], ["k"]]
    kept = spark.read.parquet(str(tmp_path / "masked"))
    assert {each.name for each in kept.collect()} == {SECRET, OTHER}  # the sink is the user's own
    masked = "\n".join(_texts(p) for p in store.rglob("masked*") if p.is_dir())
    assert SECRET not in masked


def test_literals_are_left_out_and_the_pipeline_is_not_rebuilt(
    spark: SparkSession, tmp_path: Path
) -> None:
    spark.createDataFrame([(1, SECRET), (2, OTHER)], "k int, name string").write.parquet(
        str(tmp_path / "in")
    )
    store = tmp_path / "prov"
    frame = clew.trace(spark.read.parquet(str(tmp_path / "in")), "people")
    frame = frame.filter(F.col("name") == SECRET).withColumn("key", F.lit("pass-4712"))
    frame = frame.filter("key != 'pass-4713'")
    writer = frame.write.provenance(
        str(store), name="out", mask=["name", "key"], mask_literals=True
    )
    writer.parquet(str(tmp_path / "out"))

    texts = _texts(store)
    assert not [text for text in (SECRET, OTHER, "pass-471") if text in texts]
    with clew.open(store) as prov:
        trace = prov.backward("out", {"k": 1})
        assert len(trace.rows) == 1
        assert "?" in trace.path[0]
        with pytest.raises(ReplayError, match="its literals are masked"):
            prov._rebuilt("out")


@pytest.mark.parametrize(
    ("mask", "why"),
    [
        (["nothing"], "no frame of the query has it"),
        ({"meter": "blur"}, '"drop", "hash", "redact"; got \'blur\''),
        (["ts"], "says when a row happened"),
        ({"window": "hash"}, "`window` is `struct"),
    ],
)
def test_a_mask_that_cannot_be_held_is_refused(
    spark: SparkSession, tmp_path: Path, mask: Any, why: str
) -> None:
    with pytest.raises(WriterError, match=why):
        _stream(spark, tmp_path, capture="sets", mask=mask)

    assert not (tmp_path / "prov").exists()


def test_what_tells_rows_of_one_id_apart_is_hashed_or_kept(
    spark: SparkSession, tmp_path: Path
) -> None:
    rows = spark.createDataFrame([(1, SECRET), (1, OTHER)], "k int, name string")
    rows.write.parquet(str(tmp_path / "in"))
    frame = clew.trace(spark.read.parquet(str(tmp_path / "in")), "rows", id=["k"])
    store = str(tmp_path / "prov")

    with pytest.raises(WriterError, match="may share an id"):
        frame.write.provenance(store, name="out", mask=["name"]).parquet(str(tmp_path / "out"))
    writer = frame.filter("k > 0").groupBy("k").count().write
    writer.provenance(store, name="out", mask={"name": "hash"}).parquet(str(tmp_path / "out"))
    with clew.open(store) as prov:
        trace = prov.backward("out", {"k": 1})

    assert (trace.exactness, trace.complete) == ("coarse", False)


@pytest.mark.parametrize("way", ["drop", "redact", "hash"])
@pytest.mark.parametrize("capture", ["sets", "pointers", "intervals", "keys"])
def test_a_key_that_is_masked_is_not_the_name_of_its_rows(
    spark: SparkSession, tmp_path: Path, capture: Any, way: str
) -> None:
    rows = spark.createDataFrame([(1, SECRET), (2, OTHER)], "k int, name string")
    rows.write.parquet(str(tmp_path / "in"))
    frame = clew.trace(spark.read.parquet(str(tmp_path / "in")), "people", id=["k", "name"])
    writer = frame.groupBy("k").count().write
    store = tmp_path / "prov"
    writer.provenance(str(store), name="out", capture=capture, mask={"name": way}).parquet(
        str(tmp_path / "out")
    )

    with clew.open(store) as prov:
        trace = prov.backward("out", {"k": 1})

    assert ([row["k"] for row in trace.rows], trace.exactness) == ([1], "exact")
    assert not [text for text in (SECRET, OTHER) if text in _texts(store)]


def test_results_that_are_masked_are_not_merged_by_content(tmp_path: Path) -> None:
    store = StoreBuilder(tmp_path)
    store.source("r")
    store.sink("out", ["r"], mask={"columns": {"name": "drop"}, "literals": False})
    rows = {"out": [row(1, 1, time=at("12:00:00"), n=1)], "r": [row(7, 0, n=1)]}
    store.batch("out", 0, edges=[("out", 1, 1, "r", 7, 0)], rows=rows)

    with clew.open(tmp_path) as prov, pytest.raises(WriterError, match="are masked"):
        prov.graph(results="merged").advance()
