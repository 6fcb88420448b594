"""How large a store is: bytes, files, rows and edges, by query and by kind.

Bytes and files are counted as they lie on the disk, so the sum is what `du` would say of the files'
lengths. Edges are counted as the commits tell, rows by the footers of Parquet files: no row is
read. What no commit names is counted apart, as `leftovers`.
"""

from __future__ import annotations

import os
from collections import defaultdict
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, get_args

import pyarrow as pa
import pyarrow.parquet as pq

from clew import show
from clew.live.deliver import last_state
from clew.live.elements import LIVE
from clew.store import layout
from clew.store.asserted import rounds_of
from clew.store.edges import is_packed

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from clew.store.reader import Snapshot
    from clew.store.records import Batch

Kind = Literal[
    "edges",
    "rows",
    "unfolded",
    "repository",
    "assertions",
    "points",
    "live",
    "commits",
    "other",
    "leftovers",
]
KINDS: tuple[Kind, ...] = get_args(Kind)
"""What a store is made of, in the order in which it is shown."""

MEANING: dict[Kind, str] = {
    "edges": "edges of batches",
    "rows": "content of batches",
    "unfolded": "edges and content computed later",
    "repository": "reduced provenance of jobs",
    "assertions": "recorded keys and source files",
    "points": "connection points",
    "live": "live graphs",
    "commits": "commit files",
    "other": "descriptions and notes",
    "leftovers": "files that no commit names",
}


@dataclass(frozen=True, slots=True)
class Amount:
    """How much there is of something; rows and edges are None where there can be none."""

    bytes: int = 0
    files: int = 0
    rows: int | None = None
    edges: int | None = None

    def __add__(self, other: Amount) -> Amount:
        return Amount(
            self.bytes + other.bytes,
            self.files + other.files,
            _plus(self.rows, other.rows),
            _plus(self.edges, other.edges),
        )

    @property
    def bytes_per_edge(self) -> float | None:
        """Bytes for each edge; None without edges."""
        return self.bytes / self.edges if self.edges else None

    def to_dict(self) -> dict[str, Any]:
        """Return it as plain data."""
        return {
            "bytes": self.bytes,
            "files": self.files,
            "rows": self.rows,
            "edges": self.edges,
            "bytes_per_edge": self.bytes_per_edge,
        }


@dataclass(frozen=True, repr=False)
class Size:
    """How large a store is.

    Attributes:
        path: The store.
        parts: What there is, by the query (of a live graph, its name; None for the store's own
            files) and the kind.
    """

    path: str
    parts: dict[tuple[str | None, Kind], Amount]

    @property
    def total(self) -> Amount:
        """Everything together."""
        return _sum(self.parts.values())

    def by_query(self) -> dict[str | None, Amount]:
        """Add up what belongs to each query, largest first."""
        names = dict.fromkeys(name for name, kind in self.parts if kind != "live")
        found = {n: _sum(a for (m, k), a in self.parts.items() if m == n) for n in names}
        return dict(sorted(found.items(), key=lambda each: -each[1].bytes))

    def by_kind(self) -> dict[Kind, Amount]:
        """Add up what there is of each kind."""
        present = [kind for kind in KINDS if any(k == kind for _, k in self.parts)]
        return {kind: _sum(a for (_, k), a in self.parts.items() if k == kind) for kind in present}

    def share(self, amount: Amount) -> float:
        """Return what part of all bytes something takes."""
        return amount.bytes / self.total.bytes if self.total.bytes else 0.0

    def to_dict(self) -> dict[str, Any]:
        """Return the sizes as plain data that JSON can hold."""
        return {
            "path": self.path,
            **self.total.to_dict(),
            "kinds": [self._dict(a, kind=kind) for kind, a in self.by_kind().items()],
            "parts": [self._dict(a, query=n, kind=kind) for (n, kind), a in self.parts.items()],
        }

    def _dict(self, amount: Amount, **names: str | None) -> dict[str, Any]:
        return {**names, **amount.to_dict(), "share": self.share(amount)}

    def lines(self) -> list[show.Line]:
        """Show the sizes as two aligned tables."""
        total = self.total
        head = f"{human(total.bytes)} in {show.count(total.files, 'file')}"
        per_edge = total.bytes_per_edge
        if per_edge is not None:
            head += f", {total.edges:,} edges, {per_edge:,.1f} B an edge"
        kinds = [[MEANING[kind], *self._cells(a)] for kind, a in self.by_kind().items()]
        parts = [
            [name or "(store)", kind, *self._cells(amount)]
            for (name, kind), amount in self.parts.items()
        ]
        columns = ["bytes", "share", "files", "rows", "edges", "B/edge"]
        return [
            show.Line("headline", head),
            show.Line("note", ""),
            *show.table(["kind", *columns], kinds),
            show.Line("note", ""),
            *show.table(["query", "kind", *columns], parts),
        ]

    def _cells(self, amount: Amount) -> list[str]:
        per_edge = amount.bytes_per_edge
        return [
            human(amount.bytes),
            f"{self.share(amount):.1%}",
            *("-" if n is None else f"{n:,}" for n in (amount.files, amount.rows, amount.edges)),
            "-" if per_edge is None else f"{per_edge:,.1f}",
        ]

    def __repr__(self) -> str:
        return show.join(self.lines())


