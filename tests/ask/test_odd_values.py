"""Values and names that other tools cannot hold: an answer, or a refusal with what to write."""

from __future__ import annotations

import contextlib
import io
import json
from typing import TYPE_CHECKING

import pytest
from pyspark.sql import functions as F

import clew
from clew.cli.main import main
from clew.exceptions import ColumnError, IdentityError, StoreError
from clew.show.arrow import to_python

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from pyspark.sql import SparkSession

ODD = (
    "SELECT 1 k, map('a', map('b', 1)) m, cast('+10000-01-01' AS date) late, "
    "cast('-0001-03-02' AS date) early, cast('9999-12-31' AS date) last, "
    "array(cast('+10000-01-01' AS timestamp_ntz)) times, "
    "named_struct('a', cast('+10000-01-01' AS date), 'b', map('x', date'0001-01-01')) s"
)


@pytest.mark.parametrize("capture", ["sets", "pointers"])
def test_dates_beyond_python_and_nested_maps_are_answered(
    spark: SparkSession, tmp_path: Path, capture: clew.CaptureName
) -> None:
    spark.sql(ODD).write.parquet(str(tmp_path / "in"))
    source = clew.trace(spark.read.parquet(str(tmp_path / "in")), "odd")
    out = source.groupBy("k", "late").agg(F.count("*").alias("n"))
    store = str(tmp_path / "prov")
    writer = out.write.provenance(store, name="out", capture=capture)
    writer.format("noop").mode("append").save()

    provenance = clew.open(store)
    [row] = provenance.rows("out")
    trace = provenance.backward("out", row)
    [leaf] = trace.sources

    assert dict(row) == {"k": 1, "late": "10000-01-01", "n": 1}
    assert leaf["m"] == {"a": {"b": 1}}
    assert (leaf["late"], leaf["early"], str(leaf["last"])) == (
        "10000-01-01",
        "-0001-03-02",
        "9999-12-31",
    )
    assert len(provenance.forward("odd", leaf).results) == 1
    assert trace.to_pandas()["late"].tolist() == ["10000-01-01"]
    assert provenance.rows("out").to_pandas()["n"].tolist() == [1]
    assert json.loads(json.dumps(trace.to_dict()))
    assert trace._repr_html_()
    for question in (["rows", store, "out"], ["backward", store, "out", row.id.text]):
        printed = io.StringIO()
        with contextlib.redirect_stdout(printed):
            assert not main([*question, "--json"])
        assert json.loads(printed.getvalue())


def test_sources_that_share_a_column_of_other_types_make_one_table(
    spark: SparkSession, tmp_path: Path
) -> None:
    first = clew.trace(spark.sql("SELECT 1 k, date'2020-01-01' v"), "first")
    second = clew.trace(spark.sql("SELECT 1 k, array(2) v"), "second").withColumnRenamed("v", "w")
    writer = first.join(second, "k").write.provenance(str(tmp_path / "p"), name="out")
    writer.format("noop").mode("append").save()

    provenance = clew.open(str(tmp_path / "p"))
    table = provenance.backward("out", provenance.rows("out")[0]).to_pandas()

    assert sorted(table["v"]) == ["2020-01-01", "[2]"]


def test_a_text_that_is_not_utf8_is_named_and_not_called_erased(
    spark: SparkSession, tmp_path: Path
) -> None:
    (tmp_path / "in").mkdir()
    (tmp_path / "in" / "a.txt").write_bytes(b"good\nba\xffd\n")
    source = clew.trace(spark.read.text(str(tmp_path / "in")), "lines")
    writer = source.write.provenance(str(tmp_path / "p"), name="out")
    writer.format("noop").mode("append").save()

    with pytest.raises(StoreError, match="not UTF-8") as caught:
        list(clew.open(str(tmp_path / "p")).rows("out"))
    assert "erased" not in str(caught.value)


LOOKALIKE: dict[str, str] = {
    "case": "SELECT 1 k, named_struct('a', 1, 'A', 2) s",
    "twice": "SELECT 1 k, array(named_struct('a', 1, 'a', 2)) s",
    "deep": "SELECT 1 k, map('x', named_struct('b', named_struct('a', 1, 'A', 2))) s",
}


@pytest.mark.parametrize("case", LOOKALIKE)
def test_fields_that_cannot_be_told_apart_are_refused_at_once(
    spark: SparkSession, tmp_path: Path, case: str
) -> None:
    with pytest.raises(ColumnError, match="two fields called `a`"):
        clew.trace(spark.sql(LOOKALIKE[case]), "rows")

    made = clew.trace(spark.sql("SELECT 1 k"), "rows").withColumn(
        "s", F.expr("named_struct('a', k, 'A', 2)")
    )
    with pytest.raises(ColumnError, match="the result holds two fields called `a`"):
        made.write.provenance(str(tmp_path / "p"), name="out").format("noop").mode("append").save()


