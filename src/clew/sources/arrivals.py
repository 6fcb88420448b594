"""Which rows came in which batch of a query, and what the watermark was, from its checkpoint.

Spark writes both before a batch runs: `offsets/N` holds the watermark that batch N closes windows
with and how far it reads each source, and `sources/K/M` the files that a file source found. A batch
drops rows as late by the watermark of the batch before it. A checkpoint may lie on any file system
that Spark knows: what is not on a local disk is read with Spark's own reader.

Spark keeps the offsets of the last hundred batches only. A query that writes provenance puts a copy
into each commit of the store, and those are used where they exist.
"""

from __future__ import annotations

import bisect
import json
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pyspark.errors import AnalysisException
from pyspark.sql import functions as F

from clew.exceptions import ReplayError
from clew.sources.state import FileState, normal_path, state_from
from clew.store.layout import batches_folder, parse_batch_folder
from clew.store.said import damaged, read_commit

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from pyspark.sql import SparkSession


_End = tuple[int, dict[str, Any]]


@dataclass(frozen=True, slots=True)
class Offsets:
    """One batch as Spark planned it: its watermark, how far it read each source, its files.

    A commit also says what the tables held that the batch read, and which topics those were.
    """

    watermark_ms: int
    ends: tuple[str, ...]
    files: Mapping[str, FileState] = field(default_factory=dict)
    tables: Mapping[str, dict[str, Any]] = field(default_factory=dict)
    topics: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Stretch:
    """The offsets that a batch read of a partition: from `first` to before `end`."""

    first: int
    end: int
    batch: int


@dataclass(frozen=True, slots=True)
class Arrivals:
    """When rows came in.

    Attributes:
        batches: Every batch that is known.
        files: The batch that read each file, by normalised path.
        topics: Of each topic and partition, what batches read of it, ascending.
        states: What each file was like when it was read.
    """

    batches: Mapping[int, Offsets]
    files: Mapping[str, int] = field(default_factory=dict)
    topics: Mapping[tuple[str, int], tuple[Stretch, ...]] = field(default_factory=dict)
    states: Mapping[str, FileState] = field(default_factory=dict)

    def between(self, first: int, last: int | None) -> Arrivals:
        """Return what came in from a batch on, up to another if one is given."""

        def is_in(batch: int) -> bool:
            return first <= batch and (last is None or batch <= last)

        files = {path: batch for path, batch in self.files.items() if is_in(batch)}
        topics = {
            key: tuple(each for each in read if is_in(each.batch))
            for key, read in self.topics.items()
        }
        kept = {key: read for key, read in topics.items() if read}
        return Arrivals(self.batches, files, kept, self.states)

    def late_us(self, batch: int) -> int | None:
        """Return the watermark by which a batch judged lateness, in microseconds."""
        if batch == 0:
            return None
        before = self.batches.get(batch - 1)
        if before is None:
            msg = (
                f"the checkpoint no longer holds batch {batch - 1}, so which rows of batch {batch} "
                "were late is not known.\n\nSpark keeps the last "
                "`spark.sql.streaming.minBatchesToRetain` batches; a query that runs with "
                "`.provenance(...)` keeps what is needed in its store."
            )
            raise ReplayError(msg)
        return before.watermark_ms * 1000 if before.watermark_ms > 0 else None


def parse_offsets(text: str) -> Offsets:
    """Read one file of a checkpoint's `offsets`."""
    lines = text.splitlines()
    return Offsets(int(json.loads(lines[1])["batchWatermarkMs"]), tuple(lines[2:]))


def kept_offsets(root: Path, writer: str, run: str) -> dict[int, Offsets]:
    """Read from a store's commits what Spark planned for the batches of a run."""
    kept = {}
    for path in batches_folder(root, writer).glob("*.json"):
        name = parse_batch_folder(path.stem)
        if name is not None and name[0] == run:
            said = read_commit(path)
            if said.get("offsets"):
                states = _states(path, said)
                kept[name[1]] = Offsets(
                    said.get("watermark_ms") or 0,
                    tuple(said["offsets"]),
                    states,
                    _tables(path, said),
                    _topic_ids(path, said),
                )
    return kept


def noted_tables(root: Path, writer: str, run: str) -> dict[int, Mapping[str, dict[str, Any]]]:
    """Read from a store's commits what the tables held that the batches of a run read."""
    found = {}
    for path in batches_folder(root, writer).glob("*.json"):
        name = parse_batch_folder(path.stem)
        if name is not None and name[0] == run:
            found[name[1]] = _tables(path, read_commit(path))
    return found