def measure(snapshot: Snapshot) -> Size:
    """Measure a store."""
    found: dict[tuple[str | None, Kind], Amount] = defaultdict(Amount)
    named = _Named(snapshot)
    for path, size in _files(snapshot.root):
        key = named.sort(path)
        found[key] += Amount(size, 1, named.rows(path, key[1]))
    for (writer, kind), edges in named.edges().items():
        found[writer, kind] += Amount(edges=edges)
    for (name, kind), amount in named.recorded().items():
        found[name, kind] += amount
    ordered = sorted(found.items(), key=lambda e: (e[0][0] is None, e[0][0] or "", _place(e[0][1])))
    return Size(str(snapshot.root), dict(ordered))


class _Named:
    """Knows which query and which kind a file belongs to, and what commits say of it."""

    def __init__(self, snapshot: Snapshot) -> None:
        self._snapshot = snapshot
        self._root = snapshot.root
        self._holder = {
            file: batch
            for writer in snapshot.batches
            for batch in snapshot.parts(writer)
            for file in _files_of(batch)
        }
        self._folders = {str(Path(file).parent): batch for file, batch in self._holder.items()}
        self._rounds = {
            file
            for folder in sorted((self._root / layout.ASSERTED).glob("*"))
            for each in rounds_of(self._root, layout.unquote_name(folder.name))
            for kept in each.streams.values()
            for file in [*kept["files"], *(copy["file"] for copy in kept["copies"])]
        }

    def sort(self, path: str) -> tuple[str | None, Kind]:
        """Say what a file, named relative to the store, is part of."""
        top, *rest = path.split("/")
        name = layout.unquote_name(rest[0]) if rest else None
        if top in (layout.EDGES, layout.ROWS):
            return name, self._kind_of(path)
        if top == layout.ASSERTIONS:
            return name, "assertions" if path in self._rounds or _is_aside(path) else "leftovers"
        if top == layout.POINTS:
            return name, "points"
        if top == LIVE:
            return name, "live"
        if top in (layout.BATCHES, layout.UNFOLDED, layout.ASSERTED):
            return name, "commits"
        return None, "other"

    def _kind_of(self, path: str) -> Kind:
        batch = self._holder.get(path)
        if batch is None and _is_aside(path):
            batch = self._folders.get(str(Path(path).parent))
        if batch is None:
            return "leftovers"
        if batch.writer in self._snapshot.jobs:
            return "repository"
        if batch in self._snapshot.unfolded.get(batch.writer, ()):
            return "unfolded"
        return "edges" if path.startswith(layout.EDGES) else "rows"

    def rows(self, path: str, kind: Kind) -> int | None:
        """Count the rows of a file of content, from its footer."""
        counts = kind in ("rows", "unfolded", "repository") and path.startswith(layout.ROWS)
        if not path.endswith(".parquet") or not (counts or kind == "points"):
            return None
        return footer_rows(self._root / path)

    def edges(self) -> dict[tuple[str, Kind], int]:
        """Count the edges of each writer, as its commits tell, or else as its files do."""
        found: dict[tuple[str, Kind], int] = defaultdict(int)
        for writer in self._snapshot.batches:
            for batch in self._snapshot.parts(writer):
                if batch.edge_files:
                    kind = self._kind_of(batch.edge_files[0])
                    known = batch.edges
                    found[writer, kind] += (
                        sum(_edges_in(self._root / f) for f in batch.edge_files)
                        if known is None
                        else known
                    )
        return found

    def recorded(self) -> dict[tuple[str, Kind], Amount]:
        """Count what commits alone tell: recorded rows, and the elements of live graphs."""
        found: dict[tuple[str, Kind], Amount] = {}
        for folder in sorted((self._root / layout.ASSERTED).glob("*")):
            writer = layout.unquote_name(folder.name)
            rounds = [each for each in rounds_of(self._root, writer) if each.pruned is None]
            rows = sum(kept["rows"] for each in rounds for kept in each.streams.values())
            found[writer, "assertions"] = Amount(rows=rows)
        for folder in sorted((self._root / LIVE).glob("*")):
            graph = layout.unquote_name(folder.name)
            state = last_state(self._root, graph)
            found[graph, "live"] = Amount(rows=state.vertices, edges=state.edges)
        return found


