"""What a store holds, seen without Spark.

A batch is there once its file in `batches/` is there, so a state of the store is a set of such
files and nothing else: `Store.snapshot` lists them, parses the ones it has not seen, and returns an
immutable `Snapshot`. Files of a committed batch change only when they are pruned, which one file
tells; hence a long-lived reader costs one listing per question, and a query that is writing
meanwhile cannot disturb an answer.
"""

from __future__ import annotations

import hashlib
import os
import threading
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING

from clew.store import layout
from clew.store.entity import ENTITIES, is_entity
from clew.store.gaps import find_gaps, find_lost, find_pending, missing_numbers
from clew.store.inside import refuse_links
from clew.store.pruned import signature
from clew.store.records import Batch, Gap, StreamRecord, read_batch, read_stream
from clew.store.said import damaged

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from pathlib import Path

_Key = tuple[str, int]


@dataclass(frozen=True, slots=True)
class Files:
    """Parquet files, oldest batch first, with the batch and the place in the list of each."""

    paths: tuple[str, ...]
    batches: tuple[Batch, ...]
    places: Mapping[str, int]


@dataclass(frozen=True, eq=False)
class Snapshot:
    """The committed batches of a store at one moment.

    Attributes:
        root: The store's folder.
        streams: Every stream, by name.
        batches: The committed batches of each writer, in the order they were committed.
        unfolded: What was unfolded later, of each writer; the number is that of the first batch.
    """

    root: Path
    streams: Mapping[str, StreamRecord]
    batches: Mapping[str, tuple[Batch, ...]]
    unfolded: Mapping[str, tuple[Batch, ...]] = field(default_factory=dict)
    _edges: dict[frozenset[str], Files] = field(default_factory=dict, repr=False)
    _rows: dict[str, Files] = field(default_factory=dict, repr=False)
    _gaps: dict[str, tuple[Gap, ...]] = field(default_factory=dict, repr=False)
    _readers: dict[str, frozenset[str]] = field(default_factory=dict, repr=False)

    def writer(self, stream: str) -> str | None:
        """Return the writer that fills a stream, or None for a source."""
        record = self.streams.get(stream)
        return record.writer if record is not None and record.kind != "source" else None

    def is_named(self, stream: str) -> bool:
        """Say whether the stream is a named frame inside a query."""
        record = self.streams.get(stream)
        return record is not None and record.kind == "named"

    @cached_property
    def digest(self) -> str:
        """A text that tells these streams and commits from any others."""
        digest = hashlib.sha256("\n".join(self.streams).encode())
        for writer in self.batches:
            for each in self.parts(writer):
                line = (
                    f"\n{writer} {each.run} {each.number} {each.last} {each.committed} {each.gap}"
                )
                digest.update(line.encode())
        return digest.hexdigest()

    @cached_property
    def shared(self) -> frozenset[str]:
        """The streams of entities: a row of one is the row with the same id of any other.

        A job's edges lead to the stream `entities`, whichever job generated what it used.
        """
        return frozenset(n for n, each in self.streams.items() if is_entity(each.identity))

    @cached_property
    def jobs(self) -> frozenset[str]:
        """The jobs that generate entities."""
        return self.shared - {ENTITIES}

    def followers(self, stream: str) -> frozenset[str]:
        """Return the writers that may make rows from rows of a stream.

        Beside its readers, those are all jobs that use entities if the stream has some.
        """
        return self.readers(ENTITIES if stream in self.shared else stream)

    def origins(self, stream: str) -> frozenset[str]:
        """Return the streams that rows of a stream may come from directly."""
        if stream == ENTITIES and stream in self.shared:
            return self.jobs
        writer = self.writer(stream)
        return frozenset() if writer is None else self.inputs(writer)

    def readers(self, stream: str) -> frozenset[str]:
        """Return the writers that make rows from rows of a stream.

        What a writer reads is taken from its graph and from its batches: a source that the
        pipeline no longer has may still be in older ones.
        """
        if stream not in self._readers:
            self._readers[stream] = frozenset(
                writer for writer in self.batches if stream in self.inputs(writer)
            )
        return self._readers[stream]

    def inputs(self, writer: str) -> frozenset[str]:
        """Return the streams, sources and named frames, whose rows a writer's rows come from."""
        record = self.streams.get(writer)
        known = set() if record is None else {*record.sources, *record.named}
        stored = {stream for batch in self.parts(writer) for stream in batch.row_files}
        return frozenset(known | (stored - {writer}))

    def parts(self, writer: str) -> tuple[Batch, ...]:
        """Return everything that was committed of a writer, batches and unfoldings."""
        return (*self.batches.get(writer, ()), *self.unfolded.get(writer, ()))

    def edge_files(self, writers: Iterable[str]) -> Files:
        """Return the files with the edges of some writers."""
        key = frozenset(writers)
        if key not in self._edges:
            batches = sorted(
                (each for writer in key for each in self.parts(writer)),
                key=lambda each: each.order,
            )
            self._edges[key] = self._files((each, each.edge_files) for each in batches)
        return self._edges[key]

    def row_files(self, stream: str, among: Iterable[Batch] | None = None) -> Files:
        """Return the files with rows of a stream, of all batches or of some."""
        if among is not None:
            chosen = sorted(among, key=lambda each: each.order)
            return self._files((each, each.row_files.get(stream, ())) for each in chosen)
        if stream not in self._rows:
            everything = (each for writer in self.batches for each in self.parts(writer))
            self._rows[stream] = self.row_files(stream, everything)
        return self._rows[stream]

    def gaps(self, writer: str) -> tuple[Gap, ...]:
        """Return the batches of a writer whose provenance is missing."""
        if writer not in self._gaps:
            committed = self.batches.get(writer, ())
            waiting = find_pending(committed, self.unfolded.get(writer, ()))
            self._gaps[writer] = tuple(sorted((*find_gaps(committed), *waiting)))
        record = self.streams.get(writer)
        runs = {} if record is None else record.checkpoints
        # Not kept: a query may finish a batch without anything new in the store.
        lost = find_lost(self.root, writer, runs, self.batches.get(writer, ()))
        return tuple(sorted((*self._gaps[writer], *lost))) if lost else self._gaps[writer]

    def describe_batches(self, writers: Iterable[str]) -> str:
        """Name the batches that the store holds of some writers, in a few words."""
        parts = []
        for writer in sorted(writers):
            runs: dict[str, list[int]] = {}
            for each in self.batches.get(writer, ()):
                runs.setdefault(each.run, []).append(each.number)
            for run, numbers in runs.items():
                low, high = min(numbers), max(numbers)
                which = f"batch {low}" if low == high else f"batches {low} to {high}"
                parts.append(f"{which} of `{writer}` (run {run})")
        return ", ".join(parts) or "no batch yet"

    def _files(self, found: Iterable[tuple[Batch, tuple[str, ...]]]) -> Files:
        pairs = [(f"{self.root}/{each}", batch) for batch, files in found for each in files]
        paths = tuple(path for path, _ in pairs)
        places = {path: i for i, path in enumerate(paths)}
        return Files(paths, tuple(batch for _, batch in pairs), places)


