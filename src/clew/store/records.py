"""What the JSON files of a store say, as frozen dataclasses.

A batch file is checked strictly, since its presence is what commits a batch. A stream file is read
leniently: it describes a stream to people, and a field that is absent is shown as unknown.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, get_args

from clew.model import EDGES_COME, UNNAMED, EdgesCome, Exactness, GapKind
from clew.store.layout import EDGES, ROWS, unquote_name
from clew.store.said import read_commit, read_described, read_unfolding

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from pathlib import Path

EXACTNESS: tuple[Exactness, ...] = get_args(Exactness)
"""The labels, from best to worst."""

PRUNED = "pruned on "
"""What a commit says of provenance that was taken out on purpose; a date follows."""

_SAID = {
    GapKind.NOT_COMMITTED: "the batch was not committed",
    GapKind.NOT_HERE: "the query has finished the batch, and its commit is not in the store",
    GapKind.NOT_ENDED: (
        "the batch was begun and is not committed: it was cut off, or its commit was lost"
    ),
    GapKind.NOT_UNFOLDED: "its {} are not unfolded yet",
    GapKind.WHEN_ASKED: "its rows carry {}, and edges are computed when asked for",
}
"""What gaps say whose reason nobody has written down."""


@dataclass(frozen=True, slots=True)
class Gap:
    """Batches of one run whose provenance the store does not hold.

    Attributes:
        writer: The query that wrote them.
        run: The run they belong to.
        first: The first missing batch.
        last: The last missing batch; batches in between are missing too.
        kind: Why, as far as the store knows.
        about: What the kind leaves open: the capture of pending batches; for gaps whose reason was
            written down, that text.
    """

    writer: str
    run: str
    first: int
    last: int
    kind: GapKind
    about: str = ""

    @property
    def reason(self) -> str:
        """Why the provenance is missing, for people."""
        said = _SAID.get(self.kind)
        return self.about if said is None else said.format(self.about)

    @property
    def is_pruned(self) -> bool:
        """Whether the provenance was there, and was taken out on purpose."""
        return self.kind is GapKind.PRUNED

    def __lt__(self, other: Gap) -> bool:
        """Order gaps as they are read: by where they are, then by what they say."""
        return self._place() < other._place()

    def _place(self) -> tuple[str, str, int, int, str]:
        return self.writer, self.run, self.first, self.last, self.reason

    def __str__(self) -> str:
        numbers = str(self.first) if self.first == self.last else f"{self.first} to {self.last}"
        word = "batch" if self.first == self.last else "batches"
        return f"{word} {numbers} of `{self.writer}` (run {self.run}): {self.reason}"

    def to_dict(self) -> dict[str, str | int]:
        """Return the gap as plain data."""
        return {
            "writer": self.writer,
            "run": self.run,
            "first": self.first,
            "last": self.last,
            "reason": self.reason,
        }


@dataclass(frozen=True, slots=True, eq=False)
class Batch:
    """One committed batch; a reader makes one object for each.

    Attributes:
        writer: The query that wrote it.
        run: The run it belongs to.
        number: Its number in the run.
        committed: When it was committed, as text in UTC.
        watermark: The query's watermark then, as text in UTC.
        sink_rows: How many sink rows it holds.
        edges: How many edges it holds.
        edge_files: Its edges, relative to the store.
        row_files: Its rows by stream, relative to the store.
        gap: Why its provenance is missing, or None.
        capture: How its rows carry provenance.
        last: Of an unfolding, the last batch that it unfolds; None if it unfolds a choice of rows.
        watermark_ms: The watermark in milliseconds; 0 if there was none.
        offsets: How far the batch read each source, as Spark writes it.
        version: The version of its query that it ran with; None if nothing says.
        is_pruned: Its provenance was taken out on purpose; `gap` says when.
    """

    writer: str
    run: str
    number: int
    committed: str
    watermark: str | None
    sink_rows: int | None
    edges: int | None
    edge_files: tuple[str, ...]
    row_files: Mapping[str, tuple[str, ...]]
    gap: str | None
    capture: str = UNNAMED
    last: int | None = None
    watermark_ms: int = 0
    offsets: tuple[str, ...] = ()
    version: str | None = None
    is_pruned: bool = False

    @property
    def edges_come(self) -> EdgesCome:
        """When the edges of its rows are in the store."""
        return EDGES_COME[self.capture]

    @property
    def order(self) -> tuple[str, str, int]:
        """A key that puts batches in the order in which they were committed."""
        return (self.committed, self.run, self.number)


@dataclass(frozen=True, slots=True)
class StreamRecord:
    """The static part of a stream.

    Attributes:
        name: The stream.
        kind: `source`, `sink` or `named`.
        writer: The query that fills it; None for a source.
        exactness: How its edges relate to the rows that really contributed.
        capture: How its provenance was carried.
        why: Why it was carried so.
        identity: How a source's rows are told apart.
        event_time: The column with the event time.
        graph: The operators of the query that fills it.
        node: A named frame's node in the graph of its writer.
        sources: The streams that its query reads.
        columns: The user's columns, as last described.
        bounds: For how long a row of each source may take part in its rows, in any version.
        checkpoints: Where each run of its query keeps its checkpoint; None for a batch.
        keeps_rows: The store has the rows themselves, not only their keys.
        version: The version of its query that all of this is about, the newest.
        earlier: The versions before it, as the store describes them.
        by_window: The time of some of its rows is the end of their window, since nobody named one.
    """

    name: str
    kind: str
    writer: str | None = None
    exactness: Exactness | None = None
    capture: str | None = None
    why: str | None = None
    identity: Mapping[str, Any] | None = None
    event_time: str | None = None
    graph: Mapping[str, Any] = field(default_factory=dict)
    node: int | None = None
    sources: tuple[str, ...] = ()
    columns: tuple[str, ...] = ()
    bounds: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    checkpoints: Mapping[str, str | None] = field(default_factory=dict)
    keeps_rows: bool = True
    version: str | None = None
    earlier: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    by_window: bool = False

    def in_version(self, version: str | None) -> StreamRecord:
        """Return the stream as it was in a version of its query; as it is if there is no such."""
        said = self.earlier.get(version or "")
        if said is None or version == self.version:
            return self
        label = said.get("exactness")
        return replace(
            self,
            version=version,
            graph=said.get("graph") or {},
            bounds=said.get("bounds") or {},
            exactness=label if label in EXACTNESS else None,
        )

    @property
    def edges_come(self) -> EdgesCome | None:
        """When the edges of its rows are in the store; None if nothing says."""
        return None if self.capture is None else EDGES_COME[self.capture]

    @property
    def named(self) -> tuple[str, ...]:
        """The named frames inside the query."""
        return tuple(self.graph.get("named") or ())


def read_batch(
    path: Path, writer: str, run: str, number: int, *, is_unfolding: bool = False
) -> Batch:
    """Read the file of a committed batch, or of an unfolding.

    Raises:
        FileNotFoundError: The batch is gone.
        StoreError: The file does not say what a batch file must say.
    """
    data = read_unfolding(path) if is_unfolding else read_commit(path)
    edge_files, row_files = _sort_files(data["files"])
    return Batch(
        writer=writer,
        run=run,
        number=number,
        committed=data["committed"],
        watermark=data.get("watermark"),
        sink_rows=data.get("sink_rows"),
        edges=data.get("edges"),
        edge_files=edge_files,
        row_files=row_files,
        gap=data.get("gap"),
        capture=data.get("capture") or UNNAMED,
        last=data["last"] if is_unfolding and data["part"] is None else None,
        watermark_ms=data.get("watermark_ms") or 0,
        offsets=tuple(data.get("offsets") or ()),
        version=data.get("version"),
        is_pruned=not is_unfolding and was_pruned(data),
    )


def was_pruned(said: Mapping[str, Any]) -> bool:
    """Tell from a batch's commit whether its provenance was taken out on purpose."""
    return said.get("gap") is not None and said.get("pruned") is not None


