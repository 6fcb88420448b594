"""Backward: from a row to all rows it was made from, over any number of queries."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from clew.ask.provenance import open_store
from clew.exceptions import QueryError, RowNotFoundError, UnknownStreamError
from clew.model import Edge, GapKind, RowId
from clew.store.records import Gap
from store.build import RUN, StoreBuilder, row

if TYPE_CHECKING:
    from pathlib import Path

    from clew.ask.provenance import Provenance

ACCIDENT = RowId("accidents", 5, 5)


def reports(*places: tuple[int, int]) -> list[RowId]:
    return [RowId("reports", a, b) for a, b in places]


def test_a_row_traces_to_its_source_rows_with_their_content(road: Provenance) -> None:
    trace = road.backward("stopped", {"car": 8})

    assert trace.rows.ids() == reports((0, 1), (1, 0))
    assert [dict(each) for each in trace.sources] == [{"car": 8, "speed": 0, "pos": 5}] * 2
    assert trace.edges == tuple(
        Edge(RowId("stopped", 80, 1), source) for source in reports((0, 1), (1, 0))
    )
    assert (trace.direction, trace.exactness, trace.complete) == ("backward", "exact", True)


def test_an_answer_goes_on_through_a_sink_that_feeds_another_query(road: Provenance) -> None:
    trace = road.backward("accidents", ACCIDENT)

    assert trace.rows.ids() == reports((0, 0), (0, 1), (0, 3), (1, 0))
    assert [len(hop) for hop in trace.hops] == [2, 4]
    assert trace.hops[0][0] == Edge(ACCIDENT, RowId("stopped", 70, 1))
    assert trace.start[0] == {"pos": 5, "cars": 2}


def test_the_path_names_the_operators_in_the_order_rows_travel(road: Provenance) -> None:
    assert road.backward("accidents", ACCIDENT).path == (
        "reports -> filter (speed = 0) -> named (slow) -> aggregate (window 120 s, car) -> stopped",
        "stopped -> aggregate (window 30 s, pos) -> filter (cars > 1) -> accidents",
    )


def test_named_frames_are_passed_by(road: Provenance) -> None:
    trace = road.backward("stopped", {"car": 8})

    assert {edge.source.stream for edge in trace.edges} == {"reports"}


def test_several_rows_have_one_answer(road: Provenance) -> None:
    trace = road.backward("stopped", [{"car": 8}, {"car": 9}, RowId("stopped", 80, 1)])

    assert trace.start.ids() == [RowId("stopped", 80, 1), RowId("stopped", 90, 1)]
    assert trace.rows.ids() == reports((0, 1), (1, 0), (1, 4))


def test_rows_of_an_answer_can_be_asked_about_at_once(road: Provenance) -> None:
    trace = road.backward("stopped", road.rows("stopped"))

    assert trace.rows.ids() == reports((0, 0), (0, 1), (0, 3), (1, 0), (1, 4))


def test_a_scope_stops_at_a_stream(road: Provenance) -> None:
    trace = road.backward("accidents", ACCIDENT, scope="stopped")

    assert trace.rows.ids() == [RowId("stopped", 70, 1), RowId("stopped", 80, 1)]
    assert trace.path == (
        "stopped -> aggregate (window 30 s, pos) -> filter (cars > 1) -> accidents",
    )
    assert trace.scope == ("stopped",)


def test_a_scope_stops_at_a_named_frame_of_a_query_further_up(road: Provenance) -> None:
    trace = road.backward("accidents", ACCIDENT, scope=["slow"])

    assert trace.rows.ids() == [RowId("slow", 700, i) for i in range(4)]
    assert trace.path[0] == "slow -> aggregate (window 120 s, car) -> stopped"


def test_several_scopes_are_kept_apart_by_stream(road: Provenance) -> None:
    trace = road.backward("stopped", {"car": 8}, scope=["slow", "reports"])

    assert trace.of("slow").ids() == [RowId("slow", 700, 1), RowId("slow", 700, 3)]
    assert trace.of("reports").ids() == reports((0, 1), (1, 0))
    assert trace.rows.streams == ("reports", "slow")
    assert len(trace) == 4


def test_a_row_of_a_named_frame_traces_to_its_sources(road: Provenance) -> None:
    trace = road.backward("slow", RowId("slow", 700, 2))

    assert trace.rows.ids() == reports((0, 3))
    assert trace.path == ("reports -> filter (speed = 0) -> slow",)


def test_every_row_on_the_way_is_in_the_answer(road: Provenance) -> None:
    ends = road.backward("accidents", ACCIDENT)
    every = road.backward("accidents", ACCIDENT, intermediate=True)

    assert every.rows.streams == ("reports", "slow", "stopped")
    assert every.of("reports").ids() == ends.of("reports").ids()
    stopped = road.backward("accidents", ACCIDENT, scope="stopped")
    assert every.of("stopped").ids() == stopped.rows.ids()
    slow = road.backward("accidents", ACCIDENT, scope="slow")
    assert every.of("slow").ids() == slow.rows.ids()
    # And back again: what the first report led to, on every stream.
    [report, *_] = ends.rows
    led = road.forward("reports", report, intermediate=True)
    assert set(led.rows.streams) == {"accidents", "slow", "stopped"}
    with pytest.raises(QueryError, match="Leave one of them out"):
        road.backward("accidents", ACCIDENT, scope="slow", intermediate=True)


def test_an_unknown_scope_is_refused(road: Provenance) -> None:
    with pytest.raises(UnknownStreamError, match="no stream `lanes`"):
        road.backward("accidents", ACCIDENT, scope="lanes")


def test_a_scope_off_the_way_names_the_streams_on_it(road: Provenance) -> None:
    with pytest.raises(QueryError) as error:
        road.backward("stopped", {"car": 8}, scope=["accidents"])

    assert str(error.value) == (
        "the scope `accidents` does not lie on the way backward from `stopped`.\n\n"
        "The streams on the way are: `reports`, `slow`."
    )


def test_an_empty_scope_is_refused(road: Provenance) -> None:
    with pytest.raises(QueryError, match="the scope is empty"):
        road.backward("stopped", {"car": 8}, scope=[])


def test_branches_that_do_not_lead_to_the_scope_are_not_in_the_answer(tmp_path: Path) -> None:
    builder = StoreBuilder(tmp_path)
    builder.sink("joined", ["left", "right"])
    builder.batch("joined", 0, edges=[("joined", 1, 1, s, 2, 2) for s in ("left", "right")])

    trace = open_store(tmp_path).backward("joined", RowId("joined", 1, 1), scope="left")

    assert trace.rows.ids() == [RowId("left", 2, 2)]
    assert trace.edges == (Edge(RowId("joined", 1, 1), RowId("left", 2, 2)),)


def test_an_unknown_row_names_the_batches(road: Provenance) -> None:
    with pytest.raises(RowNotFoundError, match=r"holds batches 0 to 1 of `stopped` \(run 3f2a90bc"):
        road.backward("stopped", "0" * 31 + "1")


def test_one_unknown_row_among_several_is_refused(road: Provenance) -> None:
    with pytest.raises(RowNotFoundError, match="00000000000000010000000000000002"):
        road.backward("stopped", [RowId("stopped", 80, 1), RowId("stopped", 1, 2)])


def test_a_row_made_from_nothing_has_an_empty_answer(tmp_path: Path) -> None:
    builder = StoreBuilder(tmp_path)
    builder.sink("total", ["reports"])
    builder.batch("total", 0, rows={"total": [row(1, 1, n=0)]})

    trace = open_store(tmp_path).backward("total", {"n": 0})

    assert (len(trace), trace.edges, trace.complete) == (0, (), True)
    assert trace.start[0] == {"n": 0}


def test_a_source_row_has_nothing_behind_it(road: Provenance) -> None:
    trace = road.backward("reports", "part-0.parquet:0")

    assert (len(trace), trace.edges) == (0, ())


def test_rows_without_content_are_in_the_answer_by_their_ids(tmp_path: Path) -> None:
    builder = StoreBuilder(tmp_path)
    builder.sink("s", ["r"])
    edges = [("s", 1, 1, "r", 2, n) for n in (5, 3)]
    builder.batch("s", 0, edges=edges, rows={"r": [row(2, 5, segment="f", n=7)]})

    trace = open_store(tmp_path).backward("s", RowId("s", 1, 1))

    assert trace.rows.ids() == [RowId("r", 2, 3), RowId("r", 2, 5)]
    assert [(each.known, dict(each)) for each in trace.rows] == [(False, {}), (True, {"n": 7})]
    assert trace.to_dict()["rows"][0]["row"] is None


def test_runs_of_one_writer_are_one_answer(tmp_path: Path) -> None:
    builder = StoreBuilder(tmp_path)
    builder.sink("s", ["r"])
    builder.batch("s", 0, run="aaaaaaaa", edges=[("s", 1, 1, "r", 0, 0), ("s", 1, 1, "r", 0, 1)])
    builder.batch("s", 0, run="bbbbbbbb", edges=[("s", 1, 1, "r", 0, 1), ("s", 1, 1, "r", 0, 2)])

    trace = open_store(tmp_path).backward("s", RowId("s", 1, 1))

    assert trace.rows.ids() == [RowId("r", 0, 0), RowId("r", 0, 1), RowId("r", 0, 2)]
    assert len(trace.edges) == 3


def test_streams_in_a_circle_come_to_an_end(tmp_path: Path) -> None:
    builder = StoreBuilder(tmp_path)
    builder.sink("ping", ["pong", "r"])
    builder.sink("pong", ["ping"])
    builder.batch("ping", 0, edges=[("ping", 2, 0, "pong", 1, 0), ("ping", 1, 0, "r", 9, 9)])
    builder.batch("pong", 0, edges=[("pong", 1, 0, "ping", 1, 0), ("pong", 1, 0, "ping", 2, 0)])

    trace = open_store(tmp_path).backward("ping", RowId("ping", 2, 0))

    assert trace.rows.ids() == [RowId("r", 9, 9)]
    assert len(trace.edges) == 4


def test_a_row_reached_over_ways_of_different_length_is_there_once(tmp_path: Path) -> None:
    builder = StoreBuilder(tmp_path)
    builder.sink("far", ["near", "r"])
    builder.sink("near", ["r"])
    builder.batch("far", 0, edges=[("far", 1, 0, "near", 1, 0), ("far", 1, 0, "r", 5, 5)])
    builder.batch("near", 0, edges=[("near", 1, 0, "r", 5, 5), ("near", 1, 0, "r", 6, 6)])

    trace = open_store(tmp_path).backward("far", RowId("far", 1, 0))

    assert trace.rows.ids() == [RowId("r", 5, 5), RowId("r", 6, 6)]


@pytest.mark.parametrize(("labels", "worst"), [(("exact", "superset"), "superset")])
def test_exactness_is_the_worst_on_the_way(
    tmp_path: Path, labels: tuple[str, str], worst: str
) -> None:
    builder = StoreBuilder(tmp_path)
    builder.sink("far", ["near"], exactness=labels[0])
    builder.sink("near", ["r"], exactness=labels[1])
    builder.sink("other", ["near"], exactness="coarse")
    builder.batch("far", 0, edges=[("far", 1, 0, "near", 1, 0)])
    builder.batch("near", 0, edges=[("near", 1, 0, "r", 5, 5)])
    provenance = open_store(tmp_path)

    assert provenance.backward("far", RowId("far", 1, 0)).exactness == worst
    assert provenance.backward("far", RowId("far", 1, 0), scope="near").exactness == "superset"


def test_a_source_whose_rows_are_not_told_apart_exactly_shows(tmp_path: Path) -> None:
    builder = StoreBuilder(tmp_path)
    builder.source("r", identity={"kind": "content", "label": "superset"})
    builder.sink("s", ["r"])
    builder.batch("s", 0, edges=[("s", 1, 0, "r", 5, 5)])

    assert open_store(tmp_path).backward("s", RowId("s", 1, 0)).exactness == "superset"


def test_a_gap_elsewhere_does_not_touch_a_row_that_is_there(tmp_path: Path) -> None:
    builder = StoreBuilder(tmp_path)
    builder.sink("s", ["r"])
    builder.batch("s", 0, edges=[("s", 1, 0, "r", 5, 5)])
    builder.batch("s", 1, gap="disk full")

    trace = open_store(tmp_path).backward("s", RowId("s", 1, 0))

    assert (trace.complete, trace.gaps) == (True, ())


def test_a_row_on_the_way_whose_edges_may_be_in_a_gap_is_an_end(tmp_path: Path) -> None:
    builder = StoreBuilder(tmp_path)
    builder.sink("far", ["near"])
    builder.sink("near", ["r"])
    builder.batch("far", 0, edges=[("far", 1, 0, "near", 1, 0), ("far", 1, 0, "near", 2, 0)])
    builder.batch("near", 0, edges=[("near", 1, 0, "r", 5, 5)])
    builder.batch("near", 1, gap="disk full")

    trace = open_store(tmp_path).backward("far", RowId("far", 1, 0))

    assert trace.rows.ids() == [RowId("near", 2, 0), RowId("r", 5, 5)]
    assert trace.gaps == (Gap("near", RUN, 1, 1, GapKind.NOT_WRITTEN, "disk full"),)
    assert not trace.complete
    assert "incomplete, missing batch 1 of `near` (run 3f2a90bc): disk full" in repr(trace)


def test_a_row_written_again_may_have_edges_in_a_gap(tmp_path: Path) -> None:
    builder = StoreBuilder(tmp_path)
    builder.sink("s", ["r"])
    builder.batch("s", 0, edges=[("s", 1, 0, "r", 5, 5)])
    builder.batch("s", 1, edges=[("s", 1, 0, "r", 6, 6)])
    builder.batch("s", 3, edges=[("s", 2, 0, "r", 6, 6)])
    provenance = open_store(tmp_path)

    assert provenance.backward("s", RowId("s", 1, 0)).gaps == (
        Gap("s", RUN, 2, 2, GapKind.NOT_COMMITTED),
    )
    assert provenance.backward("s", RowId("s", 2, 0)).gaps == ()


def test_a_row_that_is_not_found_names_the_gaps(tmp_path: Path) -> None:
    builder = StoreBuilder(tmp_path)
    builder.sink("s", ["r"])
    builder.batch("s", 0, edges=[("s", 1, 0, "r", 5, 5)])
    builder.batch("s", 1, gap="disk full")

    with pytest.raises(RowNotFoundError, match=r"Missing are batch 1 of `s` .*: disk full"):
        open_store(tmp_path).backward("s", RowId("s", 7, 7))
