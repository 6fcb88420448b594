"""A timeline puts rows and windows where a plain-Python model puts them."""

from __future__ import annotations

import datetime as dt
import json
import random
from collections import Counter
from typing import TYPE_CHECKING

import pyarrow as pa
import pytest

from clew import show
from clew.ask.provenance import open_store
from clew.exceptions import QueryError
from clew.model import RowId
from store.build import DAY, StoreBuilder, at, row

if TYPE_CHECKING:
    from pathlib import Path

    from clew.ask.provenance import Provenance
    from clew.ask.trace import Trace

TIME = pa.timestamp("us", "UTC")
WINDOW = pa.struct([("start", TIME), ("end", TIME)])


def counted(root: Path, times: list[dt.datetime | None]) -> Trace:
    """Return the answer for a count over a window of two minutes, made of rows at some times."""
    builder = StoreBuilder(root)
    builder.source("r")
    builder.sink("s", ["r"])
    rows = [row(0, i, segment="in/f", time=time, n=i) for i, time in enumerate(times)]
    window = {"start": at("08:00:00"), "end": at("08:02:00")}
    builder.batch(
        "s",
        0,
        edges=[("s", 1, 1, "r", 0, i) for i in range(len(times))],
        rows={"r": rows, "s": [row(1, 1, window=window, n=len(times))]},
        types={"s": pa.struct([("window", WINDOW), ("n", pa.int64())])},
    )
    return open_store(root).backward("s", RowId("s", 1, 1))


def test_rows_and_the_window_of_their_result_are_on_one_axis(tmp_path: Path) -> None:
    line = counted(tmp_path, [at("08:00:30"), None, at("08:00:10")]).timeline()

    data = line.to_dict()
    assert json.loads(json.dumps(data)) == data
    assert (data["from"], data["to"]) == ("2026-01-01T08:00:00Z", "2026-01-01T08:02:00Z")
    assert data["windows"] == [
        {
            "from": "2026-01-01T08:00:00Z",
            "to": "2026-01-01T08:02:00Z",
            "label": "window",
            "stream": "s",
        }
    ]
    [reports, results] = data["lanes"]
    assert [(each["label"], each["time"]) for each in reports["rows"]] == [
        ("f:2", "2026-01-01T08:00:10Z"),
        ("f:0", "2026-01-01T08:00:30Z"),
    ]
    assert (reports["left_out"], reports["bins"], data["untimed"]) == (0, [], 1)
    # A result without a time of its own stands where its window ends.
    assert [each["time"] for each in results["rows"]] == ["2026-01-01T08:02:00Z"]
    assert results["rows"][0]["key"] == f"row:s/{RowId('s', 1, 1).text}"


@pytest.mark.parametrize("seed", range(4))
def test_bins_count_what_a_plain_model_counts(tmp_path: Path, seed: int) -> None:
    print("seed", seed)
    chance = random.Random(seed)
    times: list[dt.datetime | None] = [
        at("08:00:00") + dt.timedelta(seconds=chance.choice([1, 3, 120]) * chance.random())
        for _ in range(300)
    ]

    lane = counted(tmp_path, times).timeline(limit=20).lanes[0]

    ordered = sorted(each for each in times if each is not None)
    assert [each.time for each in lane.rows] == ordered[:20]
    assert lane.left_out == 280
    width = dt.timedelta(minutes=2) // 40 + dt.timedelta(microseconds=1)
    model = Counter((each - at("08:00:00")) // width for each in ordered)
    assert [(each.begin, each.end, each.count) for each in lane.bins] == [
        (at("08:00:00") + n * width, at("08:00:00") + (n + 1) * width, model[n])
        for n in sorted(model)
    ]


def test_a_bound_stands_for_a_window_that_is_not_there(tmp_path: Path) -> None:
    builder = StoreBuilder(tmp_path)
    builder.source("r")
    bound = {"micros": 150_000_000, "waits": True, "by_arrival": False, "why": []}
    builder.sink("s", ["r"], bounds={"r": bound})
    rows = {
        "r": [row(0, 0, time=at("08:00:00"), n=1)],
        "s": [row(1, 1, time=at("08:02:00"), n=1)],
    }
    builder.batch("s", 0, edges=[("s", 1, 1, "r", 0, 0)], rows=rows)

    line = open_store(tmp_path).forward("r", RowId("r", 0, 0)).timeline()

    [window] = line.windows
    assert (window.begin, window.end) == (at("07:59:30"), at("08:02:00"))
    assert window.label == "at most 0:02:30 before"
    assert [lane.stream for lane in line.lanes] == ["r", "s"]


def test_rows_on_the_way_have_a_lane(road: Provenance) -> None:
    line = road.backward("accidents", {"pos": 5}).timeline()

    assert [(lane.stream, len(lane.rows)) for lane in line.lanes] == [
        ("reports", 4),
        ("stopped", 0),
        ("accidents", 0),
    ]
    assert (line.begin, line.end, line.untimed) == (at("08:00:00"), at("08:00:15"), 3)
    assert repr(line).splitlines()[:3] == [
        "from 2026-01-01T08:00:00Z to 2026-01-01T08:00:15Z",
        "reports: 4 rows",
        f"  {'*':<40}  2026-01-01T08:00:00Z  part-0.parquet:0",
    ]


def test_an_answer_without_times_has_an_empty_axis(tmp_path: Path) -> None:
    builder = StoreBuilder(tmp_path)
    builder.sink("s", ["r"])
    builder.batch("s", 0, edges=[("s", 1, 1, "r", 0, 0)])

    line = open_store(tmp_path).backward("s", RowId("s", 1, 1)).timeline()

    assert (line.begin, line.end, line.untimed) == (None, None, 2)
    assert repr(line) == "No row of the answer has a time."


def test_times_that_python_does_not_have_are_left_out(tmp_path: Path) -> None:
    builder = StoreBuilder(tmp_path)
    builder.sink("s", ["r"])
    late = pa.scalar(300_000_000_000_000_000, pa.timestamp("us", "UTC"))
    builder.batch("s", 0, edges=[("s", 1, 1, "r", 0, 0)], rows={"r": [row(0, 0, time=DAY, n=1)]})
    path = next(tmp_path.glob("rows/s/*/r/*.parquet"))
    table = pa.parquet.read_table(path)
    pa.parquet.write_table(table.set_column(3, "time", pa.array([late], late.type)), path)

    trace = open_store(tmp_path).backward("s", RowId("s", 1, 1))

    assert trace.timeline().lanes[0].rows == ()
    assert [node.time for node in trace.drawing().nodes] == [None, None, None]


def test_a_negative_limit_is_refused(road: Provenance) -> None:
    with pytest.raises(QueryError, match="0 or more"):
        road.backward("stopped", {"car": 8}).timeline(-1)


def test_a_time_is_written_as_in_rows(tmp_path: Path) -> None:
    trace = counted(tmp_path, [at("08:00:30")])

    shown = trace.timeline().to_dict()["lanes"][0]["rows"][0]
    time = trace.rows[0].time
    assert time is not None
    assert shown["time"] == trace.rows[0].to_dict()["time"] == show.iso(time)
