"""Which batches of a store are old, and which of these have to stay.

A batch is old by the time of its commit, or by the event time of the latest of its results. Old
batches stay where something still needs them: the last batch of a stream, which a restart begins
at, and batches that a live graph has not taken in yet. Batches without results hold nothing, so
they are left as they are, and are no gap.
"""

from __future__ import annotations

import datetime as dt
from collections import defaultdict
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, get_args

import pyarrow as pa
import pyarrow.parquet as pq

from clew.exceptions import QueryError, UnknownStreamError
from clew.live.deliver import last_state
from clew.live.elements import LIVE
from clew.live.graph_state import read_definition
from clew.plan.duration import micros
from clew.store.layout import unquote_name

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from pathlib import Path

    from clew.live.graph_state import Definition, State
    from clew.store.reader import Snapshot
    from clew.store.records import Batch

By = Literal["commit", "event"]

LAST = "the last batch of a stream stays, since a restart begins there"
UNTIMED = "its results have no event time"


@dataclass(frozen=True, slots=True)
class Hold:
    """Batches that are old and stay.

    Attributes:
        query: The query.
        batches: How many.
        why: Why they stay.
    """

    query: str
    batches: int
    why: str

    def __str__(self) -> str:
        word = "batch" if self.batches == 1 else "batches"
        return f"{self.batches:,} old {word} of {self.query}: {self.why}"

    def to_dict(self) -> dict[str, Any]:
        """Return it as plain data."""
        return {"query": self.query, "batches": self.batches, "why": self.why}


@dataclass(frozen=True, slots=True)
class Plan:
    """What may go.

    Attributes:
        root: The store.
        writers: The queries that are looked at.
        old: The batches that may go.
        holds: The old batches that stay.
        graphs: Live graphs with results of these queries.
    """

    root: Path
    writers: tuple[str, ...]
    old: tuple[Batch, ...]
    holds: tuple[Hold, ...]
    graphs: tuple[str, ...]

    def foreseen(self) -> Iterator[tuple[str, int, int, int, int]]:
        """Say, for each query, how many batches, edges, files and bytes would go."""
        for writer in self.writers:
            old = [each for each in self.old if each.writer == writer]
            files = [f for each in old for f in _files(each)]
            sizes = [(self.root / f).stat().st_size for f in files if (self.root / f).exists()]
            yield writer, len(old), sum(each.edges or 0 for each in old), len(sizes), sum(sizes)


def cutoff_of(older_than: str | dt.timedelta | dt.datetime) -> dt.datetime:
    """Return the moment before which batches are old.

    Raises:
        QueryError: It is neither a length of time nor a moment.
    """
    if isinstance(older_than, dt.datetime):
        zoned = older_than if older_than.tzinfo else older_than.replace(tzinfo=dt.timezone.utc)
        return zoned.astimezone(dt.timezone.utc)
    length = older_than
    if isinstance(length, str):
        found = micros(length)
        if found is None:
            return _moment(length)
        length = dt.timedelta(microseconds=found)
    if length < dt.timedelta():
        msg = f'an age is not negative; got {older_than!r}.\n\nWrite `older_than="30 days"`.'
        raise QueryError(msg)
    return dt.datetime.now(dt.timezone.utc) - length


def _moment(text: str) -> dt.datetime:
    try:
        found = dt.datetime.fromisoformat(text.replace("Z", "+00:00"))
    except ValueError as error:
        msg = (
            f"it is not clear how old `{text}` is.\n\nWrite a length of time in microseconds to "
            'weeks, such as "30 days" or "12 hours" (months and years have no fixed length), or a '
            'moment in UTC, such as "2026-01-01 12:00:00".'
        )
        raise QueryError(msg) from error
    return found if found.tzinfo else found.replace(tzinfo=dt.timezone.utc)


def plan(
    snapshot: Snapshot, before: dt.datetime, by: By, streams: str | Iterable[str] | None
) -> Plan:
    """Decide what may go.

    Raises:
        UnknownStreamError: The store has no such stream.
        QueryError: A stream is filled by no query, or `by` is something else.
    """
    if by not in get_args(By):
        msg = f'`by` is "commit" or "event"; got {by!r}.'
        raise QueryError(msg)
    writers = _writers(snapshot, streams)
    graphs = dict(_graphs(snapshot.root))
    old: list[Batch] = []
    holds: dict[tuple[str, str], int] = defaultdict(int)
    for writer in writers:
        last = _last_of_stream(snapshot, writer)
        for batch in snapshot.batches.get(writer, ()):
            if batch.gap is not None or not _holds_something(batch):
                continue
            age = _age(snapshot, batch, before, by)
            if age is None:
                continue
            why = age or (LAST if batch is last else _awaited(snapshot, graphs, batch))
            if why:
                holds[writer, why] += 1
            else:
                old.append(batch)
    members = {
        name
        for name, (definition, _) in graphs.items()
        if set(definition.members(snapshot)) & set(writers)
    }
    kept = tuple(Hold(writer, count, why) for (writer, why), count in holds.items())
    return Plan(snapshot.root, writers, tuple(old), kept, tuple(sorted(members)))


