"""News of a store reach those who follow it, each state once."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from clew.ask.provenance import open_store
from clew.prov import end_job, put_reduced
from explore.server import serving
from store.road import build_road

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    import httpx


def _news(lines: Iterator[str]) -> dict[str, Any]:
    """Read on until the next event, and return its fields."""
    fields: dict[str, Any] = {}
    for line in lines:
        if not line and "event" in fields:
            return fields
        name, _, value = line.partition(": ")
        if name in {"id", "event", "data"}:
            fields[name] = json.loads(value) if name == "data" else value
    raise AssertionError


def _follow(lines: Iterator[str]) -> None:
    """Read on until the server says that it looks at the store."""
    assert next(line for line in lines if line.startswith(":")) == ": following"


def _put(root: Path, batch: int) -> None:
    pairs = {"output": [f"out/{batch}"], "input": [f"in/{batch}"]}
    put_reduced(root, "job", "monday", batch, pa.table(pairs))


def test_a_commit_an_erasure_and_a_pruning_are_told(tmp_path: Path) -> None:
    _put(tmp_path, 0)
    with (
        open_store(tmp_path) as provenance,
        serving(provenance) as client,
        client.stream("GET", "/api/events") as answer,
    ):
        lines = answer.iter_lines()
        assert answer.headers["content-type"].startswith("text/event-stream")
        _follow(lines)

        _put(tmp_path, 1)
        committed = _news(lines)
        end_job(tmp_path, "job", "monday")
        provenance.erase("entities", "in/0")
        erased = _news(lines)
        provenance.prune("0 seconds", streams="job")
        final = provenance.about().state
        pruned = _news(lines)
        while pruned["data"]["state"] != final:  # batches go one by one
            pruned = _news(lines)

        assert [each["event"] for each in (committed, erased, pruned)] == ["commit"] * 3
        assert committed["data"]["streams"]["job"]["batches"] == 2
        assert committed["data"]["streams"]["job"]["rows"] == 2
        states = [each["data"]["state"] for each in (committed, erased, pruned)]
        assert len(set(states)) == 3
        assert [each["id"] for each in (committed, erased, pruned)] == states
        assert client.get("/api/store").json()["state"] == final


def test_what_happened_while_a_page_was_away_is_told_when_it_comes_back(tmp_path: Path) -> None:
    builder = build_road(tmp_path / "prov")
    with open_store(builder.root) as provenance, serving(provenance) as client:
        before = client.get("/api/store").json()["state"]
        builder.batch("stopped", 2)
        after = client.get("/api/store").json()["state"]

        for request in (
            client.build_request("GET", "/api/events", headers={"Last-Event-ID": before}),
            client.build_request("GET", "/api/events", params={"state": before}),
        ):
            news = _first(client, request)
            assert news["data"]["state"] == after
            assert news["data"]["streams"]["stopped"]["batches"] == 3


def _first(client: httpx.Client, request: httpx.Request) -> dict[str, Any]:
    answer = client.send(request, stream=True)
    try:
        return _news(answer.iter_lines())
    finally:
        answer.close()


def test_the_state_is_the_same_for_every_reader_of_the_same_store(tmp_path: Path) -> None:
    builder = build_road(tmp_path / "prov")

    with open_store(builder.root) as one, open_store(builder.root) as two:
        assert one.about().state == two.about().state
        before = one.about().state
        builder.batch("stopped", 2)
        assert one.about().state == two.about().state != before
