"""The size of a store is that of its files, each counted once and in one place."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pyarrow as pa
import pytest

from clew.ask.provenance import open_store
from clew.prov import put_reduced
from store.build import RUN, StoreBuilder, row
from store.road import build_road

if TYPE_CHECKING:
    from pathlib import Path

    from clew.ask.provenance import Provenance


NOW = "2026-01-01T08:00:00Z"


def length_of(root: Path, *patterns: str) -> tuple[int, int]:
    files = [p for pattern in patterns for p in root.glob(pattern) if p.is_file()]
    return sum(p.stat().st_size for p in files), len(files)


def test_the_parts_add_up_to_what_lies_on_the_disk(road: Provenance, road_path: Path) -> None:
    size = road.size()

    assert (size.total.bytes, size.total.files) == length_of(road_path, "**/*")
    assert size.total.edges == 12 + 6 + 2
    assert size.total.bytes_per_edge == size.total.bytes / 20
    assert sum(size.share(a) for a in size.parts.values()) == pytest.approx(1)


def test_each_query_has_its_edges_rows_and_commits(road: Provenance, road_path: Path) -> None:
    parts = road.size().parts

    assert list(parts) == [
        ("accidents", "edges"),
        ("accidents", "rows"),
        ("accidents", "commits"),
        ("stopped", "edges"),
        ("stopped", "rows"),
        ("stopped", "commits"),
        (None, "other"),
    ]
    stopped = parts["stopped", "edges"]
    assert (stopped.bytes, stopped.files) == length_of(road_path, "edges/stopped/**/*")
    assert (stopped.rows, stopped.edges) == (None, 18)
    assert parts["stopped", "rows"].rows == 2 + 4 + 4 + 2 + 2 + 2
    assert parts["accidents", "rows"].rows == 3


def test_what_no_commit_names_is_left_over(tmp_path: Path) -> None:
    builder = StoreBuilder(tmp_path)
    [file] = builder.batch("s", 0, edges=[("s", 1, 1, "r", 0, 0)])
    lost = builder.batch("s", 1, edges=[("s", 2, 1, "r", 0, 1)], rows={"s": [row(2, 1, n=1)]})
    (tmp_path / f"batches/s/{RUN}-0000000001.json").unlink()
    (tmp_path / file).with_name(".part-0.parquet.crc").write_bytes(b"1234")

    with open_store(tmp_path) as provenance:
        size = provenance.size()

    assert (size.parts["s", "leftovers"].bytes, size.parts["s", "leftovers"].files) == length_of(
        tmp_path, *lost
    )
    assert size.parts["s", "edges"].files == 2
    assert size.total.edges == 1


def test_jobs_unfoldings_rounds_points_and_graphs_have_kinds_of_their_own(tmp_path: Path) -> None:
    build_road(tmp_path)
    edges = pa.table({"output": ["tag/a", "tag/a"], "input": ["tweet/1", "tweet/2"]})
    put_reduced(tmp_path, "hashtags", "monday", 0, edges)
    name = f"{RUN}-0000000000-0000000001"
    file = f"edges/stopped/{name}/part-0.parquet"
    (tmp_path / file).parent.mkdir()
    original = next((tmp_path / "edges/stopped").glob("*0000/*.parquet"))
    (tmp_path / file).write_bytes(original.read_bytes())
    said = {"files": [file], "edges": 12, "first": 0, "last": 1, "part": None, "committed": NOW}
    (tmp_path / "unfolded/stopped").mkdir(parents=True)
    (tmp_path / f"unfolded/stopped/{name}.json").write_text(json.dumps(said))
    for path in ("points/stopped/reports/0000000000/p.bin", "live/live/graph.json"):
        (tmp_path / path).parent.mkdir(parents=True)
        (tmp_path / path).write_text("{}")

    with open_store(tmp_path) as provenance:
        size = provenance.size()

    parts = size.parts
    assert parts["hashtags", "repository"].edges == 2
    assert parts["hashtags", "repository"].rows == 1 + 2
    assert parts["stopped", "unfolded"].edges == 12
    assert parts["stopped", "unfolded"].bytes == original.stat().st_size
    assert parts["stopped", "points"].bytes == 2
    assert (parts["live", "live"].bytes, parts["live", "live"].edges) == (2, 0)
    assert size.total.bytes == length_of(tmp_path, "**/*")[0]


def test_sizes_as_data_and_as_text_say_the_same(road: Provenance) -> None:
    size = road.size()

    said = json.loads(json.dumps(size.to_dict()))

    assert said["bytes"] == size.total.bytes
    assert sum(each["bytes"] for each in said["parts"]) == said["bytes"]
    assert sum(each["bytes"] for each in said["kinds"]) == said["bytes"]
    assert repr(size).splitlines()[0].endswith(f"20 edges, {size.total.bytes / 20:,.1f} B an edge")
