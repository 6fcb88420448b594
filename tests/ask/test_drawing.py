"""A drawing shows what a plain-Python model of it says, and never more than it may."""

from __future__ import annotations

import json
import pickle
import random
from collections import Counter, defaultdict
from typing import TYPE_CHECKING, Any

import pytest

from clew.ask.provenance import open_store
from clew.cli import main
from clew.exceptions import QueryError
from clew.model import RowId
from store.build import DAY, StoreBuilder, at, row

if TYPE_CHECKING:
    import datetime as dt
    from pathlib import Path

    from clew.ask.provenance import Provenance
    from clew.ask.trace import Trace
    from clew.show.drawing import Drawing

SEEDS = range(8)
FEEDS = {"s0": ["r0", "r1"], "s1": ["s0", "r1"], "s2": ["s0"], "s3": ["s1", "s2"]}


def shape(drawing: Drawing) -> list[list[str]]:
    """Return what stands in each layer, from top to bottom."""
    layers: list[list[str]] = [[] for _ in range(drawing.layers)]
    for node in drawing.nodes:
        layers[node.layer].append(f"{node.label} {node.detail}".strip())
        assert node.place == len(layers[node.layer]) - 1
    return layers


def key(row: RowId) -> str:
    return f"row:{row.stream}/{row.text}"


