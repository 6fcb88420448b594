"""Keys that were chosen to have one fast hash are two keys.

The texts below agree in xxhash64 under half of all seeds, known or not: a bit that is set in the
first block and taken back in the next leaves the same state. No secret seed would tell them apart.
"""

from __future__ import annotations

import struct
from typing import TYPE_CHECKING

import pytest
from pyspark.sql import functions as F

import clew
from clew.plan.columns import identify, segment_hash
from clew.plan.secret import UNKEYED, Secret, hashing_with
from frames import answers, batch_traces

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import SparkSession

_PRIME_1, _PRIME_2, _WORD = 11400714785074694791, 14029467366897019727, 1 << 64
_BIT = 7
SECRETS = [UNKEYED, Secret.from_hex("5e" * 32)]


def chosen(first: int) -> tuple[bytes, bytes]:
    """Make two texts of two blocks that xxhash64 mostly cannot tell apart."""
    back = pow(_PRIME_2, -1, _WORD)
    one = [first, 0, 0, 0, 0, 0, 0, 0]
    two = list(one)
    two[0] = (first + (1 << _BIT) * back) % _WORD
    two[4] = -((1 << (_BIT + 31)) * _PRIME_1) * back % _WORD
    return struct.pack("<8Q", *one), struct.pack("<8Q", *two)


def pairs() -> list[tuple[int, bytes, bytes]]:
    return [(number, *chosen(number * _PRIME_1 % _WORD)) for number in range(64)]


@pytest.mark.parametrize("secret", SECRETS, ids=["known", "secret"])
@pytest.mark.parametrize("kind", ["binary", "string", "array<binary>", "struct<x: binary>"])
def test_texts_that_were_chosen_to_collide_have_ids_of_their_own(
    spark: SparkSession, secret: Secret, kind: str
) -> None:
    df = spark.createDataFrame(pairs(), "n int, one binary, two binary")
    forms = {"array<binary>": "array({})", "struct<x: binary>": "named_struct('x', {})"}
    form = forms.get(kind, f"CAST({{}} AS {kind})")
    df = df.selectExpr("*", f"{form.format('one')} AS a", f"{form.format('two')} AS b")
    with hashing_with(secret):
        ids = [F.struct(*identify([(name, df.schema[name].dataType)])) for name in ("a", "b")]
    fast = df.filter("xxhash64(0, one) = xxhash64(0, two)").count()

    equal = df.filter(ids[0] == ids[1]).count()

    assert fast >= 20  # the texts are what they are meant to be
    assert equal == 0


def test_files_whose_paths_were_chosen_to_collide_are_two_segments(spark: SparkSession) -> None:
    df = spark.createDataFrame(pairs(), "n int, one binary, two binary")
    df = df.selectExpr("CAST(one AS STRING) AS one", "CAST(two AS STRING) AS two")
    with hashing_with(UNKEYED):
        same = f"{segment_hash('one')} = {segment_hash('two')}"

    assert df.filter("xxhash64(one) = xxhash64(two)").count() >= 20
    assert df.filter(same).count() == 0


@pytest.mark.parametrize("capture", ["sets", "pointers"])
def test_groups_of_chosen_keys_trace_to_their_own_rows(
    spark: SparkSession, tmp_path: Path, capture: str
) -> None:
    rows = [(2 * n + i, text) for n, *both in pairs()[:8] for i, text in enumerate(both)]
    spark.createDataFrame(rows, "rid int, k binary").write.parquet(str(tmp_path / "in"))
    frame = clew.trace(spark.read.parquet(str(tmp_path / "in")), "rows")
    counted = frame.groupBy("k").agg(F.count("*").alias("n"), F.max("rid").alias("rid"))

    traces = batch_traces(counted, tmp_path, capture=capture)

    found = answers(traces, "rid")
    assert found == {rid: {rid} for rid, _ in rows}
