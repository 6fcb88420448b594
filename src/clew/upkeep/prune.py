"""Take the provenance of old batches out of a store, for good.

First it is decided what may go (`clew.upkeep.retention`), then it goes, in an order that leaves a
correct store wherever the process dies: commits say that a batch is pruned, readers are told, what
was unfolded of several batches is narrowed to those that stay, and files that nothing names any
more are removed last. Whatever was left of an earlier pruning is finished on the way.
"""

from __future__ import annotations

from contextlib import ExitStack
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from clew import show
from clew.model import EdgesCome
from clew.steps import reached
from clew.store import layout
from clew.store.asserted import assertions_of, recorded_streams
from clew.store.commit import now, put_json
from clew.store.inside import refuse_links
from clew.store.lock import alone
from clew.store.narrow import as_ids, ids_of, narrow
from clew.store.pruned import (
    clear_unfolded,
    drop_batches,
    drop_rounds,
    drop_unlisted,
    mark_batch,
    note,
    pruned_batches,
)
from clew.store.records import PRUNED
from clew.store.said import read_round, read_unfolding
from clew.upkeep.retention import By, Hold, cutoff_of, plan
from clew.upkeep.size import human

if TYPE_CHECKING:
    import datetime as dt
    from collections.abc import Iterable
    from pathlib import Path

    import pyarrow as pa

    from clew.store.reader import Snapshot, Store
    from clew.upkeep.retention import Plan

__all__ = ["By", "Pruned", "prune"]


@dataclass(frozen=True, slots=True)
class PrunedQuery:
    """What went of one query.

    Attributes:
        query: The query.
        batches: How many batches were pruned.
        edges: How many edges they had, as far as their commits tell.
        files: How many files were removed.
        bytes: What they took.
        unfoldings: How many unfoldings went or were narrowed.
        rounds: How many rounds of assertions went.
    """

    query: str
    batches: int = 0
    edges: int = 0
    files: int = 0
    bytes: int = 0
    unfoldings: int = 0
    rounds: int = 0

    def to_dict(self) -> dict[str, Any]:
        """Return it as plain data."""
        return {name: getattr(self, name) for name in self.__slots__}


@dataclass(frozen=True, repr=False)
class Pruned:
    """What was pruned, or would be.

    Attributes:
        path: The store.
        before: The moment before which batches are old.
        by: What counts: `commit` or `event`.
        dry_run: Nothing was changed.
        queries: What went, by query.
        kept: Batches that are old and stay, with the reason.
        graphs: Live graphs of these queries: what they have delivered stays in them.
    """

    path: str
    before: dt.datetime
    by: By
    dry_run: bool
    queries: tuple[PrunedQuery, ...] = ()
    kept: tuple[Hold, ...] = ()
    graphs: tuple[str, ...] = ()

    @property
    def batches(self) -> int:
        """How many batches were pruned."""
        return sum(each.batches for each in self.queries)

    @property
    def files(self) -> int:
        """How many files were removed."""
        return sum(each.files for each in self.queries)

    @property
    def bytes(self) -> int:
        """How many bytes were freed."""
        return sum(each.bytes for each in self.queries)

    def to_dict(self) -> dict[str, Any]:
        """Return the outcome as plain data that JSON can hold."""
        return {
            "path": self.path,
            "before": show.plain(self.before),
            "by": self.by,
            "dry_run": self.dry_run,
            "batches": self.batches,
            "files": self.files,
            "bytes": self.bytes,
            "queries": [each.to_dict() for each in self.queries],
            "kept": [each.to_dict() for each in self.kept],
            "graphs": list(self.graphs),
        }

    def lines(self) -> list[show.Line]:
        """Show what went, what stays although it is old, and why."""
        verb = "would be" if self.dry_run else "were" if self.batches != 1 else "was"
        head = f"{show.count(self.batches, 'batch')} {verb} pruned: {human(self.bytes)} in "
        head += f"{show.count(self.files, 'file')}, {self.by} time before {show.iso(self.before)}"
        lines = [show.Line("headline", head)]
        header = ["query", "batches", "edges", "files", "bytes", "unfoldings", "rounds"]
        cells = [
            [q.query, *(f"{n:,}" for n in (q.batches, q.edges, q.files)), human(q.bytes)]
            + [f"{n:,}" for n in (q.unfoldings, q.rounds)]
            for q in self.queries
        ]
        lines += show.table(header, cells) if cells else []
        lines += [show.Line("note", f"kept: {show.escape(str(each))}") for each in self.kept]
        for graph in self.graphs:
            text = f"kept: what the live graph {graph} has delivered, with the content of its rows"
            lines.append(show.Line("note", show.escape(text)))
        return lines

    def __repr__(self) -> str:
        return show.join(self.lines())


