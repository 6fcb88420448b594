"""What runs inside Spark's tasks: parse, local reducer, global reducer.

A task writes its edges itself and tells the driver which files it wrote and what it counted. Rows
that travelled back through Spark would be turned from Arrow into Spark's form and back into
Parquet, which takes longer than reducing them. Files carry a name of their own, so those of a task
that failed or ran twice are never mixed up with the ones that count.
"""

from __future__ import annotations

import json
import uuid
from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from clew.prov.local import LocalReducer
from clew.prov.parse import Parser
from clew.prov.reducer import reduced
from clew.prov.sliding import Sliding, as_helpers, only_helpers, without_helpers
from clew.prov.words import EDGES, ELEMENTS, FINAL, NO_TIME

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from clew.prov.asked_for import Settings
    from clew.prov.reducer import Rule

BLOCK = 20_000
"""How many lines are read at once."""
NOTE = "note string"
PARSED = (
    "outputs array<string>, inputs array<string>, activity string, time bigint, "
    "execution string, function string, node string, note string"
)
"""Elements on their way to the local reducers, and notes of the tasks that read them."""
_PARSED = ELEMENTS.append(pa.field("note", pa.string()))


class Files:
    """Writes the files of one task, as far as there is something to write."""

    def __init__(self, folder: str) -> None:
        self._folder = Path(folder)
        self._own = uuid.uuid4().hex[:12]
        self._writers: dict[str, pq.ParquetWriter] = {}
        self.names: dict[str, list[str]] = {}

    def put(self, kind: str, table: pa.Table) -> None:
        """Append to the file of a kind."""
        if table.num_rows == 0:
            return
        if kind not in self._writers:
            self._folder.mkdir(parents=True, exist_ok=True)
            name = f"{kind}-{self._own}.parquet"
            path = self._folder / name
            self._writers[kind] = pq.ParquetWriter(path, table.schema, compression="zstd")
            self.names[kind] = [f"{self._folder.name}/{name}"]
        self._writers[kind].write_table(table)

    def close(self) -> None:
        """Finish all files."""
        for writer in self._writers.values():
            writer.close()