def test_a_column_without_a_name_is_refused_before_anything_is_written(
    spark: SparkSession, tmp_path: Path
) -> None:
    rows = spark.sql("SELECT * FROM VALUES (1, '', 2), (1, 'x', 3) t(k, p, v)")
    out = clew.trace(rows, "rows", id=["v"]).groupBy("k").pivot("p").sum("v")

    with pytest.raises(ColumnError, match="a column without a name"):
        out.write.provenance(str(tmp_path / "p"), name="out").format("noop").mode("append").save()
    assert not (tmp_path / "p").exists()


def test_a_column_clew_id_that_holds_no_ids_is_refused_at_once(spark: SparkSession) -> None:
    with pytest.raises(IdentityError, match="Rename it before `clew.trace`"):
        clew.trace(spark.sql("SELECT 'hello' clew_id, 1 k"), "rows")

    assert clew.trace(spark.sql("SELECT 'hello' clew_id, 1 k"), "rows", id=["k"]).columns
    assert clew.trace(spark.sql("SELECT repeat('0a', 16) clew_id, 1 k"), "rows").columns


def test_a_row_with_another_clew_id_further_on_stops_the_query(
    spark: SparkSession, tmp_path: Path
) -> None:
    ids = "SELECT * FROM VALUES (repeat('0a', 16), 1), ('hello', 2) t(clew_id, k)"
    writer = clew.trace(spark.sql(ids), "rows").write.provenance(str(tmp_path / "p"), name="out")

    with pytest.raises(Exception, match="Rename it before `clew.trace`"):
        writer.format("noop").mode("append").save()


EMPTY: dict[str, Callable[[clew.TracedFrame], clew.TracedFrame]] = {
    "values found": lambda t: t.groupBy().pivot("p").sum("v"),
    "values given": lambda t: t.groupBy().pivot("p", ["x"]).sum("v"),
    "keys": lambda t: t.groupBy("k").pivot("p").sum("v"),
}


@pytest.mark.parametrize("case", EMPTY)
def test_a_pivot_of_no_rows_has_the_rows_that_spark_gives(
    spark: SparkSession, tmp_path: Path, case: str
) -> None:
    rows = spark.sql("SELECT * FROM VALUES (1, 'x', 3) t(k, p, v)").filter("k > 9")
    plain = EMPTY[case](rows)  # type: ignore[arg-type]
    out = EMPTY[case](clew.trace(rows, "rows", id=["v"]))
    writer = out.write.provenance(str(tmp_path / "p"), name="out")
    writer.format("noop").mode("append").save()

    assert len(clew.open(str(tmp_path / "p")).rows("out")) == plain.count()


def test_columns_that_differ_in_case_are_traced_where_spark_tells_them_apart(
    spark: SparkSession, tmp_path: Path
) -> None:
    spark.conf.set("spark.sql.caseSensitive", "true")
    try:
        rows = clew.trace(spark.sql("SELECT 1 k, 'x' K, 5 v"), "rows", id=["v"])
        out = rows.filter(rows["K"] == "x").dropDuplicates(["k"]).select(rows.k, "K")
        kept = out.write.provenance(str(tmp_path / "p"), name="out", capture="sets")
        kept.format("noop").mode("append").save()

        assert out.plain.collect() == [(1, "x")]
        with pytest.raises(ColumnError, match="`V`"):
            rows.dropDuplicates(["V"])
    finally:
        spark.conf.unset("spark.sql.caseSensitive")

    provenance = clew.open(str(tmp_path / "p"))
    [row] = provenance.rows("out")
    assert list(row.values()) == [1, "x"]
    [leaf] = provenance.backward("out", row).sources
    assert list(leaf.values()) == [1, "x", 5]


@pytest.mark.parametrize("capture", ["sets", "pointers"])
def test_a_row_is_found_by_the_one_of_two_columns_that_differ_in_case(
    spark: SparkSession, tmp_path: Path, capture: clew.CaptureName
) -> None:
    spark.conf.set("spark.sql.caseSensitive", "true")
    try:
        rows = spark.sql("SELECT * FROM VALUES ('x', 'y', 5), ('z', 'x', 7) t(k, K, v)")
        source = clew.trace(rows, "rows", id=["v"])
        out = source.groupBy("k", "K").agg(F.sum("v").alias("total"))
        kept = out.write.provenance(str(tmp_path / "p"), name="out", capture=capture)
        kept.format("noop").mode("append").save()
    finally:
        spark.conf.unset("spark.sql.caseSensitive")

    provenance = clew.open(str(tmp_path / "p"))
    given = ({"k": "x"}, {"K": "x"}, {"k": "z", "K": "x"}, "K=x", "K=y,k=x")
    found = [[row["v"] for row in provenance.backward("out", row).sources] for row in given]

    assert found == [[5], [7], [7], [7], [5]]


def test_what_python_cannot_hold_inside_a_list_becomes_text() -> None:
    import pyarrow as pa

    far = pa.array([[253402300800000000]], pa.list_(pa.timestamp("us")))

    assert to_python(pa.chunked_array([far])) == [["10000-01-01 00:00:00.000000"]]
