"""A condition of a stranger means what Spark's SQL means by it, and can run nothing."""

from __future__ import annotations

import datetime as dt
from typing import TYPE_CHECKING

import pytest

from clew.exceptions import QueryError
from clew.plan.build import build_column
from clew.plan.condition import MAX_DEPTH, MAX_LENGTH, MAX_NODES, parse_condition

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import SparkSession

SAME_AS_SQL = [
    "n >= 4",
    "n > 1 and n < 5 or n = 6",
    "not n = 2 and not (n = 3 or n = 4)",
    "n in (1, 2, 3)",
    "n not in (1, 2, 3)",
    "n between 2 and 4 and n not between 3 and 3",
    "place like 'n%' or place not like '%t_'",
    "place = 'it''s'",
    "place is null or `a b` is not null",
    "place <=> null",
    "n + 2 * 3 - 1 = 8 and n % 2 = 1 and n / 2 > 1.0",
    "(n + 2) * 3 = 15",
    "-n < -3 and n > - 2",
    "n < 1e1 and n <> 2 and n != 3 and n == 4",
    "window.start > '2026-01-01 00:00:03'",
    "window.start between '2026-01-01' and '2026-01-01 00:00:02'",
    "true and not false and n = 1",
    "10 - 3 - 2 = n",
    "n < 9223372036854775808 and n > 1.5",
]


def test_a_condition_chooses_the_rows_that_sql_chooses(spark: SparkSession) -> None:
    start = dt.datetime(2026, 1, 1, tzinfo=dt.timezone.utc)
    places = ["north", "it's", "nest", None, "south", "n_t"]
    rows = [
        (n, place, n % 2 or None, (start + dt.timedelta(seconds=n),))
        for n, place in enumerate(places, 1)
    ]
    schema = "n int, place string, `a b` int, window struct<start: timestamp>"
    df = spark.createDataFrame(rows, schema)
    chosen = {
        text: (
            [row.n for row in df.filter(build_column(parse_condition(text).tree)).collect()],
            [row.n for row in df.filter(text).collect()],
        )
        for text in SAME_AS_SQL
    }

    assert {text: ours for text, (ours, _) in chosen.items()} == {
        text: sql for text, (_, sql) in chosen.items()
    }
    assert all(0 < len(ours) < len(rows) for ours, _ in chosen.values()), chosen


def test_a_condition_that_would_start_a_process_is_refused(tmp_path: Path) -> None:
    proof = tmp_path / "started"

    with pytest.raises(QueryError, match="comparisons of columns only"):
        parse_condition(f"n in (reduce 1 using 'touch {proof}' as y)")

    assert not proof.exists()


@pytest.mark.parametrize(
    "text",
    [
        "n = 1" + " " * MAX_LENGTH,
        "(" * (MAX_DEPTH + 1) + "n = 1" + ")" * (MAX_DEPTH + 1),
        "n in (" + ", ".join("1" * MAX_NODES) + ")",
        "n = " + " + ".join("1" * (MAX_DEPTH + 2)),
    ],
)
def test_a_condition_has_limits(text: str) -> None:
    with pytest.raises(QueryError, match="too many"):
        parse_condition(text)


@pytest.mark.parametrize("text", ["place = '\ud800'", "`\udfff` = 1", "n < 1e999"])
def test_values_that_spark_could_not_be_handed_are_refused(text: str) -> None:
    with pytest.raises(QueryError, match="comparisons of columns only") as caught:
        parse_condition(text)

    assert str(caught.value).encode()


def test_the_deepest_condition_that_is_taken_can_be_built(spark: SparkSession) -> None:
    many = " or ".join(f"n = {i}" for i in range(MAX_NODES // 2))
    deep = "not(" * (MAX_DEPTH - 1) + "n = 1" + ")" * (MAX_DEPTH - 1)
    df = spark.createDataFrame([(1,)], "n int")

    columns = [build_column(parse_condition(text).tree) for text in (many, deep)]

    assert [df.filter(column).count() for column in columns] == [1, 0]
