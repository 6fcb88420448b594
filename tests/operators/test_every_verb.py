"""A traced frame gives what Spark's own does, whatever the verb and however columns are named.

Each case of the walk is one function, run over plain frames and over traced ones. Names, types,
nullability and rows must agree, in the frame itself and in what each capture hands to the sink.
"""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

import pytest
from pyspark.errors import PySparkException
from pyspark.sql import functions as F

import clew
from clew.capture.kinds import kind_of
from clew.exceptions import ColumnError
from clew.frame.frame import TracedFrame, TracedNa
from clew.frame.group import TracedGroup
from clew.plan.columns import quote
from clew.plan.node import interpret
from clew.plan.sql import quiet
from clew.run.split import clean_rows
from clew.testing import keyed
from operators.walk import CASES, MORE, REFUSED, frames

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pyspark.sql import DataFrame, SparkSession

CAPTURES = ("sets", "pointers", "intervals", "keys")

QUICK = {
    "spark.sql.codegen.wholeStage": "false",
    "spark.sql.codegen.factoryMode": "NO_CODEGEN",
    "spark.sql.shuffle.partitions": "1",
}

NOT_IN_THE_WALK = {
    *("plain", "node", "schema", "columns", "dtypes", "isStreaming", "sparkSession"),
    *("storageLevel", "write", "writeStream", "na", "unpersist"),
    # actions
    *("show", "explain", "printSchema", "collect", "isEmpty", "first", "head", "take", "tail"),
    *("toLocalIterator", "toPandas", "toArrow", "observe"),
    # not Spark's, or with other parameters than Spark's
    *("recover", "named", "property", "properties", "subscribe", "through", "inOrder"),
    *("mapInPandas", "mapInArrow", "applyInPandas"),
    # for streams only
    "dropDuplicatesWithinWatermark",
}


@pytest.fixture(scope="module")
def plain_frames(spark: SparkSession) -> Iterator[tuple[DataFrame, DataFrame]]:
    # Expressions are interpreted: hundreds of small plans take longer to compile than to run.
    before = {name: str(spark.conf.get(name)) for name in QUICK}
    for name, value in QUICK.items():
        spark.conf.set(name, value)
    yield frames(spark)
    for name, value in before.items():
        spark.conf.set(name, value)


def _traced(both: tuple[DataFrame, DataFrame]) -> tuple[TracedFrame, TracedFrame]:
    first, second = both
    return (
        clew.trace(first, "first", event_time="at", id=["id"]),
        clew.trace(second, "second", event_time="at", id=["n"]),
    )


def test_every_verb_is_in_the_walk() -> None:
    verbs = {
        name
        for kind in (TracedFrame, TracedGroup)
        for name in dir(kind)
        if not name.startswith("_")
    }
    verbs |= {f"na.{name}" for name in dir(TracedNa) if not name.startswith("_")}
    walked = {case.split(":")[0] for case in CASES}

    assert verbs - NOT_IN_THE_WALK <= walked
    assert walked - verbs == {"[]"}


@pytest.mark.parametrize("case", [c for c in CASES if c not in REFUSED and c not in MORE])
def test_a_verb_gives_the_schema_and_rows_of_plain_spark(
    case: str, plain_frames: tuple[DataFrame, DataFrame]
) -> None:
    make = CASES[case]
    with quiet():
        try:
            plain = make(*plain_frames)
        except (PySparkException, IndexError):
            plain = None
        if plain is None:
            with pytest.raises((PySparkException, clew.ClewError)):
                make(*_traced(plain_frames))
            return
    traced = make(*_traced(plain_frames))

    written = {"the frame itself": traced.plain}
    for name in CAPTURES:
        built = interpret(keyed(traced), kind_of(name).moves())
        written[name] = clean_rows(built.df.drop(*built.references), keep_id=False)

    assert _fields(traced.plain) == [(f.name, f.dataType.json(), f.nullable) for f in traced.schema]
    for name, df in written.items():
        assert _fields(df) == _fields(plain), name
    # Rows of one further capture each: there are many cases, and the moves are few.
    other = CAPTURES[1 + list(CASES).index(case) % 3]
    counted = {"Spark": plain, "sets": written["sets"], other: written[other]}
    rows = _rows(counted)
    assert rows["sets"] == rows["Spark"]
    assert rows[other] == rows["Spark"]


@pytest.mark.parametrize("case", REFUSED)
def test_what_would_change_a_result_is_refused(
    case: str, plain_frames: tuple[DataFrame, DataFrame]
) -> None:
    CASES[case](*plain_frames)

    with pytest.raises(ColumnError, match=REFUSED[case]):
        CASES[case](*_traced(plain_frames))


@pytest.mark.parametrize("case", sorted(MORE))
def test_what_spark_refuses_may_work(case: str, plain_frames: tuple[DataFrame, DataFrame]) -> None:
    with quiet(), pytest.raises(PySparkException):
        CASES[case](*plain_frames)

    assert CASES[case](*_traced(plain_frames)).columns


def _fields(df: DataFrame) -> list[tuple[str, str, bool]]:
    return [(f.name, f.dataType.json(), f.nullable) for f in df.schema.fields]


def _rows(counted: dict[str, DataFrame]) -> dict[str, Counter[str]]:
    """Count the rows of several frames in one job."""
    union = None
    for name, df in counted.items():
        columns = [f"c{i}" for i in range(len(df.columns))]
        texts = [F.coalesce(F.col(quote(c)).cast("string"), F.lit("null")) for c in columns]
        each = df.toDF(*columns).select(
            F.lit(name).alias("of"), F.concat_ws("|", *texts).alias("x")
        )
        union = each if union is None else union.union(each)
    rows: dict[str, Counter[str]] = {name: Counter() for name in counted}
    for row in union.collect() if union is not None else []:
        rows[row["of"]][row["x"]] += 1
    return rows
