"""What was recorded of the rows of streams, seen without Spark.

A round is there once its file in `asserted/` is there. Rounds hold keys in files of their own and,
of a source in Parquet files, whole copies of these, in which a row's place is its id. A stream that
has the rows of another is not in the rounds at all: it is read as the other one. The sequence
number of a row is not stored, since it follows from what is: rounds in their order, in each rows by
time and id.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from clew.store.engine import as_pattern
from clew.store.layout import (
    ASSERTED,
    asserted_folder,
    parse_unfolding_folder,
    stream_file,
    unquote_name,
)
from clew.store.said import read_described, read_round
from clew.store.schema import quote

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

_KEYS = (
    'SELECT {round} AS "round", a, b, CAST("time" AS TIMESTAMPTZ) AS "time", {delay} AS delay, '
    "{row} AS row FROM read_parquet($files_{round}, hive_partitioning = false)"
)
_COPY = (
    'SELECT {round} AS "round", CAST($a_{round}_{number} AS BIGINT) AS a, '
    'file_row_number AS b, CAST({time} AS TIMESTAMPTZ) AS "time", {delay} AS delay, '
    "{row} AS row FROM read_parquet($copy_{round}_{number}, hive_partitioning = false, "
    "file_row_number = true)"
)


@dataclass(frozen=True, slots=True)
class RecordedStream:
    """A stream whose rows are recorded, as its query's description has it.

    Attributes:
        name: The stream.
        writer: The query.
        node: The step that makes it, by its number in the query's graph.
        time: The column that says when its rows were.
        same_as: The stream whose rows these are.
        is_first: It is a source.
        has_content: The rows themselves are recorded as well.
        columns: The columns of a source.
    """

    name: str
    writer: str
    node: int
    time: str | None
    same_as: str | None
    is_first: bool
    has_content: bool
    columns: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Round:
    """What one round recorded, by stream; of one that was pruned, only how many rows it had."""

    run: str
    first: int
    last: int
    streams: Mapping[str, Mapping[str, Any]]
    pruned: str | None = None


def recorded_streams(root: Path) -> dict[str, RecordedStream]:
    """List the recorded streams of a store by name; of a source that several record, the first."""
    found: dict[str, RecordedStream] = {}
    writers = sorted(p.name for p in (root / ASSERTED).glob("*") if p.is_dir())
    for folder in writers:
        said = read_described(stream_file(root, unquote_name(folder))).get("assertions") or {}
        for name, each in said.get("streams", {}).items():
            stream = RecordedStream(
                name=name,
                writer=unquote_name(folder),
                node=each["node"],
                time=each["time"],
                same_as=each["same_as"],
                is_first=each["first"],
                has_content=each["first"] or said["content"] == "all",
                columns=_columns(root, name) if each["first"] else (),
            )
            found.setdefault(name, stream)
    return found


def _columns(root: Path, source: str) -> tuple[str, ...]:
    schema = read_described(stream_file(root, source)).get("schema") or {}
    return tuple(each["name"] for each in schema.get("fields", ()))


def rounds_of(root: Path, writer: str) -> list[Round]:
    """Read the committed rounds of a query, in the order of its batches."""
    found = []
    for path in asserted_folder(root, writer).glob("*.json"):
        if parse_unfolding_folder(path.stem) is None:
            continue
        said = read_round(path)
        numbers = (said["run"], said["first"], said["last"])
        ours = Round(*numbers, said["streams"], said.get("pruned"))
        found.append((said["committed"], ours))
    return [each for _, each in sorted(found, key=lambda pair: (pair[0], pair[1].first))]


@dataclass(frozen=True, slots=True)
class Assertions:
    """The assertions of a stream as a subquery with its parameters.

    Attributes:
        sql: The subquery.
        params: Its parameters.
        rows: How many rows it selects.
        pruned: How many rows were recorded before, and pruned.
    """

    sql: str
    params: Mapping[str, Any]
    rows: int
    pruned: int = 0


def assertions_of(root: Path, streams: Mapping[str, RecordedStream], name: str) -> Assertions:
    """Select the recorded rows of a stream: `seq`, `a`, `b`, `time`, `delay`, `row`, in order.

    Args:
        root: The store.
        streams: The recorded streams.
        name: One of them.
    """
    wanted = streams[name]
    base = wanted
    while base.same_as is not None and not base.has_content:
        base = streams[base.same_as]
    # A step that hands rows on as they are takes no time of its own.
    delay = "delay" if base is wanted else 'CASE WHEN "time" IS NOT NULL THEN 0 END'
    parts: list[str] = []
    params: dict[str, Any] = {}
    rows = pruned = 0
    skipped: dict[int, int] = {}
    for number, each in enumerate(rounds_of(root, base.writer)):
        kept = each.streams.get(base.name)
        if kept is None:
            continue
        if each.pruned is not None:
            pruned += kept["rows"]
            continue
        skipped[number] = pruned
        rows += kept["rows"]
        parts += _files(root, number, kept, base, wanted, delay, params)
        parts += _copies(root, number, kept, base, wanted, params)
    if not parts:
        empty = 'SELECT 0 AS "round", 0::BIGINT AS a, 0::BIGINT AS b, NULL::TIMESTAMPTZ AS "time", '
        parts = [empty + "NULL::BIGINT AS delay, NULL AS row WHERE false"]
    order = 'ORDER BY "round", "time" NULLS LAST, a, b'
    text = " UNION ALL ".join(parts)
    seq = f"row_number() OVER ({order}){_after(skipped)}"
    return Assertions(
        f'(SELECT {seq} AS seq, a, b, "time", delay, row FROM ({text}))', params, rows, pruned
    )


def _after(skipped: Mapping[int, int]) -> str:
    """Count the rows of pruned rounds that came before, so that a row keeps its number."""
    if not any(skipped.values()):
        return ""
    cases = " ".join(f"WHEN {number} THEN {rows}" for number, rows in skipped.items())
    return f' + CASE "round" {cases} ELSE 0 END'


def _files(
    root: Path,
    number: int,
    kept: Mapping[str, Any],
    base: RecordedStream,
    wanted: RecordedStream,
    delay: str,
    params: dict[str, Any],
) -> list[str]:
    if not kept["files"]:
        return []
    params[f"files_{number}"] = [as_pattern(f"{root}/{each}") for each in kept["files"]]
    row = '"row"' if base.has_content and wanted.has_content else "NULL"
    return [_KEYS.format(round=number, delay=delay, row=row)]


def _copies(
    root: Path,
    number: int,
    kept: Mapping[str, Any],
    base: RecordedStream,
    wanted: RecordedStream,
    params: dict[str, Any],
) -> list[str]:
    parts = []
    for i, copy in enumerate(kept["copies"]):
        params[f"copy_{number}_{i}"] = as_pattern(f"{root}/{copy['file']}")
        params[f"a_{number}_{i}"] = copy["a"]
        time = quote(base.time) if base.time else "NULL"
        delay = f"CASE WHEN {time} IS NOT NULL THEN 0 END" if base.time else "NULL"
        row = "NULL"
        if wanted.has_content:
            row = f"struct_pack({', '.join(f'{quote(c)} := {quote(c)}' for c in base.columns)})"
        parts.append(_COPY.format(round=number, number=i, time=time, delay=delay, row=row))
    return parts
