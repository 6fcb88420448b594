"""A store: its format, its committed files, what was left behind, what is missing, who writes."""

from __future__ import annotations

import datetime as dt
import fcntl
import os
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.parquet as pq

from clew import show
from clew.doctor.findings import Finding
from clew.exceptions import StoreError
from clew.model import GapKind
from clew.store import layout
from clew.store.asserted import rounds_of
from clew.store.pruned import pruned_batches
from clew.store.reader import Store
from clew.upkeep.size import human, measure

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from clew.doctor.findings import State
    from clew.store.reader import Snapshot
    from clew.store.records import Batch, Gap

_SHOWN = 5
_RESTORE = "Restore it from a backup; else answers that need it fail, and name the file."


def look(path: str | os.PathLike[str]) -> list[Finding]:
    """Check a store."""
    try:
        store = Store(path)
        snapshot = store.snapshot()
    except StoreError as error:
        what, _, todo = str(error).partition("\n\n")
        return [Finding("store", "problem", what, todo.split("\n", maxsplit=1)[0])]
    findings = [_opened(store, snapshot), _committed(snapshot)]
    findings += [*_leftovers(snapshot), *_gaps(snapshot), *_writers(snapshot), *_busy(snapshot)]
    return findings


def _opened(store: Store, snapshot: Snapshot) -> Finding:
    batches = sum(map(len, snapshot.batches.values()))
    text = f"format {store.header['format']}, {show.count(len(snapshot.streams), 'stream')}, "
    text += f"{show.count(batches, 'batch')} in {store.root}"
    if not os.access(store.root, os.W_OK):
        todo = "Asking works. Queries, `clew unfold`, `clew live` and `clew prune` need to write."
        return Finding("store", "warning", f"{text}; read only", todo)
    return Finding("store", "ok", text)


def _committed(snapshot: Snapshot) -> Finding:
    """Open the footer of every file that a commit names, and compare what both say."""
    wrong: list[str] = []
    count = 0
    for writer in snapshot.batches:
        for batch in snapshot.parts(writer):
            count += len(_files(batch))
            wrong += _check_batch(snapshot, batch)
    rounds = [f for writer in snapshot.batches for f in _recorded(snapshot.root, writer)]
    wrong += [why for f in rounds if (why := _footer(snapshot.root, f)[1])]
    count += len(rounds)
    if not wrong:
        return Finding("files", "ok", f"{show.count(count, 'committed file')}, all readable")
    more = f"; and {len(wrong) - _SHOWN} more" if len(wrong) > _SHOWN else ""
    text = f"{len(wrong)} of {show.count(count, 'committed file')}: "
    return Finding("files", "problem", text + "; ".join(wrong[:_SHOWN]) + more, _RESTORE)


def _check_batch(snapshot: Snapshot, batch: Batch) -> Iterator[str]:
    own = 0
    whole = True
    for file in _files(batch):
        rows, why = _footer(snapshot.root, file)
        if why:
            whole = False
            yield why
        if file in batch.row_files.get(batch.writer, ()):
            own += rows
    is_batch = batch in snapshot.batches.get(batch.writer, ())
    if whole and is_batch and batch.gap is None and batch.row_files and batch.sink_rows != own:
        said = show.count(batch.sink_rows or 0, "row")
        name = layout.batch_folder(batch.run, batch.number)
        yield f"batch {name} of {batch.writer} has {own:,} and not {said}"


def _footer(root: Path, file: str) -> tuple[int, str]:
    """Count the rows of a file by its footer, or say what is wrong with it."""
    path = root / file
    try:
        return int(pq.read_metadata(path).num_rows), ""
    except FileNotFoundError:
        return 0, f"{file} is gone"
    except (OSError, pa.ArrowInvalid):
        size = path.stat().st_size if path.exists() else 0
        return 0, f"{file} ({human(size)}) is no whole Parquet file"


def _recorded(root: Path, writer: str) -> Iterator[str]:
    for each in rounds_of(root, writer):
        for kept in each.streams.values():
            yield from kept["files"]
            yield from (copy["file"] for copy in kept["copies"])


