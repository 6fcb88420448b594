"""Two keys have one id exactly where Spark groups them together."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from pyspark.sql import functions as F

from clew.exceptions import ColumnError
from clew.plan.columns import identify, quote
from clew.plan.secret import UNKEYED, hashing_with

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

KEYS = {
    "lcase": ["collate({}, 'UTF8_LCASE')", "'Aa'", "'AA'", "'ΑΣ'", "'ας'", "'b'", "NULL"],
    "rtrim": ["collate({}, 'UTF8_BINARY_RTRIM')", "'a'", "'a  '", "' a'", "'A'", "''", "' '"],
    "both": ["collate({}, 'UTF8_LCASE_RTRIM')", "'a'", "'A  '", "' a'"],
    "double": ["CAST({} AS DOUBLE)", "'0'", "'-0.0'", "'NaN'", "'1'", "NULL"],
    "doubles": ["{}", "array(0D)", "array(-0D)", "array(double('NaN'))", "array()", "NULL"],
    "nested": ["{}", "array(struct(-0D, 'a'))", "array(struct(0D, 'a'))", "array(struct(0D, 'b'))"],
    "texts": ["{}", "array('a', 'b')", "array('a;1:b')", "array('ab')", "array('a', NULL)"],
    "maps": ["{}", "array(map(1, 2, 3, 4))", "array(map(3, 4, 1, 2))", "array(map(1, 4, 3, 2))"],
    "ntz": [
        "array(timestamp_ntz'2024-01-01 00:00:00.{}')",
        *("000001", "000002", "000001", "1"),
    ],
    "decimal": ["CAST({} AS DECIMAL(38, 3))", "1", "1.0", "1.001", "NULL"],
    "binary": ["{}", "x'00'", "x'0000'", "x''", "NULL"],
    "interval": ["{}", "interval '1' day", "interval '24' hour", "interval '1.000001' second"],
}


@pytest.mark.parametrize("as_text", [True, False])
def test_keys_have_one_id_exactly_where_spark_groups_them(
    spark: SparkSession, *, as_text: bool
) -> None:
    wrong = []
    for name, (form, *values) in KEYS.items():
        rows = " UNION ALL ".join(f"SELECT {form.replace('{}', v)} AS k" for v in values)
        df = spark.sql(rows)
        kind = df.schema["k"].dataType
        with hashing_with(UNKEYED):
            a, b = identify([(quote("k") if as_text else F.col("k"), kind)])
        groups = df.select("k", a.alias("a"), b.alias("b")).groupBy("k")
        one = groups.agg(F.collect_set(F.struct("a", "b")).alias("ids")).select("ids").collect()
        ids = [row["ids"] for row in one]
        if any(len(each) != 1 for each in ids) or len({each[0] for each in ids}) != len(ids):
            wrong.append((name, ids))
    assert wrong == []


def test_a_key_whose_equality_only_spark_knows_is_refused(spark: SparkSession) -> None:
    df = spark.sql("SELECT collate('a', 'UNICODE_CI') AS k")
    with pytest.raises(ColumnError, match="UTF8_LCASE"):
        identify([("k", df.schema["k"].dataType)])
