"""Edges are the same from files and from memory, raw and packed."""

from __future__ import annotations

import json
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from clew.exceptions import StoreError
from clew.store import edges
from clew.store.edges import EdgeReader
from clew.store.engine import Engine
from clew.store.packed import BLOCK, pack
from clew.store.reader import Store
from store.build import StoreBuilder

if TYPE_CHECKING:
    from collections.abc import Iterable

    from clew.store.reader import Snapshot
    from store.build import EdgeTuple

    Found = list[tuple[object, ...]]


def pack_store(root: Path, *, row_group: int = 2 * BLOCK) -> None:
    """Put a packed file in the place of each file of edges."""
    for commit in root.glob("batches/*/*.json"):
        batch = json.loads(commit.read_text())
        for i, each in enumerate(batch["files"]):
            if each.startswith("edges/"):
                raw = root / each
                packed = raw.with_name(f"packed-{i}.parquet")
                pq.write_table(pack(pq.read_table(raw)), packed, row_group_size=row_group)
                raw.unlink()
                batch["files"][i] = str(packed.relative_to(root))
        commit.write_text(json.dumps(batch))


@pytest.fixture(params=["raw", "packed"])
def builder(tmp_path: Path, request: pytest.FixtureRequest) -> StoreBuilder:
    store = StoreBuilder(tmp_path)
    store.sink("s", ["r", "q"])
    store.sink("t", ["r"])
    store.batch("s", 0, edges=[("s", 1, 0, "r", 7, 0), ("s", 1, 0, "q", 7, 0)])
    store.batch("t", 0, edges=[("t", 1, 0, "r", 7, 0)])
    store.batch("s", 1, edges=[("s", 1, 0, "r", 8, 0), ("s", 2, 0, "r", 7, 0)])
    if request.param == "packed":
        pack_store(tmp_path)
    return store


def rows(*ids: tuple[str, int]) -> pa.Table:
    return pa.table(
        {
            "stream": pa.array([stream for stream, _ in ids], pa.string()),
            "a": pa.array([a for _, a in ids], pa.int64()),
            "b": pa.array([0] * len(ids), pa.int64()),
        }
    )


def find(
    reader: EdgeReader,
    engine: Engine,
    snapshot: Snapshot,
    near: str,
    *ids: tuple[str, int],
    ways: list[str] | None = None,
) -> Found:
    """Return sink, source and batch of the edges of rows, over all writers."""
    files = snapshot.edge_files(["s", "t"])
    with engine.session() as session:
        found = reader.join(session, files, near, rows(*ids), ways)
    return sorted(
        (
            (each["sink"], each["sink_a"]),
            (each["source"], each["source_a"]),
            (files.batches[each["place"]].writer, files.batches[each["place"]].number),
        )
        for each in found.to_pylist()
    )


@pytest.mark.parametrize("questions", [1, 2], ids=["files", "memory"])
def test_edges_are_found_from_either_side(builder: StoreBuilder, questions: int) -> None:
    engine = Engine(builder.root)
    reader = EdgeReader(engine)
    snapshot = Store(builder.root).snapshot()
    for _ in range(questions):
        reader.begin()

    assert find(reader, engine, snapshot, "sink", ("s", 1)) == [
        (("s", 1), ("q", 7), ("s", 0)),
        (("s", 1), ("r", 7), ("s", 0)),
        (("s", 1), ("r", 8), ("s", 1)),
    ]
    assert find(reader, engine, snapshot, "source", ("r", 7), ways=["s"]) == [
        (("s", 1), ("r", 7), ("s", 0)),
        (("s", 2), ("r", 7), ("s", 1)),
    ]
    assert find(reader, engine, snapshot, "source", ("r", 7), ("q", 7), ways=["t"]) == [
        (("t", 1), ("r", 7), ("t", 0))
    ]
    assert find(reader, engine, snapshot, "sink", ("s", 9), ("nobody", 1)) == []
    assert find(reader, engine, snapshot, "sink", ("s", 1), ways=[]) == []


def test_memory_answers_for_the_snapshot_it_is_asked_about(builder: StoreBuilder) -> None:
    engine = Engine(builder.root)
    reader = EdgeReader(engine)
    store = Store(builder.root)
    old = store.snapshot()
    builder.batch("s", 2, edges=[("s", 1, 0, "new", 9, 0)])
    new = store.snapshot()
    reader.begin()
    reader.begin()

    assert len(find(reader, engine, new, "sink", ("s", 1))) == 4
    assert len(find(reader, engine, old, "sink", ("s", 1))) == 3

    (builder.root / "batches/s/3f2a90bc-0000000000.json").unlink()

    assert find(reader, engine, store.snapshot(), "sink", ("s", 1)) == [
        (("s", 1), ("new", 9), ("s", 2)),
        (("s", 1), ("r", 8), ("s", 1)),
    ]