def footer_rows(path: Path) -> int:
    """Count the rows of a Parquet file; 0 for one that is gone or no such file."""
    try:
        return int(pq.read_metadata(path).num_rows)
    except (OSError, pa.ArrowInvalid):
        return 0


def _edges_in(path: Path) -> int:
    if not is_packed(str(path)):
        return footer_rows(path)
    return int(pq.read_table(path, columns=["count"], partitioning=None)["count"].to_numpy().sum())


def _is_aside(path: str) -> bool:
    """Tell whether a file is what Spark leaves beside its own: a checksum or a mark of success."""
    name = path.rsplit("/", 1)[-1]
    return name.endswith(".crc") or name == "_SUCCESS"


def _files_of(batch: Batch) -> Iterator[str]:
    yield from batch.edge_files
    for files in batch.row_files.values():
        yield from files


def _files(root: Path) -> Iterator[tuple[str, int]]:
    """List every file of a store with its length; what goes away meanwhile is left out."""
    skip: Callable[[OSError], None] = lambda _: None  # noqa: E731
    for folder, _, names in os.walk(root, onerror=skip):
        for name in names:
            path = Path(folder) / name
            try:
                size = path.stat().st_size
            except FileNotFoundError:
                continue
            yield path.relative_to(root).as_posix(), size


def human(size: float) -> str:
    """Write a number of bytes with a unit.

    Examples:
        >>> human(999), human(1500), human(2_500_000)
        ('999 B', '1.5 kB', '2.5 MB')
    """
    for unit in ("B", "kB", "MB", "GB"):
        if size < 1000:
            return f"{size:,.0f} {unit}" if unit == "B" else f"{size:,.1f} {unit}"
        size /= 1000
    return f"{size:,.1f} TB"


def _plus(one: int | None, other: int | None) -> int | None:
    return other if one is None else one if other is None else one + other


def _sum(amounts: Iterable[Amount]) -> Amount:
    return sum(amounts, Amount())


def _place(kind: Kind) -> int:
    return KINDS.index(kind)
