"""A trace shows itself as text, as tables and as plain data."""

from __future__ import annotations

import dataclasses
import json
import threading
from typing import TYPE_CHECKING

import pytest

from clew.ask.provenance import open_store
from clew.exceptions import StoreError
from clew.model import RowId
from store.build import StoreBuilder, at, row

if TYPE_CHECKING:
    from pathlib import Path

    from clew.ask.provenance import Provenance


def test_the_text_has_a_sentence_the_rows_the_path_and_the_label(road: Provenance) -> None:
    assert repr(road.backward("stopped", {"car": 8})) == (
        "Row 00000000000000500000000000000001 of `stopped` was made from 2 rows of `reports`.\n"
        "\n"
        "row               time                  car  speed  pos\n"
        "part-0.parquet:1  2026-01-01T08:00:05Z    8      0    5\n"
        "part-1.parquet:0  2026-01-01T08:00:15Z    8      0    5\n"
        "\n"
        "path: reports -> filter (speed = 0) -> named (slow) -> "
        "aggregate (window 120 s, car) -> stopped\n"
        "exactness: exact"
    )


def test_a_long_answer_shows_twenty_rows(tmp_path: Path) -> None:
    builder = StoreBuilder(tmp_path)
    builder.sink("s", ["r"])
    builder.batch("s", 0, edges=[("s", 1, 1, "r", 0, i) for i in range(1500)])

    trace = open_store(tmp_path).backward("s", RowId("s", 1, 1))

    lines = repr(trace).splitlines()
    assert lines[2:4] == ["row", "00000000000000000000000000000000"]
    assert lines[23] == "and 1,480 more"
    assert (len(trace), len(list(trace.rows))) == (1500, 1500)
    assert len(trace.to_dict(limit=3)["rows"]) == 3
    assert trace.to_dict(limit=3)["left_out"] == 1497


def test_equal_file_names_in_different_folders_are_written_out(tmp_path: Path) -> None:
    builder = StoreBuilder(tmp_path)
    builder.sink("s", ["r"])
    rows = [row(i, 4, segment=f"{folder}/p", n=i) for i, folder in enumerate("ab")]
    edges = [("s", 1, 1, "r", i, 4) for i in range(2)]
    builder.batch("s", 0, edges=edges, rows={"r": rows})

    text = repr(open_store(tmp_path).backward("s", RowId("s", 1, 1)))

    assert "\na/p:4  0\nb/p:4  1\n" in text


def test_plain_data_can_be_written_as_json(road: Provenance) -> None:
    data = road.backward("accidents", {"pos": 5}, scope="stopped").to_dict()

    assert json.loads(json.dumps(data)) == data
    assert data["edges"][0] == {
        "sink": "accidents",
        "sink_id": "00000000000000050000000000000005",
        "source": "stopped",
        "source_id": "00000000000000460000000000000001",
    }
    assert data["rows"][0] == {
        "stream": "stopped",
        "id": "00000000000000460000000000000001",
        "segment": None,
        "position": None,
        "time": None,
        "row": {"car": 7, "n": 2},
    }
    assert (data["complete"], data["gaps"], data["scope"]) == (True, [], ["stopped"])
    assert data["seconds"] > 0


def test_rows_of_several_streams_are_one_table_ordered_by_time_stream_and_id(
    tmp_path: Path,
) -> None:
    builder = StoreBuilder(tmp_path)
    builder.sink("s", ["q", "r"])
    rows = {
        "q": [row(2, 0, time=at("08:00:02"), n="x"), row(3, 0, time=None, n="y")],
        "r": [row(2, 0, time=at("08:00:02"), n=1), row(1, 0, time=at("08:00:01"), m=2.5)],
    }
    edges = [("s", 1, 1, stream, each["a"], 0) for stream in rows for each in rows[stream]]
    builder.batch("s", 0, edges=edges, rows=rows)

    trace = open_store(tmp_path).backward("s", RowId("s", 1, 1))

    assert [(i.stream, i.a) for i in trace.rows.ids()] == [("r", 1), ("q", 2), ("r", 2), ("q", 3)]
    table = trace.to_arrow()
    assert table.column_names == ["stream", "id", "segment", "position", "time", "n", "m"]
    assert table.column("n").to_pylist() == [None, "x", "1", "y"]
    assert table.column("m").to_pylist() == [2.5, None, None, None]
    assert list(trace.to_pandas()["stream"]) == ["r", "q", "r", "q"]