def _tables(commit: Path, said: dict[str, Any]) -> Mapping[str, dict[str, Any]]:
    tables = (said.get("sources") or {}).get("tables") or {}
    if not isinstance(tables, dict) or not all(isinstance(v, dict) for v in tables.values()):
        raise damaged(commit, "`sources.tables` does not say what tables held")
    return tables


def _states(commit: Path, said: dict[str, Any]) -> dict[str, FileState]:
    try:
        files = (said.get("sources") or {}).get("files") or {}
        return {path: state_from(state) for path, state in files.items()}
    except (TypeError, ValueError, AttributeError) as error:
        raise damaged(commit, f"`sources.files`: {error}") from error


def _topic_ids(commit: Path, said: dict[str, Any]) -> Mapping[str, str]:
    ids = (said.get("sources") or {}).get("topics") or {}
    if not isinstance(ids, dict) or not all(isinstance(each, str) for each in ids.values()):
        raise damaged(commit, "`sources.topics` does not say which topics were read")
    return ids


def read_arrivals(
    spark: SparkSession | None, checkpoint: str, kept: Mapping[int, Offsets] | None = None
) -> Arrivals:
    """Read when rows came in.

    Args:
        spark: The session to read with; a checkpoint on a local disk needs none.
        checkpoint: The query's checkpoint.
        kept: What the store's commits say of batches.

    Raises:
        ReplayError: There is no checkpoint, or it does not say.
    """
    batches = dict(kept or {})
    if not batches and spark is not None:
        batches = _offsets(spark, checkpoint)
    else:
        batches = {**_without_commit(checkpoint, batches), **batches}
    ends: list[list[_End]] = []
    for number, planned in sorted(batches.items()):
        for source, line in enumerate(planned.ends):
            end = _json(line)
            ends += [[] for _ in range(source + 1 - len(ends))]
            if isinstance(end, dict):
                ends[source].append((number, end))
    logs = _logs(spark, checkpoint) if any(ends) else {}
    states = {
        normal_path(entry["path"]): FileState(None, int(entry["timestamp"]))
        for log in logs.values()
        for entry in log
        if "timestamp" in entry and "path" in entry
    }
    for planned in batches.values():
        states.update(planned.files)
    return Arrivals(batches, _files(ends, logs), _topics(ends, logs), states)


def last_committed(spark: SparkSession, checkpoint: str) -> int:
    """Return the last batch that a query finished.

    Raises:
        ReplayError: It finished none.
    """
    try:
        files = spark.read.text(f"{checkpoint}/commits").select("_metadata.file_name").distinct()
        return max(int(row.file_name) for row in files.collect() if row.file_name.isdigit())
    except (AnalysisException, ValueError) as error:
        msg = (
            f"`{checkpoint}` is not the checkpoint of a query that has finished a batch.\n\n"
            "Name the folder given as `checkpointLocation`."
        )
        raise ReplayError(msg) from error


def _offsets(spark: SparkSession, checkpoint: str) -> dict[int, Offsets]:
    here = _local_offsets(checkpoint)
    if here:
        return here
    try:
        texts = (
            spark.read.text(f"{checkpoint}/offsets", wholetext=True)
            .select(F.col("_metadata.file_name").alias("name"), "value")
            .collect()
        )
    except AnalysisException as error:
        msg = (
            f"`{checkpoint}` is not the checkpoint of a query: it has no `offsets`.\n\n"
            "Name the folder given as `checkpointLocation`."
        )
        raise ReplayError(msg) from error
    return {int(row.name): parse_offsets(row.value) for row in texts if row.name.isdigit()}


def _without_commit(checkpoint: str, kept: Mapping[int, Offsets]) -> dict[int, Offsets]:
    """Read of batches whose commits are lost what the checkpoint still has.

    Without it the batch behind would be taken for the one that read their rows, and which rows were
    late would not be known.
    """
    lost = set(range(max(kept, default=-1))) - kept.keys()
    return {n: said for n, said in _local_offsets(checkpoint).items() if n in lost} if lost else {}


def _local_offsets(checkpoint: str) -> dict[int, Offsets]:
    """Read the offsets of a checkpoint on a local disk, which may be that of a running query."""
    found = {}
    for path in Path(checkpoint).glob("offsets/*"):
        if path.name.isdigit():
            # Spark removes old ones at any time.
            with suppress(FileNotFoundError):
                found[int(path.name)] = parse_offsets(path.read_text(encoding="utf-8"))
    return found