class Store:
    """A store that is open for reading.

    Raises:
        NotAStoreError: The path holds no store.
        StoreVersionError: The store has another format.
        StoreError: The store cannot be read.
    """

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self.root = layout.store_root(path)
        self.header = layout.check_store(self.root)
        refuse_links(self.root, 2)
        self._lock = threading.Lock()
        self._batches: dict[str, dict[_Key, Batch]] = {}
        self._unfolded: dict[str, dict[str, Batch]] = {}
        self._streams: dict[str, tuple[tuple[int, int, int], StreamRecord]] = {}
        self._snapshot: Snapshot | None = None
        self._pruned: tuple[int, int, int] | None = None

    def snapshot(self) -> Snapshot:
        """Return what is committed now; the same object as long as nothing changes.

        Raises:
            NotAStoreError: The store is gone.
            StoreError: A file cannot be read.
        """
        with self._lock:
            self._refresh_pruned()
            # A stream's file is written before its first batch: looking for batches first means
            # that every stream of a batch we know is found.
            changed = self._refresh_batches()
            changed = self._refresh_unfolded() or changed
            changed = self._refresh_streams() or changed
            if changed or self._snapshot is None:
                self._snapshot = self._build()
            return self._snapshot

    def forget(self) -> None:
        """Read everything anew for the next snapshot, after something was found to be wrong."""
        with self._lock:
            self._forget()

    def _forget(self) -> None:
        self._batches.clear()
        self._unfolded.clear()
        self._streams.clear()
        self._snapshot = None

    def _refresh_pruned(self) -> None:
        """Read every commit anew if some were changed by pruning."""
        found = signature(self.root)
        if found != self._pruned:
            self._pruned = found
            self._forget()

    def _build(self) -> Snapshot:
        streams = {record.name: record for _, record in self._streams.values()}
        batches = {
            writer: tuple(sorted(found.values(), key=lambda each: each.order))
            for writer, found in sorted(self._batches.items())
        }
        unfolded = {
            writer: tuple(sorted(found.values(), key=lambda each: each.order))
            for writer, found in sorted(self._unfolded.items())
            if writer in batches
        }
        for writer in batches:
            streams.setdefault(writer, StreamRecord(writer, "sink", writer))
        mentioned = {name for each in streams.values() for name in each.sources}
        for parts in (batches, unfolded):
            mentioned |= {n for found in parts.values() for each in found for n in each.row_files}
        for name in mentioned:
            streams.setdefault(name, StreamRecord(name, "source"))
        return Snapshot(self.root, dict(sorted(streams.items())), batches, unfolded)

    def _refresh_batches(self) -> bool:
        folders = _list(self.root / layout.BATCHES)
        if folders is None:
            layout.check_store(self.root)
        found = _writers(self.root / layout.BATCHES, folders or ())
        gone = self._batches.keys() - found.keys()
        for writer in gone:
            del self._batches[writer]
        changed = [self._refresh_writer(*each) for each in found.items()]
        return bool(gone) or any(changed)

    def _refresh_writer(self, writer: str, folder: str) -> bool:
        place = self.root / layout.BATCHES / folder
        known = self._batches.setdefault(writer, {})
        keys = _list_batches(place)
        if keys != known.keys() and missing_numbers(keys) != missing_numbers(known):
            # Two batches committed while we listed may show up in the wrong order: by now the
            # earlier one must be there, unless it is really missing.
            keys |= _list_batches(place)
        gone, new = known.keys() - keys, keys - known.keys()
        for key in gone:
            del known[key]
        for run, number in new:
            path = place / f"{layout.batch_folder(run, number)}.json"
            try:
                known[run, number] = read_batch(path, writer, run, number)
            except FileNotFoundError:
                continue  # pruned since we listed
        return bool(gone or new)

    def _refresh_unfolded(self) -> bool:
        folders = _list(self.root / layout.UNFOLDED) or ()
        found = _writers(self.root / layout.UNFOLDED, folders)
        gone = self._unfolded.keys() - found.keys()
        for writer in gone:
            del self._unfolded[writer]
        changed = bool(gone)
        for writer, folder in found.items():
            place = self.root / layout.UNFOLDED / folder
            known = self._unfolded.setdefault(writer, {})
            stems = {e.removesuffix(".json") for e in _list(place) or () if e.endswith(".json")}
            names = {stem for stem in stems if layout.parse_unfolding_folder(stem)}
            changed = changed or names != known.keys()
            for name in known.keys() - names:
                del known[name]
            for name in names - known.keys():
                run, first, _ = layout.parse_unfolding_folder(name) or ("", 0, 0)
                try:
                    known[name] = read_batch(
                        place / f"{name}.json", writer, run, first, is_unfolding=True
                    )
                except FileNotFoundError:
                    continue  # taken away since we listed
        return changed

    def _refresh_streams(self) -> bool:
        place = self.root / layout.STREAMS
        names = [each for each in _list(place) or () if _is_stream_file(each)]
        gone = self._streams.keys() - names
        for name in gone:
            del self._streams[name]
        changed = [self._refresh_stream(place / each) for each in names]
        return bool(gone) or any(changed)

    def _refresh_stream(self, path: Path) -> bool:
        try:
            stat = path.stat()
            signature = (stat.st_mtime_ns, stat.st_size, stat.st_ino)
            if path.name in self._streams and self._streams[path.name][0] == signature:
                return False
            self._streams[path.name] = (signature, read_stream(path))
        except FileNotFoundError:
            return self._streams.pop(path.name, None) is not None
        except OSError as error:
            raise layout.unreadable(path, error) from error
        return True


def _is_stream_file(name: str) -> bool:
    return name.endswith(".json") and not name.startswith((".", "_"))


def _writers(place: Path, folders: Iterable[str]) -> dict[str, str]:
    """Map the names of writers to those of their folders."""
    return {_writer(place, each): each for each in folders}


def _writer(place: Path, folder: str) -> str:
    try:
        return layout.unquote_name(folder)
    except UnicodeDecodeError as error:
        raise damaged(place / folder, "no query has such a name") from error


def _list_batches(place: Path) -> set[_Key]:
    stems = (each.removesuffix(".json") for each in _list(place) or () if each.endswith(".json"))
    return {key for key in map(layout.parse_batch_folder, stems) if key is not None}


def _list(place: Path) -> list[str] | None:
    """List a folder; None if it is not there."""
    try:
        return os.listdir(place)  # noqa: PTH208 (names only, and many of them)
    except (FileNotFoundError, NotADirectoryError):
        return None
    except OSError as error:
        raise layout.unreadable(place, error) from error
