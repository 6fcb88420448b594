"""A row has the same id on every read, and the strongest identity is chosen."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pyarrow as pa
import pytest
from pyspark.sql import functions as F

import clew
from clew.capture.sets import SETS
from clew.exceptions import IdentityError, SourceError
from clew.plan.node import interpret
from clew.sources.identity import choose_identity
from clew.testing import all_traces, keyed, read_batches, run_stream, write_batches
from frames import READINGS, READINGS_DDL, at, batch_traces

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import DataFrame, SparkSession

KAFKA = (
    "key binary, value binary, topic string, partition int, offset long, timestamp timestamp, "
    "timestampType int"
)


def ids(df: DataFrame, store: Path | None = None, **options: object) -> dict[int, tuple[int, int]]:
    """Map each row's `rid` to its id."""
    traced = clew.trace(df, "rows", **options)  # type: ignore[arg-type]
    rows = interpret(keyed(traced, store), SETS).df
    return {r["rid"]: (r["_clew_a"], r["_clew_b"]) for r in rows.collect()}


def write_readings(folder: Path, files: int = 3, rows: int = 4) -> None:
    batches = [
        [{"rid": 10 * f + i, "ts": at("12:00:00"), "meter": f"m{i}", "kwh": i} for i in range(rows)]
        for f in range(files)
    ]
    write_batches(folder, READINGS, batches)


def test_parquet_rows_are_known_by_file_and_position(spark: SparkSession, tmp_path: Path) -> None:
    write_readings(tmp_path / "in")
    df = spark.read.parquet(str(tmp_path / "in"))

    assert choose_identity(df, None).kind == "parquet"
    found = ids(df)
    assert [found[rid][1] for rid in (0, 1, 2, 3, 10, 11)] == [0, 1, 2, 3, 0, 1]
    assert len({found[rid][0] for rid in (0, 10, 20)}) == 3


def test_ids_do_not_depend_on_parallelism_or_on_how_the_row_is_read(
    spark: SparkSession, tmp_path: Path
) -> None:
    write_readings(tmp_path / "in")
    reader = spark.read.schema(READINGS_DDL)
    one = ids(reader.parquet(str(tmp_path / "in")))
    again = ids(spark.read.parquet(f"file://{tmp_path}/in").filter("rid >= 0").repartition(5))
    spark.conf.set("spark.sql.files.maxPartitionBytes", "1000")
    small = ids(reader.parquet(str(tmp_path / "in" / "00000.parquet")))
    spark.conf.unset("spark.sql.files.maxPartitionBytes")

    assert one == again
    assert small == {rid: one[rid] for rid in small}
    assert len(small) == 4


def test_a_stream_gives_the_ids_that_a_batch_read_gives(
    spark: SparkSession, tmp_path: Path
) -> None:
    write_readings(tmp_path / "in")
    readings = clew.trace(read_batches(spark, tmp_path / "in", READINGS_DDL), "readings")

    run_stream(readings, tmp_path / "prov", "all", checkpoint=tmp_path / "chk")

    rows = clew.open(str(tmp_path / "prov")).rows("readings")
    expected = ids(spark.read.parquet(str(tmp_path / "in")), tmp_path / "prov")
    assert {r["rid"]: (r.id.a, r.id.b) for r in rows} == expected


def test_kafka_columns_are_taken_where_the_user_says_so(spark: SparkSession) -> None:
    df = spark.createDataFrame(
        [(b"k", b"v", "t", 0, 5, at("12:00:00"), 0), (b"k", b"v", "t", 1, 5, at("12:00:00"), 0)],
        KAFKA,
    )

    assert str(choose_identity(df, "kafka")) == "kafka: topic-partition, offset"
    assert choose_identity(df, None).kind == "content", "the columns alone do not make it Kafka"
    rows = interpret(keyed(clew.trace(df, "t", id="kafka")), SETS).df.collect()
    assert [row["_clew_b"] for row in rows] == [5, 5]
    assert rows[0]["_clew_a"] != rows[1]["_clew_a"]
    assert [row["_clew_from_t"][0]["segment"] for row in rows] == ["t-0", "t-1"]


def test_json_files_are_known_by_file_and_content(spark: SparkSession, tmp_path: Path) -> None:
    (tmp_path / "a.json").write_text('{"rid": 1}\n{"rid": 2}\n')
    df = spark.read.schema("rid long").json(str(tmp_path))

    identity = choose_identity(df, None)

    assert (identity.kind, identity.unique) == ("file", False)
    assert len(set(ids(df).values())) == 2


