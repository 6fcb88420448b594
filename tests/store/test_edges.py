"""Edges are the same from files and from memory."""

from __future__ import annotations

from typing import TYPE_CHECKING

import duckdb
import pyarrow as pa
import pytest

from clew.exceptions import StoreError
from clew.store import edges
from clew.store.edges import EdgeReader
from clew.store.engine import Engine
from clew.store.reader import Store
from store.build import StoreBuilder

if TYPE_CHECKING:
    from pathlib import Path

    from clew.store.reader import Snapshot

    Found = list[tuple[object, ...]]


@pytest.fixture
def builder(tmp_path: Path) -> StoreBuilder:
    store = StoreBuilder(tmp_path)
    store.sink("s", ["r", "q"])
    store.sink("t", ["r"])
    store.batch("s", 0, edges=[("s", 1, 0, "r", 7, 0), ("s", 1, 0, "q", 7, 0)])
    store.batch("t", 0, edges=[("t", 1, 0, "r", 7, 0)])
    store.batch("s", 1, edges=[("s", 1, 0, "r", 8, 0), ("s", 2, 0, "r", 7, 0)])
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


@pytest.mark.parametrize(("setting", "limit"), [("MAX_EDGES_HELD", 3), ("MAX_EDGES_PER_BATCH", 1)])
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
    gone = builder.root / "edges/s/3f2a90bc-0000000001/part-0.parquet"
    text = gone.read_bytes()
    gone.unlink()
    reader.begin()
    reader.begin()

    with pytest.raises(StoreError, match=f"gone: `{gone}`"):
        find(reader, engine, snapshot, "sink", ("s", 1))

    gone.write_bytes(text)
    assert len(find(reader, engine, snapshot, "sink", ("s", 1))) == 3
