"""Where different rows turn out to have one id, answers say so and are not called exact."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest
from pyspark.sql import functions as F

import clew
from clew.sources.identity import choose_identity
from clew.testing import run_stream

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import DataFrame, SparkSession

EVENTS = "topic string, partition int, offset long, kind string, value int"
LANDED = [("t", 0, 1, "a", 10), ("t", 0, 1, "b", 20), ("t", 0, 2, "a", 30)]
CAPTURES = ["sets", "pointers", "intervals", "keys"]


def land(folder: Path) -> None:
    """Write records as JSON, as a connector does that delivers at least once."""
    folder.mkdir()
    names = [each.split(" ")[0] for each in EVENTS.split(", ")]
    lines = [json.dumps(dict(zip(names, row, strict=True))) for row in LANDED]
    (folder / "events.json").write_text("\n".join(lines) + "\n")


def landed(spark: SparkSession, folder: Path) -> DataFrame:
    return spark.read.schema(EVENTS).json(str(folder / "in"))


def written(events: DataFrame, folder: Path, capture: Any, **options: Any) -> clew.Provenance:
    frame = clew.trace(events, "events", **options).groupBy("kind").agg(F.sum("value").alias("v"))
    writer = frame.write.provenance(str(folder / "prov"), capture=capture)
    writer.parquet(str(folder / "sums"))
    return clew.open(folder / "prov")


@pytest.mark.parametrize("capture", CAPTURES)
def test_landed_events_are_not_taken_for_kafka(
    spark: SparkSession, tmp_path: Path, capture: str
) -> None:
    land(tmp_path / "in")
    events = landed(spark, tmp_path)

    prov = written(events, tmp_path, capture)

    assert choose_identity(events, None).kind == "file"
    for kind, values in {"a": [10, 30], "b": [20]}.items():
        why = prov.backward("sums", {"kind": kind})
        assert sorted(row["value"] for row in why.rows) == values
        assert (why.exactness, why.complete) == ("exact", True)


@pytest.mark.parametrize("capture", CAPTURES)
@pytest.mark.parametrize("identity", ["kafka", ["offset"]])
def test_an_id_that_is_not_unique_is_named_and_no_answer_is_called_exact(
    spark: SparkSession, tmp_path: Path, capture: str, identity: Any
) -> None:
    land(tmp_path / "in")

    prov = written(landed(spark, tmp_path), tmp_path, capture, id=identity)
    if capture in ("intervals", "keys"):
        # Only rows that are asked for are looked up: alone, each is the one it is.
        prov.backward("sums", {"kind": "a"})

    why = prov.backward("sums", {"kind": "b"})
    if [row["value"] for row in why.rows] == [20] and capture in ("intervals", "keys"):
        return
    assert (why.exactness, why.complete) == ("coarse", False)
    assert "1 id of `events` (by" in why.gaps[0].reason


@pytest.mark.parametrize("capture", CAPTURES)
def test_a_unique_key_stays_exact(spark: SparkSession, tmp_path: Path, capture: str) -> None:
    land(tmp_path / "in")

    prov = written(landed(spark, tmp_path), tmp_path, capture, id=["offset", "kind"])

    why = prov.backward("sums", {"kind": "b"})
    assert ([row["value"] for row in why.rows], why.exactness) == ([20], "exact")
    assert why.complete


@pytest.mark.parametrize(("content", "label"), [(False, "superset"), (True, "exact")])
def test_rows_whose_contents_are_not_kept_are_exact_only_if_their_source_numbers_them(
    spark: SparkSession, tmp_path: Path, content: bool, label: str
) -> None:
    land(tmp_path / "in")
    events = landed(spark, tmp_path)
    events.write.parquet(str(tmp_path / "numbered"))
    numbered = spark.read.parquet(str(tmp_path / "numbered"))

    by_key = written(events, tmp_path / "a", "sets", id=["offset", "kind"], content=content)
    by_place = written(numbered, tmp_path / "b", "sets", content=content)

    assert by_key.backward("sums", {"kind": "b"}).exactness == label
    assert by_place.backward("sums", {"kind": "b"}).exactness == "exact"


def test_a_stream_with_a_key_that_repeats_says_so(spark: SparkSession, tmp_path: Path) -> None:
    land(tmp_path / "in")
    stream = spark.readStream.schema(EVENTS).json(str(tmp_path / "in"))
    frame = clew.trace(stream, "events", id=["offset"]).filter("value > 0")
    run_stream(frame, tmp_path / "prov", "kept", checkpoint=tmp_path / "chk")

    prov = clew.open(tmp_path / "prov")

    [mixed] = [r for r in prov.rows("kept") if r["kind"] == "b"]
    why = prov.backward("kept", mixed.id)
    assert (why.exactness, why.complete) == ("coarse", False)


def test_a_place_in_a_file_is_no_identity_behind_a_step_that_multiplies_rows(
    spark: SparkSession, tmp_path: Path
) -> None:
    spark.createDataFrame([("a", [1, 2])], "k string, vs array<int>").write.parquet(
        str(tmp_path / "in")
    )
    read = spark.read.parquet(str(tmp_path / "in"))

    assert choose_identity(read.filter("k = 'a'").select("k"), None).kind == "parquet"
    assert choose_identity(read.select("k", F.explode("vs").alias("v")), None).kind != "parquet"
    assert choose_identity(read.crossJoin(spark.range(2)), None).kind != "parquet"
