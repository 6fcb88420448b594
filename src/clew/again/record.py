"""Record the keys of what came out in committed batches, each exactly once and for good.

The recorder takes all batches that are committed and not recorded yet, writes what came out of each
step in them to a folder of the round, and commits the round by one file that is written last. What
a recorder that died left behind has no such file, and is replaced. Nothing that was committed is
ever written again.
"""

from __future__ import annotations

import shutil
from dataclasses import dataclass
from typing import TYPE_CHECKING

import pyarrow.parquet as pq

from clew.again.event_keys import Batches, keys_of
from clew.again.held import Held
from clew.again.tables import is_under, local_path
from clew.exceptions import OtherVersionError, SourceChangedError
from clew.operators.source import Source
from clew.plan.columns import segment_hash
from clew.plan.node import secret_of
from clew.plan.secret import hashing_with
from clew.plan.settings import differing, settings_of, to_set
from clew.sources.arrivals import kept_offsets, noted_tables, read_arrivals
from clew.sources.identity import ParquetIdentity
from clew.sources.reread import Again
from clew.sources.state import refuse_changed
from clew.steps import reached
from clew.store.collect import compute
from clew.store.commit import Asserted, Copied, Kept, commit_asserted, read_stream
from clew.store.layout import (
    ASSERTIONS,
    asserted_folder,
    assertions_folder,
    batches_folder,
    parse_batch_folder,
    parse_unfolding_folder,
    quote_name,
    unfolding_folder,
)
from clew.store.lock import alone
from clew.store.private import make_folder
from clew.store.short_keys import put_keys

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

    import pyarrow as pa
    from pyspark.sql import SparkSession

    from clew.again.recorded_streams import Content, Recorded
    from clew.store.draft import Draft

_IN_MEMORY = 200_000


