"""What a store keeps of steps stays what Spark prints; only what is shown of it is written anew."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest
from pyspark.sql import functions as F

import clew
from clew.again.describe import shape_of
from clew.store.commit import read_stream
from frames import READINGS_DDL, at

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import SparkSession


def large(spark: SparkSession) -> clew.TracedFrame:
    rows = [(1, at("12:00:01"), "a", 3), (2, at("12:00:02"), "b", 9)]
    readings = clew.trace(spark.createDataFrame(rows, READINGS_DDL), "readings", id=["rid"])
    kept = readings.filter((readings["kwh"] > 4) & F.col("meter").isNotNull())
    return kept.groupBy(F.window("ts", "1 minute")).agg(F.sum(F.col("kwh") * 2).alias("total"))


def written(spark: SparkSession, folder: Path, **provenance: Any) -> clew.Provenance:
    writer = large(spark).write.provenance(str(folder), name="out", **provenance)
    writer.format("noop").mode("append").save()
    return clew.open(folder)


def test_answers_and_flows_show_steps_as_they_were_written(
    spark: SparkSession, tmp_path: Path
) -> None:
    with written(spark, tmp_path) as prov:
        trace = prov.backward("out", {"total": 18})
        [row] = trace.rows

        assert row["rid"] == 2
        steps = [
            "kwh > 4 and meter is not null",
            "sum(kwh * 2) AS total by window(ts, '1 minute')",
        ]
        assert trace.path == (f"readings -> filter ({steps[0]}) -> aggregate ({steps[1]}) -> out",)
        assert list(trace.steps[0].labels.values()) == steps
        assert [each.detail for each in prov.flow().nodes if each.kind == "step"] == steps
        drawn = {each.detail for each in trace.drawing().nodes if each.kind == "step"}
        assert drawn == set(steps)


def test_the_store_keeps_what_digests_are_made_of(spark: SparkSession, tmp_path: Path) -> None:
    written(spark, tmp_path).close()
    said = read_stream(tmp_path, "out")
    assert said is not None
    [_, step, _] = said["graph"]["nodes"]
    [copy] = step["names"]

    assert step["label"] == f"and(>({copy}, 4), isNotNull(meter))"
    assert step["names"] == {copy: "kwh"}
    assert said["shape"] == shape_of(large(spark).node)


def test_a_shape_does_not_depend_on_the_names_of_copies(spark: SparkSession) -> None:
    # As it was before the names were kept: stores of then are still known.
    one, other = large(spark).node, large(spark).node

    assert shape_of(one) == shape_of(other)


@pytest.mark.parametrize("name", ["kwh", "meter"])
def test_masked_literals_stay_masked(spark: SparkSession, tmp_path: Path, name: str) -> None:
    with written(spark, tmp_path, mask_literals=True) as prov:
        assert prov.backward("out", {"total": 18}).path == (
            "readings -> filter (?) -> aggregate (?) -> out",
        )
    graph = (read_stream(tmp_path, "out") or {})["graph"]
    assert [each["label"] for each in graph["nodes"]] == ["readings", "?", "?"]
    steps = json.dumps([{**each, "columns": []} for each in graph["nodes"]])
    assert name not in steps
