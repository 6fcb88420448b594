"""Writing few rows through the driver: the files are the same, whoever writes them."""

from __future__ import annotations

import datetime as dt
from decimal import Decimal
from typing import TYPE_CHECKING

import pyarrow.parquet as pq
import pytest

from clew.store.collect import compute, put_rows

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import DataFrame, SparkSession

_KINDS = """
    SELECT * FROM VALUES
        (1, 'x', TIMESTAMP '2026-01-02 03:04:05.678901', DATE '2026-01-02', 1.5D, 2.50BD, true,
            from_json('{"list": [1, null]}', 'list ARRAY<INT>'),
            map('k', 2.5F), X'0102', TIMESTAMP_NTZ '2026-01-02 03:04:05'),
        (NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL)
    AS t(number, text, at, day, real, exact, truth, nested, named, bytes, local)
"""


def _local(text: str) -> dt.datetime:
    """Return a time as Spark hands it to Python; the tests run in UTC."""
    return dt.datetime.fromisoformat(text)


def _read(spark: SparkSession, rows: DataFrame, folder: Path) -> list[dict[str, object]]:
    read = spark.read.schema(rows.schema).parquet(str(folder))
    return sorted((row.asDict(recursive=True) for row in read.collect()), key=str)


@pytest.mark.parametrize("few", [True, False])
def test_rows_read_back_the_same_whoever_wrote_them(
    spark: SparkSession, tmp_path: Path, *, few: bool
) -> None:
    rows = spark.sql(_KINDS)

    put_rows(rows, tmp_path / "out", few=few)

    first, second = _read(spark, rows, tmp_path / "out")
    assert first == {
        "number": 1,
        "text": "x",
        "at": _local("2026-01-02 03:04:05.678901"),
        "day": dt.date(2026, 1, 2),
        "real": 1.5,
        "exact": Decimal("2.50"),
        "truth": True,
        "nested": {"list": [1, None]},
        "named": {"k": 2.5},
        "bytes": bytearray(b"\x01\x02"),
        "local": _local("2026-01-02 03:04:05"),
    }
    assert set(second.values()) == {None}


def test_few_rows_are_one_file_in_place_of_what_was_there(
    spark: SparkSession, tmp_path: Path
) -> None:
    put_rows(spark.range(10).repartition(2), tmp_path / "out", few=False)

    put_rows(spark.range(3).repartition(2), tmp_path / "out", few=True)

    (file,) = (tmp_path / "out").iterdir()
    assert sorted(pq.read_table(file)["id"].to_pylist()) == [0, 1, 2]


@pytest.mark.parametrize(
    "column",
    [
        "named_struct('x', INTERVAL '3' DAY)",
        "array(named_struct('x', INTERVAL '3' DAY))",
        "if(id = 0, named_struct('x', 1), NULL)",
    ],
)
def test_types_that_arrow_has_not_or_fails_on_are_left_to_spark(
    spark: SparkSession, tmp_path: Path, column: str
) -> None:
    rows = spark.range(2).selectExpr(f"{column} AS column").repartition(2)

    put_rows(rows, tmp_path / "out", few=True)

    expected = sorted((row.asDict(recursive=True) for row in rows.collect()), key=str)
    assert _read(spark, rows, tmp_path / "out") == expected
    assert (tmp_path / "out" / "_SUCCESS").exists()


@pytest.mark.parametrize(("most", "files"), [(10, 0), (9, 2), (3, 2), (0, 2)])
def test_more_rows_than_allowed_are_written_by_spark(
    spark: SparkSession, tmp_path: Path, most: int, files: int
) -> None:
    draft = compute(spark.range(10).repartition(2), tmp_path / "out", most)

    assert len(list((tmp_path / "out").glob("*.parquet"))) == files
    assert draft.count() == 10
    assert sorted(draft.read(["id"])["id"].to_pylist()) == [*range(10)]
    draft.drop()
    assert not (tmp_path / "out").exists()


def test_an_error_of_the_job_is_not_mistaken_for_too_many_rows(
    spark: SparkSession, tmp_path: Path
) -> None:
    rows = spark.sql("SELECT raise_error('broken') AS x")

    with pytest.raises(Exception, match="broken"):
        put_rows(rows, tmp_path / "out", few=True)
