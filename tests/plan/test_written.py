"""Steps read the way they were written, or as they are kept where that cannot be told."""

from __future__ import annotations

import datetime as dt
from decimal import Decimal
from typing import TYPE_CHECKING

import pytest
from pyspark.sql import Window
from pyspark.sql import functions as F

from clew.operators.keep import shown
from clew.plan.written import label_of, written

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

EXPRESSIONS = {
    "and(>=(n, 4), =(pos, furthest))": "n >= 4 and pos = furthest",
    "=(speed, 0)": "speed = 0",
    # No parentheses that say nothing, and all that say something.
    "or(and(a, b), c)": "a and b or c",
    "and(or(a, b), c)": "(a or b) and c",
    "and(a, and(b, c))": "a and b and c",
    "*(+(a, b), c)": "(a + b) * c",
    "+(a, *(b, c))": "a + b * c",
    "-(a, -(b, c))": "a - (b - c)",
    "-(-(a, b), c)": "a - b - c",
    "/(a, *(b, c))": "a / (b * c)",
    "%(n, 2)": "n % 2",
    "=(=(a, b), c)": "(a = b) = c",
    "=(&(flags, 4), 4)": "(flags & 4) = 4",
    "not(=(a, b))": "not a = b",
    "not(and(a, b))": "not (a and b)",
    "=(not(a), b)": "(not a) = b",
    "negative(a)": "-a",
    "negative(+(a, b))": "-(a + b)",
    "negative(negative(a))": "-(-a)",
    "*(a, negative(b))": "a * -b",
    "negative(-1)": "-(-1)",
    # Tests.
    "isnull(car)": "car is null",
    "isnotnull(+(a, b))": "a + b is not null",
    "and(isnull(=(a, b)), c)": "(a = b) is null and c",
    "in(car, 7, 8)": "car in (7, 8)",
    "like(name, 'a%')": "name like 'a%'",
    "not(rlike(name, '^a, (b'))": "not name rlike '^a, (b'",
    "<=>(a, NULL)": "a <=> NULL",
    # Functions, by their names.
    "sum(*(price, n))": "sum(price * n)",
    "now()": "now()",
    "<lambda>(kwh, +(a, 1))": "<lambda>(kwh, a + 1)",
    "transform(xs, x_7 -> +(x_7, 1))": "transform(xs, x -> x + 1)",
    "aggregate(xs, 0, (x_3, y_4) -> +(x_3, y_4))": "aggregate(xs, 0, (x, y) -> x + y)",
    "transform(xs, x_7 -> transform(ys, x_8 -> *(x_7, x_8)))": (
        "transform(xs, x -> transform(ys, x2 -> x * x2))"
    ),
    "transform(xs, x_7 -> concat(x_7, x, 'x'))": "transform(xs, x2 -> concat(x2, x, 'x'))",
    # Casts, cases, orders, names.
    "sum(*(a, 2)) AS sum((a * 2))": "sum(a * 2)",
    "a AS a": "a",
    "max(+(a, b)) OVER (ORDER BY ts DESC NULLS LAST ROWS BETWEEN -2L AND CURRENT ROW)": (
        "max(a + b) OVER (ORDER BY ts DESC ROWS BETWEEN -2L AND CURRENT ROW)"
    ),
    "now() OVER ()": "now() OVER ()",
    "window(ts, '1 minute', '1 minute', '0 second')": "window(ts, '1 minute')",
    "window(ts, '2 minutes', '30 seconds', '0 second')": "window(ts, '2 minutes', '30 seconds')",
    "window(ts, '1 day', '1 day', '1 hour')": "window(ts, '1 day', '1 day', '1 hour')",
    "CAST(+(a, b) AS STRING)": "CAST(a + b AS STRING)",
    "TRY_CAST(=(a, b) AS DECIMAL(10,2))": "TRY_CAST(a = b AS DECIMAL(10,2))",
    "CASE WHEN >(n, 4) THEN 'many' WHEN and(a, b) THEN CASE WHEN c THEN 1 END ELSE -(n, 1) END": (
        "CASE WHEN n > 4 THEN 'many' WHEN a and b THEN CASE WHEN c THEN 1 END ELSE n - 1 END"
    ),
    "=(CASE WHEN >(n, 4) THEN 1 ELSE 2 END, 1)": "CASE WHEN n > 4 THEN 1 ELSE 2 END = 1",
    "+(a, b) DESC NULLS LAST": "a + b DESC",
    "a ASC NULLS LAST": "a ASC NULLS LAST",
    ">(window['start'], ts)": "window['start'] > ts",
    "+(xs[+(i, 1)], 2)": "xs[i + 1] + 2",
    ">(window.end, ts)": "window.end > ts",
    ">(engine temp, 90)": "`engine temp` > 90",
    "=(`a.b`, 'it\\'s')": "`a.b` = 'it\\'s'",
    ">=(ts, 2026-01-01 08:00:00)": "ts >= 2026-01-01 08:00:00",
    # Text that the user wrote as SQL keeps its own parentheses, and gets some inside of others.
    "and(a > 1 OR b, c)": "(a > 1 OR b) and c",
    "*((a + b), 2)": "(a + b) * 2",
    "count(a > 1 OR b)": "count(a > 1 OR b)",
}


@pytest.mark.parametrize("printed", EXPRESSIONS)
def test_what_spark_prints_of_a_column_reads_as_it_was_written(printed: str) -> None:
    assert written(printed) == EXPRESSIONS[printed]