def read_stream(path: Path) -> StreamRecord:
    """Read the file of a stream.

    Raises:
        FileNotFoundError: The stream is gone.
        StoreError: The file does not describe a stream.
    """
    data = read_described(path)
    exactness = data.get("exactness")
    schema = data.get("schema") or {}
    graph = data.get("graph") or {}
    earlier = tuple((data.get("earlier") or {}).values())
    before = [name for each in earlier for name in (each.get("graph") or {}).get("sources") or ()]
    return StreamRecord(
        name=data["name"],
        kind=data["kind"],
        writer=data.get("writer"),
        exactness=exactness if exactness in EXACTNESS else None,
        capture=data.get("capture"),
        why=data.get("why"),
        identity=data.get("identity"),
        event_time=data.get("event_time"),
        graph=graph,
        node=data.get("node"),
        sources=tuple(
            dict.fromkeys([*(graph.get("sources") or data.get("sources") or ()), *before])
        ),
        columns=tuple(each["name"] for each in schema.get("fields", ())),
        bounds=_widest(data),
        checkpoints={r["run"]: r.get("checkpoint") for r in data.get("runs") or ()},
        keeps_rows=(data.get("assertions") or {}).get("content") != "first",
        version=data.get("version"),
        earlier=dict(data.get("earlier") or {}),
        by_window=any(each.get("by_window") for each in (data, *earlier)),
    )


def _widest(data: Mapping[str, Any]) -> dict[str, Mapping[str, Any]]:
    """Put the bounds of all versions together: a window outlives the version that opened it."""
    found: dict[str, Mapping[str, Any]] = {}
    for said in (data, *(data.get("earlier") or {}).values()):
        for source, bound in (said.get("bounds") or {}).items():
            known = found.get(source)
            found[source] = bound if known is None else _wider(known, bound)
    return found


def _wider(one: Mapping[str, Any], other: Mapping[str, Any]) -> dict[str, Any]:
    micros = [each.get("micros") for each in (one, other)]
    known = [each for each in micros if each is not None]
    return {
        **one,
        "micros": max(known) if len(known) == len(micros) else None,
        "waits": bool(one.get("waits") or other.get("waits")),
        "by_arrival": bool(one.get("by_arrival") or other.get("by_arrival")),
        "why": list(dict.fromkeys([*(one.get("why") or ()), *(other.get("why") or ())])),
    }


def worst(labels: Iterable[str | None]) -> Exactness:
    """Return the weakest of several labels; unknown ones do not count.

    Examples:
        >>> worst(["exact", "coarse", "superset"])
        'coarse'
        >>> worst([])
        'exact'
    """
    known = [EXACTNESS.index(each) for each in labels if each in EXACTNESS]
    return EXACTNESS[max(known, default=0)]


def _sort_files(files: list[str]) -> tuple[tuple[str, ...], dict[str, tuple[str, ...]]]:
    edges: list[str] = []
    rows: dict[str, list[str]] = {}
    for each in files:
        parts = each.split("/")
        if parts[0] == EDGES:
            edges.append(each)
        elif parts[0] == ROWS:
            rows.setdefault(unquote_name(parts[3]), []).append(each)
    return tuple(edges), {stream: tuple(found) for stream, found in rows.items()}
