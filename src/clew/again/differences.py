"""Compare results with those that were there.

Results are told apart by their ids, which are made of what a result is made from; so a result that
differs is found beside the one that it was.
"""

from __future__ import annotations

import json
import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from pyspark.sql import functions as F

from clew.plan.columns import JSON

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


@dataclass(frozen=True, slots=True)
class Changed:
    """A result that is not as it was.

    Attributes:
        a: The first half of its id.
        b: The second half.
        before: What it was; None if it was not there.
        after: What it is now; None if it is not there any more.
    """

    a: int
    b: int
    before: dict[str, Any] | None
    after: dict[str, Any] | None


@dataclass(frozen=True, slots=True)
class Compared:
    """How results compare: how many are the same, and those that are not."""

    same: int
    changed: tuple[Changed, ...]


def compare(before: DataFrame, after: DataFrame, tolerance: float) -> Compared:
    """Compare results by id.

    Args:
        before: `a`, `b` and `row`.
        after: The same.
        tolerance: By how much floating-point numbers may differ, relative to their size: Spark may
            add them up in another order.
    """
    joined = _texts(before, "before").join(_texts(after, "after"), ["a", "b"], "full")
    marked = joined.withColumn("same", F.col("before").eqNullSafe(F.col("after")))
    held = marked.persist()
    try:
        same = held.filter("same").count()
        others = held.filter("NOT same").orderBy("a", "b").toArrow().to_pylist()
    finally:
        held.unpersist()
    changed = []
    for each in others:
        was, now = (json.loads(each[k]) if each[k] else None for k in ("before", "after"))
        if was is not None and now is not None and _close(was, now, tolerance):
            same += 1
        else:
            changed.append(Changed(each["a"], each["b"], was, now))
    return Compared(same, tuple(changed))


def _texts(rows: DataFrame, name: str) -> DataFrame:
    text = F.to_json(F.col("row"), JSON).alias(name)
    # Rows with one id are equal, or the id would not be one.
    return rows.select("a", "b", text).dropDuplicates(["a", "b"])


def _close(one: Any, other: Any, tolerance: float) -> bool:
    if isinstance(one, dict) and isinstance(other, dict):
        return one.keys() == other.keys() and all(_close(one[k], other[k], tolerance) for k in one)
    if isinstance(one, list) and isinstance(other, list):
        pairs = zip(one, other, strict=False)
        return len(one) == len(other) and all(_close(x, y, tolerance) for x, y in pairs)
    if isinstance(one, float) and isinstance(other, (float, int)):
        return math.isclose(one, other, rel_tol=tolerance, abs_tol=0.0)
    return bool(one == other)