@pytest.mark.parametrize(
    ("setting", "limit"), [("MAX_EDGES_HELD", 3), ("MAX_EDGES_PER_BATCH", 1), ("MAX_FILES_HELD", 1)]
)
def test_what_does_not_fit_in_memory_is_read_from_files(
    builder: StoreBuilder, monkeypatch: pytest.MonkeyPatch, setting: str, limit: int
) -> None:
    monkeypatch.setattr(edges, setting, limit)
    engine = Engine(builder.root)
    reader = EdgeReader(engine)
    snapshot = Store(builder.root).snapshot()
    reader.begin()
    reader.begin()

    assert find(reader, engine, snapshot, "source", ("r", 7)) == [
        (("s", 1), ("r", 7), ("s", 0)),
        (("s", 2), ("r", 7), ("s", 1)),
        (("t", 1), ("r", 7), ("t", 0)),
    ]


def test_memory_is_filled_again_when_duckdb_had_to_start_again(builder: StoreBuilder) -> None:
    engine = Engine(builder.root)
    reader = EdgeReader(engine)
    snapshot = Store(builder.root).snapshot()
    for _ in range(2):
        reader.begin()
        assert len(find(reader, engine, snapshot, "sink", ("s", 1))) == 3
    with engine.session() as session:
        session._note(duckdb.InternalException("INTERNAL Error"))
    reader.begin()

    assert engine.generation == 2
    assert len(find(reader, engine, snapshot, "sink", ("s", 1))) == 3


def test_a_file_that_is_gone_when_it_is_loaded_is_an_error(builder: StoreBuilder) -> None:
    engine = Engine(builder.root)
    reader = EdgeReader(engine)
    snapshot = Store(builder.root).snapshot()
    [gone] = (builder.root / "edges/s/3f2a90bc-0000000001").iterdir()
    text = gone.read_bytes()
    gone.unlink()
    reader.begin()
    reader.begin()

    with pytest.raises(StoreError, match=f"gone: `{gone}`"):
        find(reader, engine, snapshot, "sink", ("s", 1))

    gone.write_bytes(text)
    assert len(find(reader, engine, snapshot, "sink", ("s", 1))) == 3


def test_a_packed_file_that_is_damaged_is_an_error(tmp_path: Path) -> None:
    store = StoreBuilder(tmp_path)
    store.sink("s", ["r"])
    store.batch("s", 0, edges=[("s", 1, 0, "r", 7, each) for each in (0, 2, 5)])
    pack_store(tmp_path)
    [path] = tmp_path.glob("edges/s/*/*")
    packed = pq.read_table(path)
    place = packed.column_names.index("hi")
    pq.write_table(packed.set_column(place, "hi", pa.array([6])), path)
    engine = Engine(tmp_path)
    reader = EdgeReader(engine)
    for _ in ("files", "memory"):
        reader.begin()

        with pytest.raises(StoreError, match="does not add up"):
            find(reader, engine, Store(tmp_path).snapshot(), "sink", ("s", 1))


@st.composite
def windows(draw: st.DrawFn) -> list[EdgeTuple]:
    """Windows that slide over two segments, and edges to rows of a named frame."""
    size, step = draw(st.integers(1, 30)), draw(st.integers(1, 10))
    left_out = draw(st.sets(st.integers(0, 300), max_size=40))
    edges: set[EdgeTuple] = set()
    for i in range(draw(st.integers(1, 60))):
        segment = draw(st.sampled_from([7, -8]))
        positions = set(range(i * step, i * step + size)) - left_out
        edges |= {("s", i % 50, 0, "r", segment, each) for each in positions}
        edges |= {
            ("s", i % 50, 0, "q", -i, i),
            ("q", -i, i, "r", segment, min(positions, default=0)),
        }
    return sorted(edges)


def all_edges(
    root: Path, questions: int, near: str, asked: pa.Table, ways: list[str] | None
) -> list[tuple[object, ...]]:
    engine = Engine(root)
    reader = EdgeReader(engine)
    for _ in range(questions):
        reader.begin()
    files = Store(root).snapshot().edge_files(["s"])
    with engine.session() as session:
        found = reader.join(session, files, near, asked, ways)
    engine.close()
    return sorted(tuple(each.values()) for each in found.to_pylist())


@settings(
    max_examples=25, deadline=None, print_blob=True, suppress_health_check=[HealthCheck.too_slow]
)
@given(
    edges=windows(),
    near=st.sampled_from(["sink", "source"]),
    picks=st.lists(st.integers(0, 10_000), min_size=1, max_size=8),
    ways=st.sampled_from([None, ["s"], ["r"], ["q", "s"]]),
)
def test_packed_files_answer_as_raw_ones_do(
    edges: list[EdgeTuple], near: str, picks: list[int], ways: list[str] | None
) -> None:
    ids = {("r", 7, 10_000), ("s", 1, 1)}
    for pick in picks:
        edge = edges[pick % len(edges)]
        ids.add(edge[:3] if near == "sink" else edge[3:])
    columns: Iterable[tuple[object, ...]] = zip(*sorted(ids), strict=True)
    asked = pa.table(dict(zip(("stream", "a", "b"), map(list, columns), strict=True)))
    with tempfile.TemporaryDirectory() as folder:
        root = Path(folder)
        store = StoreBuilder(root)
        store.sink("s", ["r", "q"])
        for number in range(2):
            store.batch("s", number, edges=edges[number::2])
        raw = all_edges(root, 1, near, asked, ways)
        pack_store(root)

        assert all_edges(root, 1, near, asked, ways) == raw
        assert all_edges(root, 2, near, asked, ways) == raw
    assert raw or ways is not None
