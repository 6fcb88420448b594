"""Hashtags: count them in a text, then sum the counts by category; two jobs that publish events.

The first job is MapReduce: a map execution reads one line and generates a pair for each hashtag in
it, a reduce execution reads all pairs of a hashtag and generates its count. The second reads those
counts and generates one sum for each category. Every execution says so with an emitter.

What is real: the text, Python's own language reference as it ships with Python
(`pydoc_data.topics`, some 6,000 lines), or any file of lines. What is made: a hashtag is any word
of five letters or more, as if it had a `#`, and the categories are a small table below.

Start at `tweets` for the lines, at `count_hashtags` and `sum_by_category` for the jobs, at
`expected_edges` for what their provenance must come to, and at `tests/domains/events.py` for
streams of any size.
"""

from __future__ import annotations

import re
from collections import defaultdict
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import os
    from collections.abc import Iterable, Iterator, Mapping

    import pandas as pd
    from pyspark.sql import DataFrame

    from clew.prov import Emitter

COUNT = "hashtags"
"""The job that counts hashtags."""

SUM = "sum-by-category"
"""The job that sums counts by category."""

OTHER = "other"
CATEGORIES: dict[str, tuple[str, ...]] = {
    "data": ("string", "integer", "number", "tuple", "dictionary", "sequence", "mapping", "bytes"),
    "flow": ("statement", "return", "raise", "except", "clause", "exception", "block", "suite"),
    "names": ("module", "import", "namespace", "variable", "global", "package", "scope"),
    "objects": ("class", "object", "instance", "attribute", "method", "inheritance", "metaclass"),
}
"""The hashtags of each category; all others belong to `OTHER`."""

_HASHTAG = re.compile(r"[a-z]{5,}")
_OF = {word: category for category, words in CATEGORIES.items() for word in words}


def tweets(limit: int | None = None, path: str | os.PathLike[str] | None = None) -> list[str]:
    """Return real lines of text that have at least four words.

    Args:
        limit: At most so many.
        path: A file with lines; Python's language reference if left out.
    """
    lines = _python_reference() if path is None else _lines_of(Path(path))
    found: list[str] = []
    for line in lines:
        if len(line.split()) > 3:
            found.append(line.strip())
        if limit is not None and len(found) == limit:
            break
    return found


def hashtags(text: str) -> list[str]:
    """Return the hashtags of a line, as often as they stand there.

    Examples:
        >>> hashtags("A class is an object; its class is an object too.")
        ['class', 'object', 'class', 'object']
    """
    return _HASHTAG.findall(text.lower())


def category(hashtag: str) -> str:
    """Return the category of a hashtag."""
    return _OF.get(hashtag, OTHER)


# The jobs. Names of entities: `tweet/<line>`, `tag/<hashtag>`, `category/<category>`.


def count_hashtags(
    lines: Iterable[str], emit: Emitter, *, nodes: int = 2, at_once: int = 1
) -> dict[str, int]:
    """Count the hashtags of lines, as MapReduce on some machines, and publish how.

    Args:
        lines: The text.
        emit: Publishes the executions.
        nodes: Lines go to so many machines in turn.
        at_once: How many lines one map execution reads.
    """
    pairs: dict[str, list[str]] = defaultdict(list)
    batch: list[tuple[int, str]] = []
    for number, line in enumerate(lines):
        batch.append((number, line))
        if len(batch) == at_once:
            _map(batch, pairs, emit, nodes)
            batch = []
    if batch:
        _map(batch, pairs, emit, nodes)
    for hashtag, found in pairs.items():
        node = f"worker-{sum(hashtag.encode()) % nodes}"
        with emit.execution("reduce", key=hashtag, node=node) as run:
            run.used(*found)
            run.generated(f"tag/{hashtag}")
    return {hashtag: len(found) for hashtag, found in pairs.items()}


def _map(
    batch: list[tuple[int, str]], pairs: dict[str, list[str]], emit: Emitter, nodes: int
) -> None:
    """Run one map execution: a pair `<hashtag, 1>` for each hashtag of its lines."""
    first = batch[0][0]
    with emit.execution("map", key=str(first), node=f"worker-{first % nodes}") as run:
        for number, line in batch:
            run.used(f"tweet/{number}")
            for place, hashtag in enumerate(hashtags(line)):
                pair = f"{COUNT}:pair/{number}-{place}"
                run.generated(pair)
                pairs[hashtag].append(pair)


def sum_by_category(counts: Mapping[str, int], emit: Emitter) -> dict[str, int]:
    """Sum counts of hashtags by category, and publish how."""
    members: dict[str, list[str]] = defaultdict(list)
    for hashtag in counts:
        with emit.execution("map", key=hashtag) as run:
            run.used(f"tag/{hashtag}")
            run.generated(f"{SUM}:pair/{hashtag}")
        members[category(hashtag)].append(hashtag)
    for name, found in members.items():
        with emit.execution("reduce", key=name) as run:
            run.used(*(f"{SUM}:pair/{hashtag}" for hashtag in found))
            run.generated(f"category/{name}")
    return {name: sum(counts[each] for each in found) for name, found in members.items()}


def sum_by_category_on_spark(counts: DataFrame, emit: Emitter) -> DataFrame:
    """Do the same as a Spark job, whose functions publish from the executors.

    Args:
        counts: Columns `hashtag` and `count`.
        emit: Is sent to the executors.

    Returns:
        Columns `category` and `count`.
    """

    def assign(parts: Iterator[pd.DataFrame]) -> Iterator[pd.DataFrame]:
        with emit:
            for part in parts:
                for hashtag in part["hashtag"]:
                    with emit.execution("map", key=hashtag) as run:
                        run.used(f"tag/{hashtag}")
                        run.generated(f"{SUM}:pair/{hashtag}")
                # Workers take this function by its value, but find no module beside the script.
                yield part.assign(category=[_OF.get(each, OTHER) for each in part["hashtag"]])

    def add(group: pd.DataFrame) -> pd.DataFrame:
        name = group["category"].iloc[0]
        with emit.execution("reduce", key=name) as run:
            run.used(*(f"{SUM}:pair/{hashtag}" for hashtag in group["hashtag"]))
            run.generated(f"category/{name}")
        return group.groupby("category", as_index=False)["count"].sum()

    assigned = counts.mapInPandas(assign, "hashtag string, `count` long, category string")
    return assigned.groupBy("category").applyInPandas(add, "category string, `count` long")


# What must come out.


def expected_edges(lines: Iterable[str]) -> dict[str, set[tuple[str, str]]]:
    """Return the reduced edges of each job as pairs of output and input, from the text alone."""
    counted = {
        (f"tag/{hashtag}", f"tweet/{number}")
        for number, line in enumerate(lines)
        for hashtag in hashtags(line)
    }
    found = {tag.removeprefix("tag/") for tag, _ in counted}
    return {COUNT: counted, SUM: {(f"category/{category(each)}", f"tag/{each}") for each in found}}


def _python_reference() -> Iterator[str]:
    from pydoc_data.topics import topics

    for name in sorted(topics):
        yield from topics[name].splitlines()


def _lines_of(path: Path) -> Iterator[str]:
    with path.open(encoding="utf-8", errors="replace") as file:
        yield from file