def _logs(spark: SparkSession | None, checkpoint: str) -> dict[int, list[dict[str, Any]]]:
    """Read what the sources of a query noted: the files they found, or where topics began."""
    found: dict[int, list[dict[str, Any]]] = {}
    lines = _local_lines(checkpoint)
    if not lines and spark is not None:
        lines = _any_lines(spark, checkpoint)
    for source, line in lines:
        found.setdefault(source, []).append(json.loads(line))
    return found


def _local_lines(checkpoint: str) -> list[tuple[int, str]]:
    """Read the sources' notes of a checkpoint on a local disk, where no job is needed for it."""
    logs = [p for p in Path(checkpoint).glob("sources/*/*") if not p.name.startswith((".", "_"))]
    return [
        (int(path.parent.name), line)
        for path in sorted(logs)
        for line in path.read_text(encoding="utf-8").splitlines()
        if line.startswith("{")
    ]


def _any_lines(spark: SparkSession, checkpoint: str) -> list[tuple[int, str]]:
    place = F.regexp_extract(F.col("_metadata.file_path"), r"/sources/(\d+)/[^/]+$", 1)
    lines = spark.read.text(f"{checkpoint}/sources/*").filter("value like '{%'")
    rows = lines.select(place.cast("int").alias("source"), "value").collect()
    return [(row.source, row.value) for row in rows]


def _files(
    ends: Sequence[Sequence[_End]], logs: Mapping[int, Sequence[Mapping[str, Any]]]
) -> dict[str, int]:
    """Assign each file to the batch that read it."""
    found: dict[str, int] = {}
    # A source that the query reads in two places has one log and several ends, all the same.
    for source, log in logs.items():
        steps = [(int(end["logOffset"]), batch) for batch, end in ends[source] if _of_files(end)]
        offsets = [offset for offset, _ in steps]
        for entry in log if steps else ():
            at = bisect.bisect_left(offsets, int(entry["batchId"]))
            if at == len(steps):
                continue  # listed, but no batch has read it yet
            path, batch = normal_path(entry["path"]), steps[at][1]
            if found.setdefault(path, batch) != batch:
                raise _read_twice(path, found[path], batch)
    return found


def _topics(
    ends: Sequence[Sequence[_End]], logs: Mapping[int, Sequence[Mapping[str, Any]]]
) -> dict[tuple[str, int], tuple[Stretch, ...]]:
    """Note, for each partition of a topic, what each batch read of it."""
    found: dict[tuple[str, int], tuple[Stretch, ...]] = {}
    for source, reached in enumerate(ends):
        # Where the first batch began is in the log; a partition that came later is read whole.
        (noted, *_) = logs.get(source) or [{}]
        begun = dict(_partitions(noted))
        here: dict[tuple[str, int], list[Stretch]] = {}
        for batch, end in reached:
            if _of_files(end):
                continue
            for key, offset in _partitions(end):
                known = here.setdefault(key, [])
                first = known[-1].end if known else begun.get(key, 0)
                if offset > first:
                    known.append(Stretch(first, offset, batch))
        for key, read in here.items():
            if found.setdefault(key, tuple(read)) != tuple(read):
                raise _read_twice(f"{key[0]}-{key[1]}", found[key][0].batch, read[0].batch)
    return found


def _of_files(end: Mapping[str, Any]) -> bool:
    return "logOffset" in end


def topics_of(ends: Sequence[str]) -> set[str]:
    """Name the topics in the offsets of a batch."""
    read = [_json(line) for line in ends]
    return {key[0] for end in read if isinstance(end, dict) for key, _ in _partitions(end)}


def _partitions(offsets: Mapping[str, Any]) -> Iterator[tuple[tuple[str, int], int]]:
    for topic, partitions in offsets.items():
        if isinstance(partitions, dict):
            for partition, offset in partitions.items():
                yield (topic, int(partition)), int(offset)


def _read_twice(what: str, one: int, other: int) -> ReplayError:
    return ReplayError(
        f"`{what}` was read twice by the query, in batches {one} and {other}, so which of its "
        "rows were late cannot be told.\n\nTrace the source once and use the traced frame twice."
    )


def _json(line: str) -> Any:
    try:
        return json.loads(line)
    except ValueError:
        return None