def test_a_trace_cannot_be_changed(road: Provenance) -> None:
    trace = road.backward("stopped", {"car": 8})

    with pytest.raises(dataclasses.FrozenInstanceError):
        trace.path = ()  # type: ignore[misc]


def test_the_path_shows_each_side_of_a_join(tmp_path: Path) -> None:
    builder = StoreBuilder(tmp_path)
    nodes = [
        {"id": 0, "kind": "source", "label": "l", "inputs": []},
        {"id": 1, "kind": "source", "label": "r", "inputs": []},
        {"id": 2, "kind": "filter", "label": "x > 0", "inputs": [0]},
        {"id": 3, "kind": "join", "label": "inner, k", "inputs": [2, 1]},
        {"id": 4, "kind": "select", "label": "", "inputs": [3]},
    ]
    graph = {"nodes": nodes, "sink": 4, "sources": ["l", "r"], "named": {}}
    builder.sink("s", ["l", "r"], graph=graph)
    builder.batch("s", 0, edges=[("s", 1, 1, "l", 1, 1), ("s", 1, 1, "r", 1, 1)])

    assert open_store(tmp_path).backward("s", RowId("s", 1, 1)).path == (
        "l -> filter (x > 0) -> join (inner, k) -> select -> s",
        "r -> join (inner, k) -> select -> s",
    )


def test_a_graph_with_very_many_ways_is_cut_short(tmp_path: Path) -> None:
    builder = StoreBuilder(tmp_path)
    nodes = [{"id": 0, "kind": "source", "label": "r", "inputs": []}]
    nodes += [
        {"id": i, "kind": "union", "label": "", "inputs": [i - 1, i - 1]} for i in range(1, 40)
    ]
    graph = {"nodes": nodes, "sink": 39, "sources": ["r"], "named": {}}
    builder.sink("s", ["r"], graph=graph)
    builder.batch("s", 0, edges=[("s", 1, 1, "r", 1, 1)])

    path = open_store(tmp_path).backward("s", RowId("s", 1, 1)).path

    assert len(path) == 17
    assert path[-1] == "r -> ... (more ways) -> s"


def test_a_stream_without_graph_still_has_a_path(tmp_path: Path) -> None:
    builder = StoreBuilder(tmp_path)
    builder.batch("s", 0, edges=[("s", 1, 1, "r", 1, 1)], rows={"r": [row(1, 1, n=1)]})

    assert open_store(tmp_path).backward("s", RowId("s", 1, 1)).path == ("r -> s",)


def test_an_edge_file_that_vanished_is_an_error_and_not_a_shorter_answer(tmp_path: Path) -> None:
    builder = StoreBuilder(tmp_path)
    builder.sink("s", ["r"])
    [path] = builder.batch("s", 0, edges=[("s", 1, 1, "r", 1, 1)])
    builder.batch("s", 1, edges=[("s", 1, 1, "r", 2, 2)])
    provenance = open_store(tmp_path)
    provenance.backward("s", RowId("s", 1, 1))
    (tmp_path / path).unlink()

    with pytest.raises(StoreError, match=f"a file of the store is gone: `{tmp_path}/{path}`"):
        provenance.backward("s", RowId("s", 1, 1))

    builder.batch("s", 0, edges=[("s", 1, 1, "r", 3, 3)])
    for _ in range(3):
        found = provenance.backward("s", RowId("s", 1, 1)).rows.ids()
        assert found == [RowId("r", 2, 2), RowId("r", 3, 3)]


def test_one_open_store_answers_several_threads_while_batches_arrive(tmp_path: Path) -> None:
    builder = StoreBuilder(tmp_path)
    builder.sink("s", ["r"])
    builder.batch("s", 0, edges=[("s", 0, 0, "r", 0, 0)])
    provenance = open_store(tmp_path)
    wrong: list[object] = []

    def ask() -> None:
        for _ in range(10):
            found = provenance.backward("s", RowId("s", 0, 0)).rows.ids()
            if found != [RowId("r", 0, 0)]:
                wrong.append(found)

    threads = [threading.Thread(target=ask) for _ in range(4)]
    for each in threads:
        each.start()
    for number in range(1, 10):
        builder.batch("s", number, edges=[("s", number, 0, "r", number, 0)])
    for each in threads:
        each.join()

    assert wrong == []
    assert provenance.streams()[1].batches == 10
