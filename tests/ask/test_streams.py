"""What a store says of its streams."""

from __future__ import annotations

import datetime as dt
from typing import TYPE_CHECKING

from clew.ask.provenance import open_store
from clew.model import GapKind
from clew.show.stream_table import lines
from clew.store.records import Gap
from store.build import RUN, StoreBuilder, row

if TYPE_CHECKING:
    from pathlib import Path

    from clew.ask.provenance import Provenance


def test_streams_are_listed_by_name_with_what_is_committed(road: Provenance) -> None:
    streams = {each.name: each for each in road.streams()}

    assert list(streams) == ["accidents", "reports", "slow", "stopped"]
    stopped = streams["stopped"]
    assert (stopped.kind, stopped.writer, stopped.exactness) == ("sink", "stopped", "exact")
    assert (stopped.capture, stopped.sources, stopped.named) == ("sets", ("reports",), ("slow",))
    assert (stopped.batches, stopped.sink_rows, stopped.edges) == (2, 4, 18)
    assert stopped.watermark == dt.datetime(2026, 1, 1, 8, 1, tzinfo=dt.timezone.utc)
    assert stopped.feeds == ("accidents",)


def test_a_source_has_an_identity_and_no_batches_of_its_own(road: Provenance) -> None:
    reports = road.streams()[1]

    assert (reports.kind, reports.writer, reports.batches) == ("source", None, None)
    assert reports.identity == {"kind": "parquet", "segment": "file", "position": "row_index"}
    assert (reports.columns, reports.feeds) == (("car", "speed", "pos"), ("stopped",))


def test_a_named_frame_knows_the_query_it_stands_in(road: Provenance) -> None:
    slow = road.streams()[2]

    assert (slow.kind, slow.writer, slow.sources) == ("named", "stopped", ("reports",))
    assert (slow.batches, slow.sink_rows, slow.feeds) == (2, None, ("stopped",))


def test_a_stream_shows_itself_on_one_line(road: Provenance) -> None:
    assert [repr(each) for each in road.streams()] == [
        "Stream(accidents: sink, from stopped, exact, sets, 1 batch, 1 row, 2 edges)",
        "Stream(reports: source, exact, rows told apart by parquet, feeds stopped)",
        (
            "Stream(slow: named, from reports, exact, 2 batches, "
            "watermark 2026-01-01T08:01:00Z, feeds stopped)"
        ),
        (
            "Stream(stopped: sink, from reports, exact, sets, 2 batches, 4 rows, 18 edges, "
            "watermark 2026-01-01T08:01:00Z, feeds accidents)"
        ),
    ]


def _bound(micros: int | None, *why: str) -> dict[str, object]:
    return {"micros": micros, "waits": True, "by_arrival": False, "why": list(why)}


def test_the_bound_is_the_largest_over_the_sources(tmp_path: Path) -> None:
    store = StoreBuilder(tmp_path)
    for name in ("a", "b"):
        store.source(name)
    store.sink("quick", ["a", "b"], bounds={"a": _bound(150_000_000), "b": _bound(120_000_000)})
    store.sink("hourly", ["a"], bounds={"a": _bound(7_200_000_000)})
    store.sink("at once", ["a"], bounds={"a": {**_bound(0), "waits": False}})
    store.sink("open", ["a"], bounds={"a": _bound(None, "a session window may grow without end")})
    streams = {each.name: each for each in open_store(tmp_path).streams()}

    assert streams["quick"].bound == dt.timedelta(seconds=150)
    assert streams["open"].bound is None
    assert streams["quick"].to_dict()["bounds"]["b"]["micros"] == 120_000_000
    shown = [line.text for line in lines(list(streams.values()))]
    last = {text.split("  ")[0]: text.split("  ")[-1].strip() for text in shown}
    assert {name: last[name] for name in streams} == {
        "a": "-",
        "b": "-",
        "at once": "0",
        "hourly": "2 h",
        "open": "none",
        "quick": "150 s",
    }
    assert shown[-1] == "rows of a stay alive for open: a session window may grow without end"
    assert repr(streams["quick"]).endswith("U 150 s)")


def test_gaps_are_listed_and_do_not_count_as_batches(tmp_path: Path) -> None:
    builder = StoreBuilder(tmp_path)
    builder.sink("stopped", ["reports"])
    builder.batch("stopped", 0, rows={"stopped": [row(1, 1, n=1)]})
    builder.batch("stopped", 1, gap="disk full", sink_rows=5)
    builder.batch("stopped", 3, sink_rows=None, edges=[])

    _, stopped = open_store(tmp_path).streams()

    assert (stopped.batches, stopped.sink_rows) == (2, 1)
    assert stopped.gaps == (
        Gap("stopped", RUN, 1, 1, GapKind.NOT_WRITTEN, "disk full"),
        Gap("stopped", RUN, 2, 2, GapKind.NOT_COMMITTED),
    )
    assert "2 gaps" in repr(stopped)


def test_a_new_store_has_no_streams(tmp_path: Path) -> None:
    StoreBuilder(tmp_path)

    provenance = open_store(tmp_path)

    assert provenance.streams() == []
    assert repr(provenance) == f"Provenance({tmp_path}: no streams yet)"


def test_a_stream_is_plain_data_on_demand(road: Provenance) -> None:
    data = road.streams()[3].to_dict()

    assert data["watermark"] == "2026-01-01T08:01:00Z"
    assert (data["batches"], data["gaps"], data["feeds"]) == (2, [], ["accidents"])