class World:
    """A store of random rows in a diamond of queries, and what is in it."""

    def __init__(self, root: Path, seed: int, timed: float = 0.8) -> None:
        print("seed", seed)
        self.timed = timed
        self.random = random.Random(seed)
        self.builder = StoreBuilder(root)
        self.times: dict[RowId, dt.datetime | None] = {}
        self.edges: list[tuple[RowId, RowId]] = []
        for name in ("r0", "r1"):
            self.builder.source(name)
        for name, sources in FEEDS.items():
            self.builder.sink(name, sources)
        self.batch = 0

    def grow(self, most: int, *, after: int = 0) -> None:
        """Commit a batch of each query; its rows are later than `after` seconds."""
        rows: dict[str, list[RowId]] = defaultdict(list)
        for each in self.times:
            rows[each.stream].append(each)
        for name in ("r0", "r1"):
            rows[name] += [self.new(name, after) for _ in range(self.random.randint(1, most))]
        for name, sources in FEEDS.items():
            fresh = [self.new(name, after) for _ in range(self.random.randint(1, 1 + most // 4))]
            inputs = [each for source in sources for each in rows[source]]
            found = [
                (sink, source)
                for sink in fresh
                for source in self.random.sample(inputs, self.random.randint(1, len(inputs)))
            ]
            rows[name] += fresh
            self.edges += found
            written: dict[str, list[dict[str, Any]]] = defaultdict(list)
            for each in dict.fromkeys([*fresh, *(source for _, source in found)]):
                written[each.stream].append(row(each.a, each.b, time=self.times[each], n=each.b))
            edges = [(s.stream, s.a, s.b, r.stream, r.a, r.b) for s, r in found]
            self.builder.batch(name, self.batch, edges=edges, rows=written)
        self.batch += 1

    def new(self, stream: str, after: int) -> RowId:
        half = self.random.choice([self.random.randint(-3, 3), self.random.getrandbits(60)])
        made = RowId(stream, half, len(self.times))
        seconds = after + self.random.randint(0, 5)
        timed = self.random.random() < self.timed
        self.times[made] = at(f"08:00:{seconds:02d}") if timed else None
        return made

    def rank(self, row: RowId) -> tuple[object, ...]:
        time = self.times[row]
        return (time is None, time or DAY, row.stream, row.a, row.b)

    def reached(self, start: RowId, direction: str, depth: int) -> set[tuple[RowId, RowId]]:
        """Return the edges that an answer follows, up to a number of levels."""
        near = 0 if direction == "backward" else 1
        seen, level, found = {start}, {start}, set[tuple[RowId, RowId]]()
        for _ in range(depth):
            new = {edge for edge in self.edges if edge[near] in level}
            found |= new
            level = {edge[1 - near] for edge in new} - seen
            seen |= level
        return found


def model(
    world: World, start: RowId, direction: str, edges: set[tuple[RowId, RowId]]
) -> dict[RowId, str]:
    """Say under which key each row is found, in plain Python and without a limit."""
    near = 0 if direction == "backward" else 1
    order = ["s3", "s1", "s2", "s0", "r0", "r1"] if near == 0 else ["s0", "s1", "s2", "s3"]
    order = [start.stream, *(each for each in order if each != start.stream)]
    keys = {start: key(start)}
    places = {key(start): (0, world.rank(start))}
    for number, stream in enumerate(order[1:], 1):
        rows = {row for edge in edges for row in edge if row.stream == stream}
        groups = defaultdict(list)
        for each in sorted(rows, key=world.rank):
            nodes = [keys[e[near]] for e in edges if e[1 - near] == each and e[near] in keys]
            groups[min(nodes, key=lambda node: places[node])].append(each)
        of_rows = {}
        for parent in sorted(groups, key=lambda node: places[node]):
            first = 5 if parent.startswith("row:") else 0
            for each in groups[parent][:first]:
                of_rows[each] = key(each)
                places[key(each)] = (2 * number, world.rank(each))
            for each in groups[parent][first:]:
                of_rows[each] = f"group:{stream}/{parent}"
                places[of_rows[each]] = (2 * number + 1, (*places[parent],))
        keys |= of_rows
    return keys


def check(drawing: Drawing, limit: int) -> None:
    """Check what holds for every drawing."""
    data = drawing.to_dict()
    assert json.loads(json.dumps(data)) == data
    assert len(drawing.nodes) <= limit
    nodes = {node.key: node for node in drawing.nodes}
    assert len(nodes) == len(drawing.nodes)
    assert drawing.shown == sum(node.kind == "row" for node in drawing.nodes)
    assert drawing.left_out == drawing.rows - drawing.shown
    targets = defaultdict(set)
    for link in drawing.links:
        assert nodes[link.source].layer < nodes[link.target].layer
        assert "step" in (nodes[link.source].kind, nodes[link.target].kind)
        targets[link.source].add(link.target)
    for sink, source in drawing.edges:
        reach, todo = set[str](), [source]
        while todo:
            new = targets[todo.pop()] - reach
            reach |= new
            todo += [each for each in new if nodes[each].kind == "step"]
        assert sink in reach


def traces(world: World) -> list[tuple[RowId, Trace]]:
    prov = open_store(world.builder.root)
    first = world.edges[0][1]
    last = world.edges[-1][0]
    return [(last, prov.backward("s3", last)), (first, prov.forward(first.stream, first))]


@pytest.mark.parametrize("seed", SEEDS)
def test_a_drawing_is_what_a_plain_model_says(tmp_path: Path, seed: int) -> None:
    world = World(tmp_path, seed)
    world.grow(random.Random(seed).choice([3, 9, 30]))

    for start, trace in traces(world):
        for depth in (None, 0, 1, 2):
            drawing = trace.drawing(5000, depth)
            check(drawing, 5000)
            edges = world.reached(start, trace.direction, 9 if depth is None else depth)
            keys = model(world, start, trace.direction, edges)
            counts = Counter(keys.values())
            assert {n.key: n.count for n in drawing.nodes if n.kind != "step"} == counts
            assert set(drawing.edges) == {(keys[sink], keys[source]) for sink, source in edges}
            every = world.reached(start, trace.direction, 9)
            assert drawing.rows == len({start, *(row for edge in every for row in edge)})
            assert drawing.beyond == drawing.rows - len(keys)


@pytest.mark.parametrize("seed", SEEDS)
def test_a_small_drawing_still_accounts_for_every_row(tmp_path: Path, seed: int) -> None:
    world = World(tmp_path, seed)
    world.grow(40)

    for start, trace in traces(world):
        every = trace.drawing(5000)
        groups = [node.key for node in every.nodes if node.kind == "group"]
        for limit in (2, 3, 7, 12, 20, 60):
            for expand in ((), groups):
                drawing = trace.drawing(limit, expand=expand)
                check(drawing, limit)
                assert any(node.key == key(start) and node.asked for node in drawing.nodes)
                if limit >= 12:  # all six streams and a step for each of four queries
                    assert sum(node.count or 0 for node in drawing.nodes) == drawing.rows
        order = [node.key for node in every.nodes if node.layer == 0 and node.kind == "row"]
        ids = {key(each): each for each in world.times}
        assert order == sorted(order, key=lambda each: world.rank(ids[each]))


@pytest.mark.parametrize("seed", SEEDS)
def test_rows_that_come_later_do_not_move_those_that_are_shown(tmp_path: Path, seed: int) -> None:
    # Rows without a time come last of all, so rows with one do come before them.
    world = World(tmp_path, seed, timed=1.0)
    world.grow(20)
    first = world.edges[0][1]
    prov = open_store(tmp_path)
    before = prov.forward(first.stream, first).drawing(5000)

    world.grow(20, after=30)
    after = prov.forward(first.stream, first).drawing(5000)

    kept = [n.key for n in before.nodes if n.kind == "row"]
    now = [node.key for node in after.nodes]
    for stream in ("r0", "r1", *FEEDS):
        ours = [each for each in kept if each.startswith(f"row:{stream}/")]
        assert [each for each in now if each in set(ours)] == ours
    steps, later = ([n for n in each.nodes if n.kind == "step"] for each in (before, after))
    if len(steps) == len(later):  # no query was reached for the first time
        assert steps == later
        assert before.layers == after.layers


def test_an_accident_is_drawn_through_both_queries(road: Provenance) -> None:
    drawing = road.backward("accidents", {"pos": 5}).drawing()

    assert shape(drawing) == [
        [
            "part-0.parquet:0 car=7, speed=0, pos=5",
            "part-0.parquet:1 car=8, speed=0, pos=5",
            "part-0.parquet:3 car=7, speed=0, pos=5",
            "part-1.parquet:0 car=8, speed=0, pos=5",
        ],
        ["filter speed = 0"],
        ["named slow"],
        ["aggregate window 120 s, car"],
        ["00000000…0001 car=7, n=2", "00000000…0001 car=8, n=2"],
        ["aggregate window 30 s, pos"],
        ["filter cars > 1"],
        ["00000000…0005 pos=5, cars=2"],
    ]
    assert [node.key for node in drawing.nodes if node.asked] == [
        "row:accidents/00000000000000050000000000000005"
    ]
    assert ("step:stopped/1", "step:stopped/2") in {(x.source, x.target) for x in drawing.links}
    assert repr(drawing).splitlines()[:3] == [
        "7 rows, 7 shown",
        "reports",
        "  part-0.parquet:0  car=7, speed=0, pos=5",
    ]


def test_a_named_frame_takes_the_place_of_its_step_when_its_rows_are_drawn(
    road: Provenance,
) -> None:
    drawing = road.backward("stopped", {"car": 8}, intermediate=True).drawing()

    assert shape(drawing)[1:4] == [
        ["filter speed = 0"],
        ["00000000…0001 car=8", "00000000…0003 car=8"],
        ["aggregate window 120 s, car"],
    ]
    assert len(drawing.edges) == 6


def test_a_window_shows_five_rows_and_how_many_more(tmp_path: Path) -> None:
    builder = StoreBuilder(tmp_path)
    builder.source("r")
    builder.sink("s", ["r"])
    rows = [row(0, i, segment="f", time=at(f"08:00:{i // 4:02d}"), n=i) for i in range(192)]
    edges = [("s", 1, 1, "r", 0, i) for i in range(192)]
    builder.batch("s", 0, edges=edges, rows={"r": rows, "s": [row(1, 1, n=192)]})
    trace = open_store(tmp_path).backward("s", RowId("s", 1, 1))
    group = f"group:r/row:s/{RowId('s', 1, 1).text}"

    drawing = trace.drawing()
    expanded = trace.drawing(100, expand=[group])

    last = drawing.nodes[5]
    assert (last.key, last.count, last.label) == (group, 187, "187 more")
    assert last.detail == "2026-01-01T08:00:01Z to 08:00:47Z"
    assert (drawing.rows, drawing.shown, drawing.left_out) == (193, 6, 187)
    # 100 nodes: the result, the filter, the group that is left, and 97 rows.
    assert [(n.kind, n.count) for n in expanded.nodes[96:]] == [
        ("row", 1), ("group", 95), ("step", None), ("row", 1)
    ]  # fmt: skip


def test_a_job_of_another_system_is_one_step(tmp_path: Path) -> None:
    builder = StoreBuilder(tmp_path)
    builder.sink("s", ["r"], graph={"sources": ["r"]})
    builder.batch("s", 0, edges=[("s", 1, 1, "r", 1, i) for i in range(2)])

    drawing = open_store(tmp_path).backward("s", RowId("s", 1, 1)).drawing()

    assert shape(drawing)[1:] == [["query s"], ["00000000…0001"]]
    assert [(x.source[:4], x.target[:4]) for x in drawing.links] == [
        ("row:", "step"), ("row:", "step"), ("step", "row:")
    ]  # fmt: skip


def test_streams_that_feed_each_other_are_drawn(tmp_path: Path) -> None:
    builder = StoreBuilder(tmp_path)
    builder.sink("x", ["y"])
    builder.sink("y", ["x"])
    builder.batch("x", 0, edges=[("x", 1, 1, "y", 1, 1)])
    builder.batch("y", 0, edges=[("y", 1, 1, "x", 2, 2)])

    drawing = open_store(tmp_path).backward("x", RowId("x", 1, 1)).drawing()

    assert (drawing.rows, drawing.shown, len(drawing.edges)) == (3, 3, 2)
    assert [node.stream for node in drawing.nodes if node.kind == "row"] == ["y", "x", "x"]


def test_a_stream_that_feeds_itself_stands_behind_what_else_feeds_it(tmp_path: Path) -> None:
    builder = StoreBuilder(tmp_path)
    builder.source("z")
    builder.sink("s", ["z", "s"], graph={"sources": ["z", "s"]})
    edges = [("s", 1, 1, "s", 2, 2), ("s", 2, 2, "z", 0, 0), ("s", 1, 1, "z", 0, 0)]
    builder.batch("s", 0, edges=edges)

    drawing = open_store(tmp_path).backward("s", RowId("s", 1, 1)).drawing()

    assert [len(layer) for layer in shape(drawing)] == [1, 1, 2]
    assert [node.asked for node in drawing.nodes if node.layer == 2] == [True, False]
    assert len(drawing.edges) == 3


def test_a_row_without_results_is_drawn_alone(road: Provenance) -> None:
    drawing = road.forward("reports", RowId("reports", 9, 9)).drawing()

    assert [(node.asked, node.label, node.layer) for node in drawing.nodes] == [
        (True, "00000000…0009", 0)
    ]
    assert (drawing.links, drawing.edges, drawing.layers) == ((), (), 1)


def test_an_answer_outlives_its_store(tmp_path: Path, road_path: Path) -> None:
    with open_store(road_path) as prov:
        trace = prov.backward("accidents", {"pos": 5})
        whole = trace.drawing().to_dict()

    keys = [node.key for node in trace.drawing().nodes]

    assert keys == [node["key"] for node in whole["nodes"]]
    again = pickle.loads(pickle.dumps(trace))
    assert [node.key for node in again.drawing().nodes] == keys


def test_python_and_the_command_line_give_the_same(
    road: Provenance, capsys: pytest.CaptureFixture[str]
) -> None:
    trace = road.backward("accidents", {"pos": 5}, intermediate=True)
    question = [road.path, "accidents", "pos=5", "--intermediate", "--json"]

    assert main(["draw", *question, "--limit", "20", "--depth", "2"]) == 0
    assert json.loads(capsys.readouterr().out) == trace.drawing(20, 2).to_dict()
    assert main(["timeline", *question, "--limit", "3"]) == 0
    assert json.loads(capsys.readouterr().out) == trace.timeline(3).to_dict()


@pytest.mark.parametrize(("limit", "depth"), [(1, None), (10, -1)])
def test_a_drawing_of_nothing_is_refused(road: Provenance, limit: int, depth: int | None) -> None:
    trace = road.backward("stopped", {"car": 8})

    with pytest.raises(QueryError, match="at least 2 nodes|0 or more"):
        trace.drawing(limit, depth)