def _writers(snapshot: Snapshot, streams: str | Iterable[str] | None) -> tuple[str, ...]:
    if streams is None:
        return tuple(snapshot.batches)
    names = [streams] if isinstance(streams, str) else list(streams)
    for name in names:
        if name not in snapshot.streams:
            raise UnknownStreamError(name, tuple(snapshot.streams))
        writer = snapshot.writer(name)
        if writer != name:
            queries = sorted(snapshot.readers(name)) if writer is None else [writer]
            listed = ", ".join(f"`{each}`" for each in queries) or "none"
            msg = (
                f"`{name}` is filled by no query of its own, and what goes are batches of queries."
                f"\n\nName the queries that hold its rows: {listed}."
            )
            raise QueryError(msg)
    return tuple(each for each in snapshot.batches if each in names)


def _last_of_stream(snapshot: Snapshot, writer: str) -> Batch | None:
    """Return the last batch of a query, unless it was a batch query, which never goes on."""
    batches = snapshot.batches.get(writer, ())
    if not batches:
        return None
    run = batches[-1].run
    record = snapshot.streams.get(writer)
    runs = record.checkpoints if record is not None else {}
    if run in runs and runs[run] is None:
        return None
    return max((each for each in batches if each.run == run), key=lambda each: each.number)


def _holds_something(batch: Batch) -> bool:
    return bool(batch.edge_files or batch.row_files) or batch.sink_rows != 0


def _age(snapshot: Snapshot, batch: Batch, before: dt.datetime, by: By) -> str | None:
    """Tell whether a batch is old: None if it is not, else why it stays, which may be nothing."""
    if by == "commit":
        return "" if _parse(batch.committed) < before else None
    files = [snapshot.root / f for f in batch.row_files.get(batch.writer, ())]
    latest = [_latest(each) for each in files]
    if not files or None in latest:
        return UNTIMED if _parse(batch.committed) < before else None
    return "" if max(each for each in latest if each is not None) < before else None


def _latest(path: Path) -> dt.datetime | None:
    """Read the latest event time of a file of rows, from its footer if that has it."""
    try:
        meta = pq.read_metadata(path)
        names = [meta.schema.column(i).path for i in range(len(meta.schema))]
        at = names.index("time")
        groups = [meta.row_group(g).column(at).statistics for g in range(meta.num_row_groups)]
        if any(s is None or not s.has_min_max or s.null_count for s in groups):
            return _latest_row(path)
        return max((_utc(s.max) for s in groups), default=None)
    except (OSError, ValueError, pa.ArrowInvalid):
        return None


def _latest_row(path: Path) -> dt.datetime | None:
    import pyarrow.compute as pc

    table = pq.read_table(
        path, columns=["time"], partitioning=None, coerce_int96_timestamp_unit="us"
    )
    times = table["time"]
    return None if times.null_count or not len(times) else _utc(pc.max(times).as_py())


def _utc(value: dt.datetime) -> dt.datetime:
    return value if value.tzinfo else value.replace(tzinfo=dt.timezone.utc)


def _graphs(root: Path) -> Iterator[tuple[str, tuple[Definition, State]]]:
    for folder in sorted((root / LIVE).glob("*")):
        name = unquote_name(folder.name)
        definition = read_definition(root, name)
        if definition is not None:
            yield name, (definition, last_state(root, name))


def _awaited(
    snapshot: Snapshot, graphs: dict[str, tuple[Definition, State]], batch: Batch
) -> str | None:
    """Name the live graph that has not taken a batch in yet, if there is one."""
    for name, (definition, state) in graphs.items():
        taken = state.taken.get(batch.writer, {}).get(batch.run, -1)
        if batch.writer in definition.members(snapshot) and taken < batch.number:
            return (
                f"the live graph {name} has not taken it in; let it, with `clew live PATH --name "
                f"{name}`, or remove its folder `live/{name}`"
            )
    return None


def _files(batch: Batch) -> Iterator[str]:
    yield from batch.edge_files
    for files in batch.row_files.values():
        yield from files


def _parse(text: str) -> dt.datetime:
    return _utc(dt.datetime.fromisoformat(text.replace("Z", "+00:00")))