@dataclass(frozen=True, slots=True)
class Recorder:
    """Records what a query's steps put out.

    Attributes:
        root: The store.
        writer: The query's stream.
        run: The run whose batches are recorded.
        streams: The streams to record.
        content: Of which streams the rows themselves are kept.
        checkpoint: The query's checkpoint; None for a query over tables.
    """

    root: Path
    writer: str
    run: str
    streams: Sequence[Recorded]
    content: Content
    checkpoint: str | None

    def pending(self) -> list[int]:
        """List the batches that are committed and not recorded, oldest first."""
        committed = []
        for path in batches_folder(self.root, self.writer).glob("*.json"):
            name = parse_batch_folder(path.stem)
            if name is not None and name[0] == self.run:
                committed.append(name[1])
        done = self._last_recorded()
        return sorted(number for number in committed if number > done)

    def _last_recorded(self) -> int:
        rounds = asserted_folder(self.root, self.writer).glob("*.json")
        names = [parse_unfolding_folder(path.stem) for path in rounds]
        ends = [n[2] for n in names if n is not None and n[0] == self.run]
        return max((end for end in ends if isinstance(end, int)), default=-1)

    def is_due(self) -> bool:
        """Tell whether batches are pending."""
        return bool(self.pending())

    def advance(self) -> int:
        """Record everything that is pending, and return the number of rows recorded."""
        with alone(asserted_folder(self.root, self.writer)):
            waiting = self.pending()
            if not waiting:
                return 0
            self._clear()
            self._refuse_other_settings()
            return self._record_intact(waiting)

    def _record_intact(self, waiting: Sequence[int]) -> int:
        """Record batches together; apart, if a table changed between them."""
        try:
            return self._record(waiting[0], waiting[-1])
        except SourceChangedError:
            if len(waiting) == 1:
                raise
            self._clear()
            middle = len(waiting) // 2
            return sum(map(self._record_intact, (waiting[:middle], waiting[middle:])))

    def _refuse_other_settings(self) -> None:
        """Refuse to compute keys under other settings than the query ran with."""
        said = read_stream(self.root, self.writer) or {}
        now = settings_of(self._spark)
        settings = said.get("settings", now)
        names = differing(settings, now)
        if names:
            why = (
                f"the session has other settings than it ran with ({', '.join(names)}); write "
                f"`{to_set(settings, names)}`"
            )
            raise OtherVersionError(str(self.root), self.writer, said.get("version"), why)

    def _clear(self) -> None:
        """Remove what a round that was never committed left behind."""
        committed = {p.stem for p in asserted_folder(self.root, self.writer).glob("*.json")}
        for folder in (self.root / ASSERTIONS / quote_name(self.writer)).glob(f"{self.run}-*"):
            if folder.name not in committed:
                shutil.rmtree(folder)

    def _record(self, first: int, last: int) -> int:
        reached("round begun", last)
        arrivals = None
        if self.checkpoint is not None:
            offsets = kept_offsets(self.root, self.writer, self.run)
            arrivals = read_arrivals(self._spark, self.checkpoint, offsets)
        noted = noted_tables(self.root, self.writer, self.run)
        batches = Batches(arrivals, first, last, Held(noted, range(first, last + 1)))
        name = unfolding_folder(self.run, first, last)
        kept: dict[str, Kept] = {}
        for stream in self.streams:
            if stream.same_as is None or self.content == "all":
                kept[stream.name] = self._put(stream, batches, name)
                reached("keys written", last)
        batches.refuse_changed()
        reached("round written", last)
        self._refuse_other_settings()
        commit_asserted(self.root, Asserted(self.writer, self.run, first, last, kept))
        reached("round committed", last)
        return sum(each.rows for each in kept.values())

    @property
    def _spark(self) -> SparkSession:
        return self.streams[0].node.plain.df.sparkSession

    def _put(self, stream: Recorded, batches: Batches, name: str) -> Kept:
        folder = assertions_folder(self.root, self.writer, name, stream.name)
        if stream.is_first:
            files = _parquet_files(stream, batches)
            if files is not None:
                return self._copy(files, folder, batches)
        with_content = stream.is_first or self.content == "all"
        keys = keys_of(stream, self.streams, batches, with_content=with_content)
        # Rows with their content may be large, so those go to files right away.
        draft = compute(keys, folder / "_draft", 0 if with_content else _IN_MEMORY)
        return self._encode(draft, folder)

    def _encode(self, draft: Draft, folder: Path) -> Kept:
        rows, files = 0, []
        for number, part in enumerate(draft.parts()):
            if part.num_rows:
                path = folder / f"keys-{number}.parquet"
                put_keys(part, path)
                rows += part.num_rows
                files.append(str(path.relative_to(self.root)))
        draft.drop()
        return Kept(rows, files)

    def _copy(self, files: Sequence[str], folder: Path, batches: Batches) -> Kept:
        """Keep whole files: a row's place in its file is its id, so there is nothing to add."""
        assert batches.arrivals is not None
        known = batches.arrivals.states
        states = {path: known[path] for path in files if path in known}
        refuse_changed(self._spark, states, batches.arrivals.files)
        rows, copies = 0, []
        for number, (path, a) in enumerate(self._segments(files)):
            target = folder / f"copy-{number}.parquet"
            make_folder(target.parent)
            shutil.copyfile(local_path(path), target)
            rows += _rows_in(target)
            copies.append(Copied(str(target.relative_to(self.root)), a, path))
        refuse_changed(self._spark, states, batches.arrivals.files)
        return Kept(rows, copies=copies)

    def _segments(self, paths: Sequence[str]) -> Iterator[tuple[str, int]]:
        """Say by which number each file goes in row ids."""
        if not paths:
            return
        with hashing_with(secret_of(self.streams[0].node)):
            number = segment_hash("path")
        listed = self._spark.createDataFrame([(path,) for path in paths], "path string")
        table: pa.Table = listed.selectExpr("path", f"{number} AS a").toArrow()
        yield from zip(table["path"].to_pylist(), table["a"].to_pylist(), strict=True)


def _parquet_files(stream: Recorded, batches: Batches) -> list[str] | None:
    """List the local Parquet files that a source brought; None if its rows are in no such files."""
    source = stream.node.operator
    assert isinstance(source, Source)
    again = source.again
    if (
        batches.arrivals is None
        or not isinstance(source.origin.identity, ParquetIdentity)
        or not isinstance(again, Again)
        or again.folder is None
        or source.origin.mask.hides(source.origin.schema.names)
    ):
        return None
    came = batches.arrivals.between(batches.first, batches.last).files
    files = sorted(path for path in came if is_under(path, again.folder))
    names = set(source.origin.schema.names)
    # A column may be in a folder's name, or missing in an older file: then rows are read by Spark.
    whole = all(path.startswith("file:") and names <= _columns(local_path(path)) for path in files)
    return files if whole else None


def _columns(path: Path) -> set[str]:
    return set(pq.read_schema(path).names)


def _rows_in(path: Path) -> int:
    return int(pq.read_metadata(path).num_rows)
