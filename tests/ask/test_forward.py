"""Forward: from a row to every result it took part in, so far."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from clew.ask.provenance import open_store
from clew.exceptions import QueryError, RowNotFoundError
from clew.model import GapKind, RowId
from clew.store.records import Gap
from store.build import RUN, StoreBuilder, row

if TYPE_CHECKING:
    from pathlib import Path

    from clew.ask.provenance import Provenance


def test_a_source_row_leads_to_the_rows_of_every_sink_on_the_way(road: Provenance) -> None:
    trace = road.forward("reports", "part-0.parquet:3")

    assert trace.of("stopped").ids() == [RowId("stopped", 70, 1), RowId("stopped", 70, 2)]
    assert trace.of("accidents").ids() == [RowId("accidents", 5, 5)]
    assert trace.of("accidents")[0] == {"pos": 5, "cars": 2}
    assert [len(hop) for hop in trace.hops] == [2, 1]
    assert (trace.results, trace.sources) == (trace.rows, trace.start)


def test_a_sink_row_that_feeds_another_query_leads_on(road: Provenance) -> None:
    trace = road.forward("stopped", {"car": 8})

    assert trace.rows.ids() == [RowId("accidents", 5, 5)]


def test_a_row_of_a_named_frame_leads_to_the_sink(road: Provenance) -> None:
    trace = road.forward("slow", RowId("slow", 700, 4))

    assert trace.rows.ids() == [RowId("stopped", 90, 1)]


def test_a_scope_stops_at_a_sink(road: Provenance) -> None:
    trace = road.forward("reports", "part-0.parquet:0", scope="stopped")

    assert trace.rows.ids() == [RowId("stopped", 70, 1)]


def test_a_scope_further_on_leaves_out_the_sinks_before_it(road: Provenance) -> None:
    trace = road.forward("reports", "part-0.parquet:0", scope="accidents")

    assert trace.rows.ids() == [RowId("accidents", 5, 5)]


def test_a_scope_stops_at_a_named_frame(road: Provenance) -> None:
    trace = road.forward("reports", "part-1.parquet:4", scope="slow")

    assert trace.rows.ids() == [RowId("slow", 700, 4)]
    assert trace.path == ("reports -> filter (speed = 0) -> slow",)


def test_a_scope_off_the_way_names_the_streams_on_it(road: Provenance) -> None:
    with pytest.raises(QueryError, match="The streams on the way are: `accidents`"):
        road.forward("stopped", {"car": 8}, scope="reports")


def test_a_source_row_that_contributed_to_nothing_has_an_empty_answer(road: Provenance) -> None:
    trace = road.forward("reports", RowId("reports", 0, 99))

    assert (len(trace), trace.edges, trace.complete) == (0, (), True)
    assert repr(trace) == (
        "Row 00000000000000000000000000000063 of `reports` took part in no result so far in the "
        "committed batches.\n\nexactness: exact\nstatus: alive, more results may follow"
    )


def test_a_known_segment_is_enough_to_ask_about_any_position(road: Provenance) -> None:
    assert len(road.forward("reports", "part-0.parquet:99")) == 0


def test_values_that_match_nothing_say_what_is_kept(road: Provenance) -> None:
    with pytest.raises(RowNotFoundError) as error:
        road.forward("reports", {"car": 1})

    assert str(error.value) == (
        "stream `reports` has no row with car=1: the store holds batches 0 to 1 of `stopped` "
        "(run 3f2a90bc). Of a source, only rows that contributed to a result are kept."
    )


def test_a_sink_row_that_fed_nothing_has_an_empty_answer(road: Provenance) -> None:
    assert len(road.forward("stopped", {"car": 9})) == 0


def test_a_sink_row_that_does_not_exist_is_refused(road: Provenance) -> None:
    with pytest.raises(RowNotFoundError, match="no row `00000000000000010000000000000001`"):
        road.forward("stopped", RowId("stopped", 1, 1))


def test_several_queries_that_read_one_source_are_all_in_the_answer(tmp_path: Path) -> None:
    builder = StoreBuilder(tmp_path)
    for name in ("one", "two"):
        builder.sink(name, ["r"])
        builder.batch(name, 0, edges=[(name, 1, 0, "r", 5, 5)])

    trace = open_store(tmp_path).forward("r", RowId("r", 5, 5))

    assert trace.rows.ids() == [RowId("one", 1, 0), RowId("two", 1, 0)]


def test_streams_in_a_circle_come_to_an_end(tmp_path: Path) -> None:
    builder = StoreBuilder(tmp_path)
    builder.sink("ping", ["pong", "r"])
    builder.sink("pong", ["ping"])
    builder.batch("ping", 0, edges=[("ping", 1, 0, "pong", 1, 0), ("ping", 1, 0, "r", 9, 9)])
    builder.batch("pong", 0, edges=[("pong", 1, 0, "ping", 1, 0)])

    trace = open_store(tmp_path).forward("r", RowId("r", 9, 9))

    assert trace.rows.ids() == [RowId("ping", 1, 0), RowId("pong", 1, 0)]


def test_any_gap_of_a_query_that_reads_the_stream_could_matter(tmp_path: Path) -> None:
    builder = StoreBuilder(tmp_path)
    builder.sink("s", ["r"])
    builder.sink("t", ["q"])
    builder.batch("s", 0, edges=[("s", 1, 0, "r", 5, 5)])
    builder.batch("s", 1, gap="disk full")
    builder.batch("t", 0, gap="not ours")

    trace = open_store(tmp_path).forward("r", RowId("r", 5, 5))

    assert trace.rows.ids() == [RowId("s", 1, 0)]
    assert trace.gaps == (Gap("s", RUN, 1, 1, GapKind.NOT_WRITTEN, "disk full"),)


def test_a_result_that_was_updated_is_shown_as_last_written(tmp_path: Path) -> None:
    builder = StoreBuilder(tmp_path)
    builder.sink("s", ["r"])
    builder.batch("s", 0, edges=[("s", 1, 0, "r", 5, 5)], rows={"s": [row(1, 0, n=1)]})
    builder.batch("s", 1, edges=[("s", 1, 0, "r", 6, 6)], rows={"s": [row(1, 0, n=2)]})

    [found] = open_store(tmp_path).forward("r", RowId("r", 5, 5)).rows

    assert found == {"n": 2}
