"""A batch result that is overwritten, and the process dies at some step of that."""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING

import pytest
from pyspark.sql import functions as F

import clew
from clew.exceptions import RowNotFoundError, WriterError
from clew.steps import listen, unlisten

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import SparkSession

    from clew.capture.kinds import CaptureName

STEPS = (
    "batch computed",
    "overwriting noted",
    "old provenance removed",
    "sink written",
    "provenance written",
    "batch committed",
)


class Killed(BaseException):
    """The end of the process: nothing catches it, and nothing runs after it."""


@pytest.mark.parametrize("step", STEPS)
@pytest.mark.parametrize("capture", ["sets", "pointers"])
def test_new_rows_never_have_the_provenance_of_those_they_replaced(
    spark: SparkSession, tmp_path: Path, capture: CaptureName, step: str
) -> None:
    rows = spark.createDataFrame([(1, "a", 1), (2, "a", 9)], "rid int, k string, v int")
    rows.write.parquet(str(tmp_path / "in"))
    source = clew.trace(spark.read.parquet(str(tmp_path / "in")), "rows")

    def write(most: int) -> None:
        counted = source.filter(f"v < {most}").groupBy("k").agg(F.count("*").alias("n"))
        writer = counted.write.provenance(str(tmp_path / "prov"), name="out", capture=capture)
        writer.mode("overwrite").parquet(str(tmp_path / "out"))

    def die(reached: str, _: int) -> None:
        if reached == step:
            raise Killed

    write(10)
    listen(die)
    try:
        with pytest.raises(Killed):
            write(5)
    finally:
        unlisten(die)

    [(n,)] = spark.read.parquet(str(tmp_path / "out")).select("n").collect()
    assert n == (2 if STEPS.index(step) < STEPS.index("sink written") else 1)
    with clew.open(str(tmp_path / "prov")) as prov:
        found: set[int] = set()
        with suppress(RowNotFoundError):
            trace = prov.backward("out", {"k": "a"})
            found = {row["rid"] for row in trace.rows}
            assert found or not trace.complete
        assert found in (set(), set(range(1, n + 1)))

    write(5)
    with clew.open(str(tmp_path / "prov")) as prov:
        trace = prov.backward("out", {"k": "a"})
    assert ([row["rid"] for row in trace.rows], trace.complete) == ([1], True)


def test_the_mode_is_taken_in_any_case_as_by_spark(spark: SparkSession, tmp_path: Path) -> None:
    rows = spark.createDataFrame([(1, 1), (2, 9)], "rid int, v int")
    source = clew.trace(rows, "rows", id=["rid"])

    for mode, most in (("overwrite", 10), ("OVERWRITE", 5)):
        writer = source.filter(f"v < {most}").write.provenance(str(tmp_path / "prov"), name="out")
        writer.mode(mode).parquet(str(tmp_path / "out"))

    with clew.open(str(tmp_path / "prov")) as prov:
        assert [row["rid"] for row in prov.rows("out")] == [1]
    ignoring = source.write.provenance(str(tmp_path / "prov"), name="out").mode("Ignore")
    with pytest.raises(WriterError, match="may write nothing"):
        ignoring.parquet(str(tmp_path / "out"))