@pytest.mark.parametrize(
    ("label", "text"),
    [
        (
            "sum(*(a, b)) AS total, count(1) AS n by >(a, 1), b",
            "sum(a * b) AS total, count(1) AS n by a > 1, b",
        ),
        ("far = >(pos, 10), x = y", "far = pos > 10, x = y"),
        ("engine temp = +(a, b)", "engine temp = a + b"),
        ("f by car, from rows where and(a, b); c", "f by car, from rows where a and b; c"),
        ("pos = +(a, b), merged by max", "pos = a + b, merged by max"),
        ("ts, 30 seconds", "ts, 30 seconds"),
        ("", ""),
    ],
)
def test_each_column_of_a_step_is_written(label: str, text: str) -> None:
    assert written(label) == text


@pytest.mark.parametrize(
    "label",
    [
        "?",
        "n >= 4 and lo = hi",
        "kwh > 5 AND (a OR b)",
        "`>`(a",
        "=(a, 'open)",
        "=(it's, 1)",
        "=((a, b)",
        "+(a, b, c)",
        "~>(a, b)",
        "CASE WHEN a THEN",
        "and(" * 70 + "a, b" + ", c)" * 70,
        "=(" + "a" * 6_000 + ", 1)",
    ],
)
def test_what_cannot_be_read_with_certainty_is_shown_as_it_is_kept(label: str) -> None:
    assert written(label) == label


def test_what_was_taken_from_a_frame_is_called_by_its_name() -> None:
    node = {
        "kind": "filter",
        "label": ">(_clew_ref_1_2, _clew_ref_1_22)",
        "names": {"_clew_ref_1_2": "speed", "_clew_ref_1_22": "engine temp"},
    }

    assert label_of(node) == "speed > `engine temp`"


@pytest.mark.parametrize("kind", ["source", "named"])
def test_the_name_of_a_stream_is_no_expression(kind: str) -> None:
    assert label_of({"kind": kind, "label": "=(a, b)"}) == "=(a, b)"


def test_columns_made_in_python_read_as_sql(spark: SparkSession) -> None:
    a, b, xs = F.col("a"), F.col("b"), F.col("xs")
    columns = [
        ((a >= 4) & (b == F.col("furthest")), "a >= 4 and b = furthest"),
        ((a > 1) | ~(b < 2), "a > 1 or not b < 2"),
        ((a != 1) & a.eqNullSafe(b), "not a = 1 and a <=> b"),
        (-(a + b) * 2, "-(a + b) * 2"),
        (a - (b - 1) / 2 % 3, "a - (b - 1) / 2 % 3"),
        (a.isNull() | b.isNotNull(), "a is null or b is not null"),
        (a.isin(1, 2), "a in (1, 2)"),
        (~a.isin("x", "it's"), "not a in ('x', 'it\\'s')"),
        (a.like("n%") & a.rlike("^n, (b"), "a like 'n%' and a rlike '^n, (b'"),
        (a.between(1, 5), "a >= 1 and a <= 5"),
        (a.cast("string") == "x", "CAST(a AS STRING) = 'x'"),
        (
            F.when(a > 1, "many").when(b > 1, "few").otherwise(F.lit(None)),
            "CASE WHEN a > 1 THEN 'many' WHEN b > 1 THEN 'few' ELSE NULL END",
        ),
        (F.when(a > 1, 2), "CASE WHEN a > 1 THEN 2 END"),
        (F.transform(xs, lambda x: x + 1), "transform(xs, x -> x + 1)"),
        (
            F.aggregate(xs, F.lit(0), lambda whole, x: whole + x),
            "aggregate(xs, 0, (x, y) -> x + y)",
        ),
        (F.sum(a * b).alias("total"), "sum(a * b) AS total"),
        (F.count("*"), "count(*)"),
        ((a + b).desc(), "a + b DESC"),
        (F.col("window.start") > F.col("window")["end"], "window.start > window['end']"),
        (xs[0] + xs[b + 1], "xs[0] + xs[b + 1]"),
        (F.col("engine temp") > 90, "`engine temp` > 90"),
        (F.expr("a > 1 OR b") & F.expr("c IN (1, 2)"), "(a > 1 OR b) and (c IN (1, 2))"),
        (F.window("ts", "2 minutes", "30 seconds"), "window(ts, '2 minutes', '30 seconds')"),
        (
            a > F.lit(dt.datetime(2026, 1, 1, 8, tzinfo=dt.timezone.utc)),
            "a > 2026-01-01 08:00:00.0",
        ),
        (a * 1.5 > Decimal("2.50"), "a * 1.5 > 2.50"),
        (
            F.row_number().over(Window.partitionBy("a").orderBy(b + 1)),
            "row_number() OVER (PARTITION BY a ORDER BY b + 1 ASC)",
        ),
        (a.bitwiseAND(4) == 4, "(a & 4) = 4"),
        (F.udf(lambda x: x, "long")(a), "<lambda>(a)"),
        (F.lit([1, 2])[0] == a, "array(1, 2)[0] = a"),
        (F.udf(lambda x, y: x, "long")(a + 1, F.col("w.end")), "<lambda>(a + 1, w.end)"),
        (F.udf(lambda x: x, "long")(F.lit("it's")), "<lambda>(…)"),
        (a == F.lit(b"x"), "a = …"),
    ]

    found = [written(shown(column)) for column, _ in columns]
    assert found == [text for _, text in columns]