@dataclass(frozen=True)
class Local:
    """The work of tasks that read lines and reduce locally.

    Attributes:
        settings: What was asked for.
        folder: Where files of this batch go.
        before: The latest time that was seen before this batch.
    """

    settings: Settings
    folder: str
    before: int | None = None

    def parse(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Read lines into elements; the last row is a note."""
        counts: Counter[str] = Counter()
        files = Files(self.folder)
        for elements in self._elements(batches, counts, files):
            note = pa.nulls(elements.num_rows, pa.string())
            yield from elements.append_column("note", note).to_batches()
        files.close()
        said = json.dumps({"counts": counts, "files": files.names})
        row: dict[str, Any] = {**dict.fromkeys(_PARSED.names), "execution": "", "note": said}
        yield pa.RecordBatch.from_pylist([row], _PARSED)

    def reduce_lines(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Read lines and reduce them, all in one task."""
        counts: Counter[str] = Counter()
        files = Files(self.folder)
        self._reduce(self._elements(batches, counts, files), counts, files)
        files.close()
        yield _note(counts, files)

    def reduce_elements(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Reduce elements that other tasks read."""
        counts: Counter[str] = Counter()
        files, notes = Files(self.folder), list[str]()
        self._reduce(_without_notes(batches, notes), counts, files)
        files.close()
        yield _note(counts, files)
        for note in notes:
            yield pa.RecordBatch.from_pydict({"note": [note]})

    def _elements(
        self, batches: Iterable[pa.RecordBatch], counts: Counter[str], files: Files
    ) -> Iterator[pa.Table]:
        ours = self.settings
        grouping, in_order = ours.mode == "grouping", ours.mode == "window"
        parser = Parser(ours.job, groups=grouping, keep_apart=ours.keep_apart, in_order=in_order)
        latest = NO_TIME
        for block in _blocks(batches):
            parsed = parser.parse(block)
            counts["bytes"] += (pc.sum(pc.binary_length(block)).as_py() or 0) + len(block)
            counts["statements"] += parsed.statements
            counts["filtered"] += parsed.filtered
            counts["foreign"] += parsed.foreign
            counts["dead"] += parsed.dead.num_rows
            counts["ended"] += parsed.ended
            files.put("dead", parsed.dead)
            files.put("apart", parsed.apart)
            elements, latest = self._timed(parsed.elements, latest, counts)
            yield elements

    def _timed(self, elements: pa.Table, latest: int, counts: Counter[str]) -> tuple[pa.Table, int]:
        """Give statements without a time the latest one before them."""
        time = elements["time"]
        watermark = self.settings.watermark(self.before)
        if watermark is not None:
            counts["late"] += pc.sum(pc.less(time, watermark)).as_py() or 0
        if time.null_count:
            time = pc.fill_null(time, latest)
            elements = elements.set_column(3, ELEMENTS.field("time"), time)
        latest = max(latest, pc.max(time).as_py() or latest)
        if latest > NO_TIME:
            counts["latest"] = latest
        return elements, latest

    def _reduce(self, blocks: Iterable[pa.Table], counts: Counter[str], files: Files) -> None:
        reducer = LocalReducer(self.settings, self.before)
        for found in self._found(blocks, reducer):
            counts["local"] += found.num_rows
            files.put("edges", found)

    def _found(self, blocks: Iterable[pa.Table], reducer: LocalReducer) -> Iterator[pa.Table]:
        for elements in _chunks(blocks, self.settings.local_batch):
            yield from reducer.add(elements)
        yield from reducer.finish()


@dataclass(frozen=True)
class Fold:
    """The work of the task that folds edges into the global state.

    Attributes:
        rule: Which vertices may go, and which edges are final.
        root: What names of files are relative to.
        state: The files of the state, and of what local reducers handed on since.
        fresh: Which of those are new; only the sliding window asks.
        folder: Where files of this batch go.
        window: How many past edges to remember; None if there is no window.
    """

    rule: Rule
    root: str
    state: tuple[str, ...]
    fresh: tuple[str, ...]
    folder: str
    window: int | None = None

    def run(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Fold; the row that comes in only makes the task run."""
        for _ in batches:
            files, counts = Files(self.folder), Counter[str]()
            final, rest = self._fold()
            counts["out"], counts["open"] = final.num_rows, rest.num_rows
            files.put("final", final)
            files.put("open", rest)
            files.close()
            yield _note(counts, files)

    def _fold(self) -> tuple[pa.Table, pa.Table]:
        state = self._read(self.state)
        if self.window is None:
            return reduced(pa.concat_tables([state, self._read(self.fresh)]), self.rule)
        sliding = Sliding(self.window, only_helpers(state), without_helpers(state))
        sliding.add(self._read(self.fresh))
        done = sliding.flush()
        if self.rule.end:
            return reduced(done, self.rule)
        return FINAL.empty_table(), pa.concat_tables([done, as_helpers(sliding.past)])

    def _read(self, names: tuple[str, ...]) -> pa.Table:
        paths = [Path(self.root) / name for name in names]
        return pa.concat_tables(
            [EDGES.empty_table(), *(pq.read_table(p, partitioning=None) for p in paths)]
        )


def _note(counts: Counter[str], files: Files) -> pa.RecordBatch:
    said = json.dumps({"counts": counts, "files": files.names})
    return pa.RecordBatch.from_pydict({"note": [said]})


def _blocks(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.Array]:
    for batch in batches:
        lines = batch.column(0)
        for start in range(0, len(lines), BLOCK):
            yield lines.slice(start, BLOCK)


def _without_notes(batches: Iterable[pa.RecordBatch], notes: list[str]) -> Iterator[pa.Table]:
    for batch in batches:
        table = pa.Table.from_batches([batch])
        found = table.filter(pc.is_valid(table["note"]))
        notes += found["note"].to_pylist()
        rows = table.filter(pc.is_null(table["note"])) if found.num_rows else table
        yield rows.select(ELEMENTS.names).cast(ELEMENTS)


def _chunks(blocks: Iterable[pa.Table], size: int) -> Iterator[pa.Table]:
    """Cut elements into batches of a size; only the last may be smaller."""
    waiting, count = list[pa.Table](), 0
    for block in blocks:
        at = 0
        while block.num_rows - at:
            part = block.slice(at, size - count)
            waiting.append(part)
            count += part.num_rows
            at += part.num_rows
            if count == size:
                yield pa.concat_tables(waiting).combine_chunks()
                waiting, count = [], 0
    if waiting:
        yield pa.concat_tables(waiting).combine_chunks()
