"""When a row expires: the query with the longest way to go decides."""

from __future__ import annotations

import datetime as dt
import json
from typing import TYPE_CHECKING, Any

import pytest

from clew.ask.provenance import open_store
from clew.cli import main
from clew.exceptions import QueryError
from store.build import RUN, StoreBuilder, at, row

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from clew.ask.expires import Expiry

MINUTE = 60_000_000


def bound(micros: int | None, **more: Any) -> dict[str, Any]:
    return {"micros": micros, "waits": True, "by_arrival": False, "why": [], **more}


def asked(
    folder: Path, queries: Mapping[str, tuple[dict[str, Any], str]], clock: str | None = "08:00:00"
) -> Expiry:
    """Ask when a row of `r` at a time expires, with queries at their watermarks."""
    store = StoreBuilder(folder / "prov")
    store.source("r", event_time="ts")
    for name, (said, watermark) in queries.items():
        store.sink(name, ["r"], bounds={"r": said}, runs=[{"run": RUN, "checkpoint": "nowhere"}])
        time = None if clock is None else at(clock)
        store.batch(
            name,
            0,
            watermark_ms=int(at(watermark).timestamp() * 1000) if watermark else 0,
            rows={name: [row(1, 1, n=1)], "r": [row(0, 0, segment="p", time=time, n=1)]},
            edges=[(name, 1, 1, "r", 0, 0)],
        )
    with open_store(folder / "prov") as prov:
        found = prov.expiry("r", {"n": 1})
        assert found.status == prov.status("r", {"n": 1})
        return found


def test_a_row_expires_once_the_watermark_is_past_its_time_and_the_bound(tmp_path: Path) -> None:
    early = asked(tmp_path / "1", {"q": (bound(2 * MINUTE), "08:01:00")})
    at_it = asked(tmp_path / "2", {"q": (bound(2 * MINUTE), "08:02:00")})
    past = asked(tmp_path / "3", {"q": (bound(2 * MINUTE), "08:02:01")})

    assert [each.status for each in (early, at_it, past)] == ["alive", "alive", "expired"]
    assert early.to_dict() == {
        "stream": "r",
        "id": "0" * 32,
        "status": "alive",
        "expires": "2026-01-01T08:02:00Z",
        "watermark": "2026-01-01T08:01:00Z",
        "why": "`q` keeps rows for 2 min of event time",
        "query": "q",
    }
    assert past.expires == early.expires


def test_a_row_that_is_less_than_a_millisecond_too_old_is_alive(tmp_path: Path) -> None:
    by_arrival = bound(3_000_000, by_arrival=True)
    within = asked(tmp_path / "1", {"q": (bound(3_000_000), "08:00:03")}, "07:59:59.999999")
    at_it = asked(tmp_path / "2", {"q": (bound(3_000_000), "08:00:03")}, "07:59:59.999000")
    unread = asked(tmp_path / "3", {"q": (by_arrival, "08:00:03")}, "07:59:59.999999")

    assert [each.status for each in (within, at_it, unread)] == ["alive", "expired", "alive"]
    assert within.expires == at("08:00:02.999999")
    assert unread.why == "`q` keeps rows for 3 s of event time"


def test_the_query_with_the_longest_way_to_go_decides(tmp_path: Path) -> None:
    # `wide` is nearly there, `slow` has only a short window but has hardly begun.
    queries = {"wide": (bound(60 * MINUTE), "08:59:00"), "slow": (bound(MINUTE), "07:30:00")}
    found = asked(tmp_path, queries)

    assert (found.query, found.status) == ("slow", "alive")
    assert found.expires == at("08:01:00")
    assert found.watermark == at("07:30:00")


def test_a_query_that_has_done_nothing_yet_has_no_watermark(tmp_path: Path) -> None:
    found = asked(tmp_path, {"q": (bound(MINUTE), "")})

    assert (found.expires, found.watermark) == (at("08:01:00"), None)
    assert repr(found).splitlines()[1] == (
        "expires once the watermark is past 2026-01-01T08:01:00Z; it is none yet"
    )


def test_a_step_without_a_bound_is_named(tmp_path: Path) -> None:
    endless = bound(None, why=["a session window may grow without end"])
    found = asked(tmp_path, {"q": (bound(MINUTE), "09:00:00"), "s": (endless, "09:00:00")})

    assert (found.status, found.expires, found.query) == ("alive", None, "s")
    assert found.why == "`s` may use it at any time: a session window may grow without end"


def test_a_query_that_takes_rows_as_they_come_needs_no_time(tmp_path: Path) -> None:
    by_arrival = bound(0, waits=False, by_arrival=True)
    queries = {"q": (by_arrival, "09:00:00"), "w": (bound(MINUTE), "09:00:00")}
    with_window = asked(tmp_path / "1", queries)
    alone = asked(tmp_path / "2", {"q": (by_arrival, "09:00:00")})

    # The checkpoint of the test is nowhere, so nothing says that `q` has read the row.
    assert (with_window.status, with_window.expires) == ("alive", at("08:01:00"))
    assert "and `q` takes it whenever it is read" in with_window.why
    assert (alone.status, alone.expires) == ("alive", None)
    assert alone.why == "`q` takes it whenever it is read, and has not read it yet"