def prune(
    store: Store,
    older_than: str | dt.timedelta | dt.datetime,
    *,
    by: By,
    streams: str | Iterable[str] | None,
    dry_run: bool,
) -> Pruned:
    """Prune a store; see `Provenance.prune`."""
    before = cutoff_of(older_than)
    planned = plan(store.snapshot(), before, by, streams)
    if dry_run:
        foreseen = [PrunedQuery(*each) for each in planned.foreseen()]
        return _outcome(planned, foreseen, before, by, dry_run=True)
    refuse_links(store.root)
    at = now()
    with ExitStack() as locks:
        locks.enter_context(alone(store.root))
        for writer in planned.writers:
            for folder in _locked(store.snapshot(), writer):
                locks.enter_context(alone(folder))
        # What was unfolded while we waited is known only now.
        planned = plan(store.snapshot(), before, by, streams)
        done = _carry_out(store, planned, at)
        outcome = _outcome(planned, done, before, by, dry_run=False)
        if outcome.queries:
            said = outcome.to_dict()
            note(store.root, {"at": at, **{k: said[k] for k in ("before", "by", "queries")}})
    return outcome


def _outcome(
    planned: Plan, done: list[PrunedQuery], before: dt.datetime, by: By, *, dry_run: bool
) -> Pruned:
    queries = tuple(each for each in done if each.batches or each.files)
    graphs = planned.graphs if queries else ()
    return Pruned(str(planned.root), before, by, dry_run, queries, planned.holds, graphs)


def _locked(snapshot: Snapshot, writer: str) -> list[Path]:
    """Name the folders whose locks keep others from computing what is about to go."""
    record = snapshot.streams.get(writer)
    asserted = layout.asserted_folder(snapshot.root, writer)
    unfolded = layout.unfolded_folder(snapshot.root, writer)
    come = None if record is None else record.edges_come
    come_later = come is not None and come is not EdgesCome.WITH_THE_BATCH
    folders = [unfolded] if unfolded.is_dir() or come_later else []
    return [*folders, asserted] if asserted.is_dir() else folders


def _carry_out(store: Store, planned: Plan, at: str) -> list[PrunedQuery]:
    root = store.root
    marked = {writer: _mark(root, writer, planned, at) for writer in planned.writers}
    gone = {writer: pruned_batches(root, writer) for writer in planned.writers}
    writers = [writer for writer in planned.writers if gone[writer]]
    if not writers:
        return []
    note(root)
    reached("pruning noted", 0)
    rounds = {writer: _mark_rounds(root, writer, gone[writer], at) for writer in writers}
    snapshot = store.snapshot()
    narrowed = {writer: _narrow(snapshot, writer, gone[writer]) for writer in writers}
    note(root)
    reached("pruning noted", 1)
    done = []
    for writer in writers:
        files, size = _sweep(root, writer, gone[writer])
        done.append(
            PrunedQuery(writer, *marked[writer], files, size, narrowed[writer], rounds[writer])
        )
    return done


def _mark(root: Path, writer: str, planned: Plan, at: str) -> tuple[int, int]:
    """Mark batches as pruned; return how many, and how many edges they had."""
    old = [each for each in planned.old if each.writer == writer]
    gone = [each for each in old if mark_batch(root, writer, each.run, each.number, at)]
    return len(gone), sum(each.edges or 0 for each in gone)


