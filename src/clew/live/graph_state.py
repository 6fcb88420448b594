"""What a live graph is, and how far it has come."""

from __future__ import annotations

from dataclasses import asdict, dataclass, field, replace
from typing import TYPE_CHECKING, Any, Literal

from clew.expiry.horizon import Reached
from clew.live.elements import graph_folder
from clew.store.commit import put_json
from clew.store.said import damaged, read_definition_of, read_step

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from clew.store.reader import Snapshot

EngineName = Literal["operator", "native"]
Results = Literal["unique", "merged"]


@dataclass(frozen=True, slots=True)
class Definition:
    """The static part of a live graph.

    Attributes:
        name: Its name in the store.
        queries: The queries whose results are in it; None for all of the store.
        engine: What builds it.
        results: `unique` gives each result a vertex of its own; `merged` gives results with equal
            content and event time one.
        content: Vertices carry the content of their rows.
        idle: After so many seconds without progress a query no longer holds labels back.
    """

    name: str = "live"
    queries: tuple[str, ...] | None = None
    engine: EngineName = "operator"
    results: Results = "unique"
    content: bool = True
    idle: float | None = None

    def members(self, snapshot: Snapshot) -> tuple[str, ...]:
        """Name the queries of the graph, as the store has them now."""
        if self.queries is not None:
            return self.queries
        return tuple(n for n, record in snapshot.streams.items() if record.kind == "sink")


def definition_file(root: Path, graph: str) -> Path:
    """Return the file that makes a graph known."""
    return graph_folder(root, graph) / "graph.json"


def read_definition(root: Path, graph: str) -> Definition | None:
    """Read what a graph is; None if the store has none of that name."""
    try:
        said = read_definition_of(definition_file(root, graph))
    except FileNotFoundError:
        return None
    queries = said["queries"]
    try:
        return Definition(**{**said, "queries": None if queries is None else tuple(queries)})
    except TypeError as error:
        raise damaged(definition_file(root, graph), error) from error


def put_definition(root: Path, definition: Definition) -> None:
    """Make a graph known, or change it."""
    put_json(definition_file(root, definition.name), asdict(definition))


@dataclass(frozen=True, slots=True)
class State:
    """How far a graph has come.

    Attributes:
        step: The last step.
        at_us: The graph's event time.
        taken: The last batch that was taken of each run of each query.
        reached: The position of each query.
        moved: When the watermark of each query last moved, as seconds since 1970.
        idle: The queries that hold nothing back, since they made no progress for too long.
        late: Queries that came to the graph after rows had expired, with the event time up to
            which rows may have; their results are checked against what has expired.
        left_out: How many results of each query rest on rows that had expired before.
        gaps: How many batches of each query have lost their provenance.
        repeating: Queries whose results may come again under the same id, since equal rows of
            a source are one row to them.
        open: Of the engine `native`: the steps whose rows are not all expired, and what must be
            passed for that.
        done: Of the engine `native`: all rows that came up to this step are expired.
        vertices: How many vertices were delivered.
        edges: How many edges were.
        labels: How many labels were.
    """

    step: int = -1
    at_us: int = 0
    taken: Mapping[str, Mapping[str, int]] = field(default_factory=dict)
    reached: Mapping[str, Reached] = field(default_factory=dict)
    moved: Mapping[str, float] = field(default_factory=dict)
    idle: tuple[str, ...] = ()
    late: Mapping[str, int | None] = field(default_factory=dict)
    left_out: Mapping[str, int] = field(default_factory=dict)
    gaps: Mapping[str, int] = field(default_factory=dict)
    repeating: tuple[str, ...] = ()
    open: tuple[Mapping[str, Any], ...] = ()
    done: int = -1
    vertices: int = 0
    edges: int = 0
    labels: int = 0

    def to_dict(self) -> dict[str, Any]:
        """Return the state as plain data that JSON can hold."""
        return {**asdict(self), "reached": {q: r.to_dict() for q, r in self.reached.items()}}

    @classmethod
    def from_dict(cls, said: Mapping[str, Any]) -> State:
        """Read a state back."""
        reached = {query: Reached(**each) for query, each in said["reached"].items()}
        lists = {name: tuple(said[name]) for name in ("idle", "repeating", "open")}
        return cls(**{**said, "reached": reached, **lists})

    @classmethod
    def read(cls, path: Path) -> State:
        """Read a state from its file.

        Raises:
            StoreError: The file does not say how far a graph has come.
        """
        said = read_step(path)
        try:
            return cls.from_dict(said)
        except TypeError as error:  # it says more than there is to say
            raise damaged(path, error) from error

    def counted(self, vertices: int, edges: int, labels: int) -> State:
        """Add to the numbers of delivered elements."""
        return replace(
            self,
            vertices=self.vertices + vertices,
            edges=self.edges + edges,
            labels=self.labels + labels,
        )
