"""What a frame is read from, as Spark's analysed plan says it: topics, files, rows in memory.

That a frame has the columns of a Kafka record, or rows that come from a folder, says nothing about
what it is. The leaves of its plan do. What a leaf is not known to be is not taken for anything.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Literal

from clew.plan.analysis import analysed, explain, operators
from clew.plan.order import column_numbers, leaves

if TYPE_CHECKING:
    from collections.abc import Collection

    from pyspark.sql import DataFrame

Origins = Literal["files", "memory", "mixed", "unknown"]
"""Where the rows of a table come from: files alone, this process alone, both, or elsewhere."""

_LIST = re.compile(r"\[[^\[\]]*\]")
_KAFKA = re.compile(r"\borg\.apache\.spark\.sql\.kafka010\.|^Relation\s+KafkaRelation\(")
_FILES = re.compile(r"^Relation \S*\s*(parquet|orc|json|csv|text|xml|avro|binaryFile)\s*$")
_IN_PLAN = re.compile(r"^(LocalRelation|OneRowRelation|Range)\b")
_MEMORY = re.compile(rf"{_IN_PLAN.pattern}|^(LogicalRDD|ExternalRDD)\b")
# A literal may look so, too: then less is taken for known than is.
_SUBQUERY = re.compile(r"\b(?:scalar-subquery|lateral-subquery|exists|list)#\d+ \[")
_ROW_BY_ROW = {"Project", "Filter", "SubqueryAlias", "EventTimeWatermark"}
_AT_MOST_ONCE = {
    *_ROW_BY_ROW,
    *("Sort", "Deduplicate", "GlobalLimit", "LocalLimit", "Offset", "View", "ResolvedHint"),
    *("Repartition", "RepartitionByExpression", "RebalancePartitions", "UnresolvedHint"),
}
_RECORD = ("topic", "partition", "offset")
_BRANCH = re.compile(r"^[:\s]*(?:[+:]- )?[~'!*]*")
_AS_LOADED = re.compile(
    r"Project \[(?:\w+#\d+L?(?:, )?)*\]$|SubqueryAlias \w+$|EventTimeWatermark \S+, \w+#\d+L?:? "
)


def keeps_columns_of_kafka(df: DataFrame) -> bool:
    """Tell whether a frame is a read of Kafka topics, with each record at most once.

    Its columns `topic`, `partition` and `offset` must be those that Kafka gives: an expression may
    have taken their names.
    """
    lines = analysed(explain(df))
    found = leaves(lines)
    if len(found) != 1 or not _KAFKA.search(_bare(found[0])):
        return False
    own = {name for name in operators(df) if "Relation" not in name}
    numbers = column_numbers(lines)
    if not own <= _ROW_BY_ROW or numbers is None:
        return False
    if "Project" not in own:
        numbers = numbers[: len(df.columns)]  # behind its own columns a stream names others
    if len(numbers) != len(df.columns):
        return False
    by_name = dict(zip(df.columns, numbers, strict=True))
    return all(
        name in by_name and re.search(rf"\b{name}#{by_name[name]}(?!\d)", found[0])
        for name in _RECORD
    )


def is_as_loaded(df: DataFrame) -> bool:
    """Tell whether a frame has all rows that it is read from, with no value changed."""
    lines = analysed(explain(df))
    steps = [_BRANCH.sub("", line) for line in lines[:-1]]
    return len(leaves(lines)) == 1 and all(map(_AS_LOADED.match, steps))


def keeps_rows_single(df: DataFrame) -> bool:
    """Tell whether each row that a frame is read from is in it once at most.

    Behind an `explode` or a join a row's place in its file is still known, and no longer its own.
    """
    return _reads_one(df, _AT_MOST_ONCE)


def is_row_by_row(df: DataFrame) -> bool:
    """Tell whether a frame reads one thing, and makes of each row of it one row or none.

    Without some of what it reads, such a frame has the same rows but those made of that.
    """
    return _reads_one(df, _ROW_BY_ROW)


def is_fixed(df: DataFrame) -> bool:
    """Tell whether the rows that a frame is made from stand in its plan itself.

    An RDD is computed anew each time, from whatever lies behind it.
    """
    found = leaves(analysed(explain(df)))
    return bool(found) and all(_IN_PLAN.match(_bare(text)) for text in found)


def origins_of(df: DataFrame) -> Origins:
    """Say where the rows of a table come from.

    What a subquery in an expression reads is not among the files that Spark names for a frame.
    """
    lines = analysed(explain(df))
    found = [_bare(text) for text in leaves(lines)]
    files = [bool(_FILES.match(text)) for text in found]
    known = [
        of_files or bool(_MEMORY.match(text)) for of_files, text in zip(files, found, strict=True)
    ]
    if not found or not all(known):
        return "unknown"
    named = all(files) and not any(map(_SUBQUERY.search, lines))
    return "files" if named else "mixed" if any(files) else "memory"


def _reads_one(df: DataFrame, steps: Collection[str]) -> bool:
    """Tell whether a frame is made from one thing that is read, by nothing but some steps."""
    own = {name for name in operators(df) if "Relation" not in name}
    return len(leaves(analysed(explain(df)))) == 1 and own <= set(steps)


def _bare(text: str) -> str:
    """Take the lists out of a step's text: names of columns and options may hold anything."""
    text = text.lstrip("~'!*")
    while True:
        shorter = _LIST.sub(" ", text)
        if shorter == text:
            return text
        text = shorter