def test_content_is_the_last_resort_and_nulls_stay_apart(spark: SparkSession) -> None:
    rows = [(1, None, "x"), (2, "x", None), (3, "x", None)]
    df = spark.createDataFrame(rows, "rid long, a string, b string")

    assert choose_identity(df, None).kind == "content"
    assert len(set(ids(df).values())) == 3
    no_rid = clew.trace(df.drop("rid"), "rows")
    annotated = interpret(keyed(no_rid), SETS).df.collect()
    assert len({(r["_clew_a"], r["_clew_b"]) for r in annotated}) == 2


def test_key_columns_are_used_when_named(spark: SparkSession, tmp_path: Path) -> None:
    write_readings(tmp_path / "in", files=1)
    df = spark.read.parquet(str(tmp_path / "in"))

    assert ids(df, id=["rid"]) == ids(df.withColumn("kwh", F.lit(0).cast("long")), id=["rid"])
    assert str(choose_identity(df, ["rid", "meter"])) == "key: rid, meter"


def test_nested_and_odd_types_have_ids(spark: SparkSession) -> None:
    df = spark.sql(
        "select 1L as rid, map('a', 1) as m, array(struct(1 as x)) as s, "
        "interval 2 days as i, cast('nan' as double) as d, null as v "
        "union all select 2L, map('a', 2), array(struct(1 as x)), interval 2 days, "
        "cast('nan' as double), null"
    )

    assert len(set(ids(df).values())) == 2


def test_an_upstream_clew_id_is_the_identity(spark: SparkSession, tmp_path: Path) -> None:
    text = clew.RowId("up", -5, 7).text
    df = spark.createDataFrame([(1, text)], "rid long, clew_id string")

    assert choose_identity(df, None).kind == "clew"
    assert ids(df) == {1: (-5, 7)}


def test_a_wanted_identity_that_is_not_there_is_refused(spark: SparkSession) -> None:
    df = spark.createDataFrame([(1,)], "rid long")

    with pytest.raises(IdentityError, match="needs.*lost when columns are selected"):
        clew.trace(df, "rows", id="parquet")
    with pytest.raises(IdentityError, match=r'id=\["rid"\]'):
        clew.trace(df, "rows", id="rid")
    with pytest.raises(IdentityError, match="no column `nope`"):
        clew.trace(df, "rows", id=["nope"])
    with pytest.raises(SourceError, match="`event_time` names `ts`"):
        clew.trace(df, "rows", event_time="ts")
    with pytest.raises(SourceError, match="needs a name"):
        clew.trace(df, "")
    with pytest.raises(SourceError, match="traced already"):
        clew.trace(clew.trace(df, "rows"), "again")  # type: ignore[arg-type]


def test_nested_content_and_odd_names_come_back_as_they_were(
    spark: SparkSession, tmp_path: Path
) -> None:
    schema = pa.schema(
        [
            ("rid", pa.int64()),
            ("temp. `C`", pa.float64()),
            ("nested", pa.struct([("x", pa.list_(pa.int32()))])),
            ("tags", pa.map_(pa.string(), pa.int32())),
        ]
    )
    row = {"rid": 1, "temp. `C`": 1.5, "nested": {"x": [1, 2]}, "tags": [("a", 1)]}
    write_batches(tmp_path / "in", schema, [[row]])
    frame = clew.trace(spark.read.parquet(str(tmp_path / "in")), "odd")

    out = frame.union(frame).groupBy("rid").agg(F.count("*").alias("n.n"), F.first("tags"))
    [trace] = batch_traces(out, tmp_path)

    assert trace.values["n.n"] == 2
    [source] = trace.sources["odd"]
    assert source == {
        "rid": 1,
        "temp. `C`": 1.5,
        "nested": {"x": [1, 2]},
        "tags": {"a": 1},
    }


def test_content_can_be_left_out(spark: SparkSession, tmp_path: Path) -> None:
    df = spark.createDataFrame([(1,), (2,)], "rid long")
    out = clew.trace(df, "rows", id=["rid"], content=False).groupBy().count()

    out.write.provenance(str(tmp_path / "prov"), name="n").format("noop").mode("append").save()

    [row] = clew.open(str(tmp_path / "prov")).rows("n")
    trace = clew.open(str(tmp_path / "prov")).backward("n", row)
    assert {r.segment for r in trace.rows} == {"1", "2"}
    assert all_traces(tmp_path / "prov", "n")[0].sources["rows"][0] == {"_": None}