def test_a_row_without_a_time_and_one_that_nobody_reads(tmp_path: Path) -> None:
    timeless = asked(tmp_path, {"q": (bound(MINUTE), "09:00:00")}, None)

    assert (timeless.status, timeless.expires) == ("alive", None)
    assert timeless.why == "its event time is not known, and `q` keeps rows for 1 min"
    with open_store(tmp_path / "prov") as prov:
        result = prov.expiry("q", {"n": 1})
    assert (result.status, result.expires) == ("expired", None)
    assert result.why == "no query that may still run reads `q`"


def chained(
    folder: Path, *, read_as: str = "stopped", ends: bool = False, by_window: bool = False
) -> Path:
    """Let `accidents` read the results of `stopped`, which is two minutes past all its rows."""
    store = StoreBuilder(folder / "prov")
    store.source("r", event_time="ts")
    mark = int(at("09:00:00").timestamp() * 1000)
    store.sink(
        "stopped",
        ["r"],
        bounds={"r": bound(2 * MINUTE)},
        runs=[{"run": RUN, "checkpoint": "nowhere"}],
        by_window=by_window,
    )
    store.batch(
        "stopped",
        0,
        watermark_ms=mark,
        rows={
            "stopped": [row(1, 1, time=at("08:02:00"), n=1)],
            "r": [row(0, 0, segment="p", time=at("08:00:00"), n=1)],
        },
        edges=[("stopped", 1, 1, "r", 0, 0)],
    )
    if read_as != "stopped":
        store.stream(read_as, "source", identity={"kind": "clew"}, exactness="exact")
    store.sink(
        "accidents",
        [read_as],
        bounds={read_as: bound(30 * MINUTE)},
        runs=[{"run": RUN, "checkpoint": None if ends else "nowhere"}],
    )
    store.batch("accidents", 0, watermark_ms=mark, rows={}, edges=[])
    return folder / "prov"


def test_a_result_that_is_timed_by_its_window_is_alive_while_it_is_read(tmp_path: Path) -> None:
    # Whoever reads it may put the watermark on another of its columns, which may be later.
    with open_store(chained(tmp_path, by_window=True)) as prov:
        found = prov.expiry("stopped", {"n": 1})
        assert (found.status, found.expires, found.query) == ("alive", None, "accidents")
        assert "by which time it reads these results is not known" in found.why
        assert not prov.expired("stopped")
    with open_store(chained(tmp_path / "ended", by_window=True, ends=True)) as prov:
        assert prov.expiry("stopped", {"n": 1}).status == "expired"


def test_a_row_whose_reader_has_readers_is_alive(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = chained(tmp_path)
    why = (
        "`accidents` may use it at any time: it reads what `stopped` makes of it, and until when "
        "is not known"
    )
    with open_store(path) as prov:
        found = prov.expiry("r", {"n": 1})
        assert (found.status, found.expires, found.query) == ("alive", None, "accidents")
        assert found.why == why
        assert prov.status("r", {"n": 1}) == "alive"
        assert prov.forward("r", {"n": 1}).status == "alive"
        assert (len(prov.alive("r")), len(prov.expired("r"))) == (1, 0)
        with pytest.raises(QueryError, match="is alive") as refused:
            prov.erase("r", {"n": 1})
        assert why in str(refused.value)
        # Nobody reads the results of `accidents`, and it is past those of `stopped`.
        assert prov.expiry("stopped", {"n": 1}).status == "expired"
    assert main(["erase", str(path), "r", "n=1"]) == 1
    assert why in capsys.readouterr().err
    assert main(["status", str(path), "r", "n=1"]) == 0
    assert capsys.readouterr().out == f"alive, more results may follow\n{why}\n"


def test_results_that_are_read_under_another_name_may_be_those_of_any_query(tmp_path: Path) -> None:
    with open_store(chained(tmp_path, read_as="stops")) as prov:
        assert prov.expiry("r", {"n": 1}).query == "accidents"
        assert prov.status("r", {"n": 1}) == "alive"


def test_a_query_behind_another_that_has_ended_holds_nothing(tmp_path: Path) -> None:
    with open_store(chained(tmp_path, ends=True)) as prov:
        assert prov.status("r", {"n": 1}) == "expired"


def test_the_command_line_says_the_same(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    found = asked(tmp_path, {"q": (bound(MINUTE), "08:00:30")})
    assert found.expires == at("08:00:00") + dt.timedelta(minutes=1)

    path = str(tmp_path / "prov")
    assert main(["status", path, "r", "n=1", "--json"]) == 0
    assert json.loads(capsys.readouterr().out) == found.to_dict()
    assert main(["status", path, "r", "n=1"]) == 0
    assert capsys.readouterr().out == (
        "alive, more results may follow\n"
        "expires once the watermark is past 2026-01-01T08:01:00Z; it is 2026-01-01T08:00:30Z\n"
        "`q` keeps rows for 1 min of event time\n"
    )
