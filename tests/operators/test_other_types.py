"""Keys of other types: no row is doubled or lost, and types are those of plain Spark."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Any

import pytest
from pyspark.errors import PySparkException

import clew
from clew.capture.kinds import kind_of
from clew.plan.node import interpret
from clew.plan.sql import quiet
from clew.run.split import clean_rows
from clew.testing import keyed

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pyspark.sql import DataFrame, SparkSession

KINDS = {
    "int and string": ("(1), (2), (NULL)", "('1'), ('01'), ('2'), ('7')"),
    "string and int": ("('1'), ('01'), ('2')", "(1), (2), (3)"),
    "date and string": (
        "(date'2026-01-01'), (date'2026-01-02')",
        "('2026-01-01'), ('2026-1-1'), ('2026-01-05')",
    ),
    "int and bigint": ("(1), (2), (2), (NULL)", "(1L), (2L), (NULL)"),
    "bigint and int": ("(1L), (2L), (NULL)", "(1), (1), (NULL)"),
    "decimals": ("(1.0BD), (1.50BD)", "(1.000BD), (1.5BD), (2BD)"),
    "int and double": ("(1), (2)", "(1.0D), (1.5D), (-0.0D)"),
    "date and timestamp": ("(date'2026-01-01')", "(timestamp'2026-01-01 00:00:00')"),
}
VERBS = ("semi", "anti", "intersect", "subtract")


@pytest.fixture(params=["true", "false"])
def ansi(spark: SparkSession, request: pytest.FixtureRequest) -> Iterator[None]:
    before = {
        n: spark.conf.get(n) for n in ("spark.sql.ansi.enabled", "spark.sql.codegen.wholeStage")
    }
    spark.conf.set("spark.sql.ansi.enabled", str(request.param))
    spark.conf.set("spark.sql.codegen.wholeStage", "false")
    yield
    for name, value in before.items():
        spark.conf.set(name, str(value))


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.usefixtures("ansi")
def test_keys_of_other_types_give_the_rows_and_types_of_plain_spark(
    spark: SparkSession, kind: str
) -> None:
    first, second = (spark.sql(f"SELECT * FROM VALUES {rows} t(k)") for rows in KINDS[kind])
    for verb in VERBS:
        with quiet():
            try:
                plain = _apply(verb, first, second)
            except PySparkException:
                continue  # Spark itself finds no common type
        traced = _apply(verb, clew.trace(first, "first"), clew.trace(second, "second"))
        for capture in ("sets", "pointers"):
            built = interpret(keyed(traced), kind_of(capture).moves())
            written = clean_rows(built.df.drop(*built.references), keep_id=False)
            assert _fields(written) == _fields(plain), (verb, capture)
            assert _rows(written) == _rows(plain), (verb, capture)


def _apply(verb: str, first: Any, second: Any) -> Any:
    if verb in ("semi", "anti"):
        return first.join(second, "k", verb)
    return getattr(first, verb)(second)


def _fields(df: DataFrame) -> list[tuple[str, str, bool]]:
    return [(f.name, f.dataType.simpleString(), f.nullable) for f in df.schema.fields]


def _rows(df: DataFrame) -> Counter[str]:
    return Counter(str(tuple(row)) for row in df.collect())