def _leftovers(snapshot: Snapshot) -> Iterator[Finding]:
    half = {
        writer: names
        for writer in snapshot.batches
        if (names := _half_pruned(snapshot.root, writer))
    }
    if half:
        text = f"files of {show.count(sum(map(len, half.values())), 'pruned batch')} are still here"
        yield Finding("pruning", "warning", text, "Run `clew prune` again: it finishes the work.")
    left = {w: a for (w, kind), a in measure(snapshot).parts.items() if kind == "leftovers"}
    left = {writer: amount for writer, amount in left.items() if writer not in half}
    if left:
        files, size = sum(a.files for a in left.values()), sum(a.bytes for a in left.values())
        queries = ", ".join(str(each) for each in left)
        text = f"{show.count(files, 'file')} ({human(size)}) of {queries} that no commit names"
        todo = "A batch that is being written, or one that died: the query's next run replaces it."
        yield Finding("leftovers", "warning", text, todo)


def _half_pruned(root: Path, writer: str) -> list[str]:
    names = [layout.batch_folder(*key) for key in pruned_batches(root, writer)]
    kinds = [root / kind / layout.quote_name(writer) for kind in (layout.EDGES, layout.ROWS)]
    return [name for name in names if any((kind / name).is_dir() for kind in kinds)]


def _gaps(snapshot: Snapshot) -> Iterator[Finding]:
    gaps = [gap for writer in snapshot.batches for gap in snapshot.gaps(writer)]
    for gap in gaps[:_SHOWN]:
        if gap.is_pruned:
            yield Finding("gap", "ok", str(gap))
        else:
            state: State = "ok" if gap.kind is GapKind.WHEN_ASKED else "warning"
            yield Finding("gap", state, str(gap), _todo(snapshot, gap))
    if len(gaps) > _SHOWN:
        text = f"{len(gaps) - _SHOWN} more"
        yield Finding("gap", "warning", text, f"clew streams {snapshot.root}")


def _todo(snapshot: Snapshot, gap: Gap) -> str:
    if gap.kind.is_pending:
        return f"clew unfold {snapshot.root} {gap.writer}"
    if gap.kind is GapKind.NOT_COMMITTED:
        return "A file in `batches/` was lost, or the store could not be written: answers say so."
    return "Mend the cause; answers name the gap. `frame.recover(...)` can compute it again."


def _writers(snapshot: Snapshot) -> Iterator[Finding]:
    """Say when each query committed last, and whether its checkpoint is still there."""
    now = dt.datetime.now(dt.timezone.utc)
    for writer, batches in snapshot.batches.items():
        if not batches:
            continue
        last = batches[-1]
        at = dt.datetime.fromisoformat(last.committed.replace("Z", "+00:00"))
        text = f"batch {last.number} of run {last.run} committed {ago(now - at)} ago"
        record = snapshot.streams[writer]
        checkpoint = record.checkpoints.get(last.run)
        gone = checkpoint is not None and "/" in checkpoint and _is_gone(checkpoint)
        if gone:
            todo = "A restart begins anew; edges that are not computed yet cannot be any more."
            yield Finding(f"query {writer}", "warning", f"{text}; {checkpoint} is gone", todo)
        else:
            yield Finding(f"query {writer}", "ok", text)


def _is_gone(checkpoint: str) -> bool:
    if "://" in checkpoint.removeprefix("file://"):
        return False  # on another file system, which is Spark's to read
    return not Path(checkpoint.removeprefix("file://").removeprefix("file:")).exists()


def _busy(snapshot: Snapshot) -> Iterator[Finding]:
    """Name the locks that another process holds at this moment."""
    locks = [*snapshot.root.glob("*/*/.lock"), *snapshot.root.glob(".lock")]
    held = [each.parent.relative_to(snapshot.root).as_posix() for each in locks if _is_held(each)]
    if held:
        text = "at work now: " + ", ".join("pruning" if h == "." else h for h in sorted(held))
        yield Finding("processes", "ok", text)


def _is_held(lock: Path) -> bool:
    try:
        with lock.open("r") as file:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    except OSError:
        return False
    return False


def _files(batch: Batch) -> list[str]:
    rows: Iterable[tuple[str, ...]] = batch.row_files.values()
    return [*batch.edge_files, *(file for files in rows for file in files)]


def ago(age: dt.timedelta) -> str:
    """Write an age in its largest unit.

    Examples:
        >>> ago(dt.timedelta(seconds=90)), ago(dt.timedelta(days=3))
        ('1 min', '3 days')
    """
    seconds = max(0, int(age.total_seconds()))
    for size, name in ((86400, "day"), (3600, "h"), (60, "min")):
        if seconds >= size:
            count = seconds // size
            return f"{count} day{'' if count == 1 else 's'}" if name == "day" else f"{count} {name}"
    return f"{seconds} s"