def _narrow(snapshot: Snapshot, writer: str, gone: set[tuple[str, int]]) -> int:
    """Take what is pruned out of unfoldings; return how many were changed."""
    root, changed = snapshot.root, 0
    for path in sorted(layout.unfolded_folder(root, writer).glob("*.json")):
        said = read_unfolding(path)
        ours = {n for run, n in gone if run == said["run"] and said["first"] <= n <= said["last"]}
        if ours <= set(said.get("pruned", ())):
            continue
        kept = _kept(snapshot, writer, said)
        if kept is None:
            continue
        if kept.num_rows:
            narrow(root, path, said, ours, kept)
        else:
            path.unlink()
        changed += 1
        reached("unfolding pruned", said["first"])
    return changed


def _kept(snapshot: Snapshot, writer: str, said: dict[str, Any]) -> pa.Table | None:
    """Name the results of an unfolding that stay; None if it cannot be told which do."""
    batches = [
        each
        for each in snapshot.batches.get(writer, ())
        if each.run == said["run"]
        and said["first"] <= each.number <= said["last"]
        and each.gap is None
        and each.sink_rows != 0
    ]
    files = [snapshot.root / f for each in batches for f in each.row_files.get(writer, ())]
    if files or not batches:
        return ids_of(writer, files)
    streams = recorded_streams(snapshot.root)
    return _recorded_ids(snapshot, writer) if writer in streams else None


def _recorded_ids(snapshot: Snapshot, writer: str) -> pa.Table:
    """Read the ids of results that were recorded, where the results themselves are not kept."""
    from clew.store.engine import Engine

    found = assertions_of(snapshot.root, recorded_streams(snapshot.root), writer)
    engine = Engine(snapshot.root)
    try:
        with engine.session() as session:
            return as_ids(writer, session.table(f"SELECT a, b FROM {found.sql}", found.params))
    finally:
        engine.close()


def _mark_rounds(root: Path, writer: str, gone: set[tuple[str, int]], at: str) -> int:
    """Take the files of rounds of which no batch is left out of their commits; say how many."""
    there = _committed(root, writer) - gone
    count = 0
    for path in sorted(layout.asserted_folder(root, writer).glob("*.json")):
        said = read_round(path)
        if said.get("pruned") or _any_in(said, there) or not _any_in(said, gone):
            continue
        streams = {
            name: {"rows": each["rows"], "files": [], "copies": []}
            for name, each in said["streams"].items()
        }
        put_json(path, {**said, "streams": streams, "pruned": f"{PRUNED}{at[:10]}"})
        reached("round pruned", said["first"])
        count += 1
    return count


def _any_in(said: dict[str, Any], batches: set[tuple[str, int]]) -> bool:
    """Tell whether one of some batches is among those of a round."""
    return any(run == said["run"] and said["first"] <= n <= said["last"] for run, n in batches)


def _committed(root: Path, writer: str) -> set[tuple[str, int]]:
    stems = (path.stem for path in layout.batches_folder(root, writer).glob("*.json"))
    return {key for key in map(layout.parse_batch_folder, stems) if key is not None}


def _sweep(root: Path, writer: str, gone: set[tuple[str, int]]) -> tuple[int, int]:
    """Remove the files that nothing names any more; return how many, and their size."""
    names = {layout.batch_folder(*key) for key in gone}
    rounds = {
        path.stem
        for path in layout.asserted_folder(root, writer).glob("*.json")
        if read_round(path).get("pruned")
    }
    found = [
        drop_batches(root, writer, names),
        drop_unlisted(root, writer),
        drop_rounds(root, writer, rounds),
    ]
    if layout.unfolded_folder(root, writer).is_dir():
        found.append(clear_unfolded(root, writer))
    return sum(files for files, _ in found), sum(size for _, size in found)
