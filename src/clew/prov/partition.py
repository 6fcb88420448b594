"""Which local reducer gets what.

A function execution is never split: its statements share an execution, and every way to partition
is a function of that. `source` takes the partitions as they come, a Kafka partition or a part of a
file each, and needs no shuffle; there, keeping executions together is up to who publishes. The
other ways are a shuffle by a key, which `explain()` shows.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyspark.sql import functions as F

from clew.prov.worker import NOTE, PARSED

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

    from clew.prov.worker import Local

_JUMPS = 2
"""How often executions follow those that used what they made: each time doubles the way."""
_KEY = "_clew_key"


def reduce_locally(lines: DataFrame, local: Local) -> DataFrame:
    """Plan the local reducers over lines of text.

    Args:
        lines: One column, text or bytes.
        local: Their work.

    Returns:
        The notes of the tasks.
    """
    ours = local.settings
    if ours.partitioning == "source":
        return lines.mapInArrow(local.reduce_lines, NOTE)
    elements = lines.mapInArrow(local.parse, PARSED)
    keyed = partitioned(elements, ours.partitioning, ours.partitions)
    return keyed.mapInArrow(local.reduce_elements, NOTE)


def partitioned(elements: DataFrame, partitioning: str, partitions: int | None) -> DataFrame:
    """Send elements to the local reducer that their key names."""
    if partitioning == "lineage":
        elements = _with_lineage(elements)
    else:
        elements = elements.withColumn(_KEY, _key(partitioning))
    key = F.col(_KEY)
    moved = (
        elements.repartition(key) if partitions is None else elements.repartition(partitions, key)
    )
    if partitioning == "lineage":
        # What belongs together has to be in the same local batch, too.
        moved = moved.sortWithinPartitions(_KEY)
    return moved.drop(_KEY)


def _key(partitioning: str) -> Column:
    if partitioning == "random":
        return F.col("execution")
    return F.coalesce(F.col(partitioning), F.col("execution"))


def _with_lineage(elements: DataFrame) -> DataFrame:
    """Give each execution the key of the one at the end of its derivation path.

    An execution follows the one that used what it made; where several did, the first by name. The
    path goes as far as this batch knows it.
    """
    whole = elements.where("activity IS NOT NULL")
    users = whole.select(F.explode("inputs").alias("thing"), F.col("execution").alias("user"))
    first = users.groupBy("thing").agg(F.min("user").alias("user"))
    made = whole.select("execution", F.explode("outputs").alias("thing"))
    after = made.join(first, "thing").groupBy("execution").agg(F.min("user").alias(_KEY))
    for _ in range(_JUMPS):
        further = after.select(F.col("execution").alias(_KEY), F.col(_KEY).alias("beyond"))
        joined = after.join(further, _KEY, "left")
        after = joined.select("execution", F.coalesce("beyond", _KEY).alias(_KEY))
    found = elements.join(after, "execution", "left")
    return found.select(*elements.columns, F.coalesce(_KEY, "execution").alias(_KEY))
