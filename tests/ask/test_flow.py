"""The queries of a store as one flow."""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING

from clew.ask.provenance import open_store
from store.build import StoreBuilder

if TYPE_CHECKING:
    from pathlib import Path

    from clew.ask.provenance import Provenance


def test_queries_that_feed_each_other_are_one_flow(road: Provenance) -> None:
    flow = road.flow()

    assert [(each.layer, each.place, each.key) for each in flow.nodes] == [
        (0, 0, "stream:reports"),
        (1, 0, "step:stopped/1"),
        (2, 0, "stream:slow"),
        (3, 0, "step:stopped/3"),
        (4, 0, "stream:stopped"),
        (5, 0, "step:accidents/1"),
        (6, 0, "step:accidents/2"),
        (7, 0, "stream:accidents"),
    ]
    keys = [each.key for each in flow.nodes]
    assert set(flow.links) == set(pairwise(keys))


def test_a_sink_says_how_far_its_query_is(road: Provenance) -> None:
    [stopped] = [each for each in road.flow().nodes if each.key == "stream:stopped"]

    assert (stopped.kind, stopped.rows, stopped.edges, stopped.batches) == ("sink", 4, 18, 2)
    assert (stopped.last_batch, stopped.committed) == (1, "2026-01-01T00:00:02.000000Z")
    assert stopped.to_dict()["watermark"] == "2026-01-01T08:01:00Z"
    assert stopped.lag_seconds == 0.0  # the watermark is ahead of the clock


def test_the_bound_the_lag_and_what_has_no_bound_are_shown(tmp_path: Path) -> None:
    builder = StoreBuilder(tmp_path)
    known: dict[str, object] = {"waits": True, "by_arrival": False, "why": []}
    bounds = {"a": {"micros": 90_000_000, **known}, "b": {"micros": 30_000_000, **known}}
    builder.sink("bounded", ["a", "b"], bounds=bounds)
    builder.sink(
        "open", ["a"], bounds={"a": {**known, "micros": None, "why": ["a join without a time"]}}
    )
    builder.batch("bounded", 0, watermark="2025-12-31T23:59:00.000000Z")

    with open_store(builder.root) as prov:
        nodes = {each.stream: each for each in prov.flow().nodes if each.kind == "sink"}

    assert (nodes["bounded"].bound, nodes["bounded"].lag_seconds) == (90.0, 61.0)
    assert nodes["open"].bound is None
    assert nodes["open"].why == "rows of a stay alive: a join without a time"


def test_a_circle_of_queries_has_layers_too(tmp_path: Path) -> None:
    builder = StoreBuilder(tmp_path)
    builder.sink("one", ["two"])
    builder.sink("two", ["one"])
    builder.batch("one", 0)
    builder.batch("two", 0)

    with open_store(builder.root) as prov:
        flow = prov.flow()

    assert len(flow.nodes) == 4
    assert {each.layer for each in flow.nodes} == {0, 1, 2, 3}


def test_a_query_without_a_graph_is_linked_to_what_it_reads(tmp_path: Path) -> None:
    builder = StoreBuilder(tmp_path)
    builder.source("in")
    builder.stream("job", "sink", writer="job", sources=["in"])
    builder.batch("job", 0)

    with open_store(builder.root) as prov:
        assert prov.flow().links == (("stream:in", "stream:job"),)


def test_an_empty_store_has_an_empty_flow(tmp_path: Path) -> None:
    with open_store(StoreBuilder(tmp_path).root) as prov:
        assert prov.flow().to_dict() == {"nodes": [], "links": []}
        assert repr(prov.flow()) == "The store has no streams yet."
