"""A reader sees committed batches, all of them, and nothing else."""

from __future__ import annotations

import json
import shutil
from typing import TYPE_CHECKING

import pytest

from clew.exceptions import NotAStoreError, StoreError
from clew.model import EdgesCome, GapKind
from clew.store import reader
from clew.store.reader import Store
from clew.store.records import Gap
from store.build import RUN, StoreBuilder, row

if TYPE_CHECKING:
    from pathlib import Path

    from clew.store.reader import Snapshot


@pytest.fixture
def builder(tmp_path: Path) -> StoreBuilder:
    store = StoreBuilder(tmp_path / "prov")
    store.source("reports")
    store.sink("stopped", ["reports"])
    return store


def put_batch(builder: StoreBuilder, number: int, run: str = RUN) -> list[str]:
    return builder.batch(
        "stopped",
        number,
        edges=[("stopped", number, 0, "reports", number, 0)],
        rows={"stopped": [row(number, 0, n=1)], "reports": [row(number, 0, segment="f", car=7)]},
        run=run,
    )


def numbers(snapshot: Snapshot) -> list[tuple[str, int]]:
    return [(each.run, each.number) for each in snapshot.batches.get("stopped", ())]


def test_an_empty_store_has_no_streams(tmp_path: Path) -> None:
    StoreBuilder(tmp_path)

    snapshot = Store(tmp_path).snapshot()

    assert (dict(snapshot.streams), dict(snapshot.batches)) == ({}, {})


def test_a_batch_is_seen_once_its_file_is_there(builder: StoreBuilder) -> None:
    files = put_batch(builder, 0)
    commit = builder.root / f"batches/stopped/{RUN}-0000000000.json"
    text = commit.read_text()
    commit.unlink()
    store = Store(builder.root)

    assert numbers(store.snapshot()) == []

    commit.write_text(text)
    snapshot = store.snapshot()

    assert numbers(snapshot) == [(RUN, 0)]
    assert snapshot.edge_files(["stopped"]).paths == (f"{builder.root}/{files[0]}",)
    assert snapshot.row_files("reports").paths == (f"{builder.root}/{files[2]}",)


def test_nothing_new_gives_the_same_snapshot(builder: StoreBuilder) -> None:
    put_batch(builder, 0)
    store = Store(builder.root)

    assert store.snapshot() is store.snapshot()


def test_a_snapshot_does_not_change_when_a_batch_is_committed(builder: StoreBuilder) -> None:
    put_batch(builder, 0)
    store = Store(builder.root)
    before = store.snapshot()
    put_batch(builder, 1)

    assert numbers(before) == [(RUN, 0)]
    assert numbers(store.snapshot()) == [(RUN, 0), (RUN, 1)]


def test_drafts_and_foreign_files_are_not_batches(builder: StoreBuilder) -> None:
    put_batch(builder, 0)
    folder = builder.root / "batches/stopped"
    for name in (f".{RUN}-0000000001.json.tmp", f"{RUN}-0000000001.json.crc", "notes.json"):
        (folder / name).write_text("{")
    (builder.root / "streams/.stopped.json.77.tmp").write_text("{")

    snapshot = Store(builder.root).snapshot()

    assert numbers(snapshot) == [(RUN, 0)]
    assert list(snapshot.streams) == ["reports", "stopped"]


def test_a_pruned_batch_disappears_with_the_next_snapshot(builder: StoreBuilder) -> None:
    put_batch(builder, 0)
    put_batch(builder, 1)
    store = Store(builder.root)
    store.snapshot()
    (builder.root / f"batches/stopped/{RUN}-0000000000.json").unlink()

    assert numbers(store.snapshot()) == [(RUN, 1)]


def test_a_writer_that_was_forgotten_disappears(builder: StoreBuilder) -> None:
    put_batch(builder, 0)
    store = Store(builder.root)
    store.snapshot()
    shutil.rmtree(builder.root / "batches/stopped")

    assert dict(store.snapshot().batches) == {}


def test_a_store_that_is_gone_is_an_error(builder: StoreBuilder) -> None:
    put_batch(builder, 0)
    store = Store(builder.root)
    shutil.rmtree(builder.root)

    with pytest.raises(NotAStoreError, match="there is no such folder"):
        store.snapshot()


def test_a_stream_described_anew_is_read_again(builder: StoreBuilder) -> None:
    store = Store(builder.root)
    assert store.snapshot().streams["stopped"].exactness == "exact"
    draft = builder.root / "streams/draft"
    path = builder.root / "streams/stopped.json"
    draft.write_text(json.dumps({**json.loads(path.read_text()), "exactness": "coarse"}))
    draft.replace(path)

    assert store.snapshot().streams["stopped"].exactness == "coarse"


def test_batches_are_ordered_by_commit_over_several_runs(builder: StoreBuilder) -> None:
    put_batch(builder, 0, run="ffffffff")
    put_batch(builder, 1, run="ffffffff")
    put_batch(builder, 0, run="00000000")

    snapshot = Store(builder.root).snapshot()

    assert numbers(snapshot) == [("ffffffff", 0), ("ffffffff", 1), ("00000000", 0)]
    assert [each.run for each in snapshot.edge_files(["stopped"]).batches] == [
        "ffffffff",
        "ffffffff",
        "00000000",
    ]


def test_missing_numbers_and_declared_gaps_are_found_for_each_run(builder: StoreBuilder) -> None:
    put_batch(builder, 3)
    put_batch(builder, 6)
    put_batch(builder, 9)
    builder.batch("stopped", 10, gap="disk full")
    builder.batch("stopped", 11, gap="disk full")
    put_batch(builder, 0, run="aaaaaaaa")

    gaps = Store(builder.root).snapshot().gaps("stopped")

    assert gaps == (
        Gap("stopped", RUN, 0, 2, GapKind.NOT_COMMITTED),
        Gap("stopped", RUN, 4, 5, GapKind.NOT_COMMITTED),
        Gap("stopped", RUN, 7, 8, GapKind.NOT_COMMITTED),
        Gap("stopped", RUN, 10, 11, GapKind.NOT_WRITTEN, "disk full"),
    )
    assert str(gaps[3]) == f"batches 10 to 11 of `stopped` (run {RUN}): disk full"


def test_a_store_without_gaps_has_none(builder: StoreBuilder) -> None:
    put_batch(builder, 0)
    put_batch(builder, 1)

    assert Store(builder.root).snapshot().gaps("stopped") == ()


@pytest.mark.parametrize(
    ("capture", "kind", "why"),
    [
        ("pointers", GapKind.NOT_UNFOLDED, "its pointers are not unfolded yet"),
        (
            "intervals",
            GapKind.WHEN_ASKED,
            "its rows carry intervals, and edges are computed when asked for",
        ),
        ("keys", GapKind.WHEN_ASKED, "its rows carry keys, and edges are computed when asked for"),
    ],
)
def test_a_batch_whose_edges_come_later_is_pending(
    builder: StoreBuilder, capture: str, kind: GapKind, why: str
) -> None:
    for number in (0, 1):
        builder.batch("stopped", number, rows={"stopped": [row(number, 1, n=1)]}, capture=capture)

    [gap] = Store(builder.root).snapshot().gaps("stopped")

    assert (gap.first, gap.last, gap.kind, gap.about) == (0, 1, kind, capture)
    assert gap.kind.is_pending
    assert gap.reason == why


def test_why_edges_could_not_be_computed_is_told_in_place_of_later(builder: StoreBuilder) -> None:
    builder.batch("stopped", 0, rows={"stopped": [row(1, 1, n=1)]}, capture="pointers")
    said = {"committed": "2026-01-01T00:00:09Z", "files": [], "gap": "a.parquet is gone"}
    builder.put(f"unfolded/stopped/{RUN}-0000000000-0123abcd.json", said)

    gaps = Store(builder.root).snapshot().gaps("stopped")

    assert gaps == (Gap("stopped", RUN, 0, 0, GapKind.NOT_COMPUTED, "a.parquet is gone"),)
    assert not gaps[0].kind.is_pending


def test_what_a_reason_says_does_not_make_a_gap_pruned(builder: StoreBuilder) -> None:
    gone = {"at": "2026-02-01T00:00:00Z", "files": 2}
    builder.batch("stopped", 0, gap="pruned on 2026-02-01", pruned=gone)
    builder.batch("stopped", 1, gap="pruned on a disk that is full")

    pruned, lost = Store(builder.root).snapshot().gaps("stopped")

    assert (pruned.kind, pruned.reason) == (GapKind.PRUNED, "pruned on 2026-02-01")
    assert (lost.kind, lost.is_pruned) == (GapKind.NOT_WRITTEN, False)


_KNOWN = "'dust' and should be one of sets, pointers, intervals, keys, reduced"


@pytest.mark.parametrize("of", ["batch", "stream"])
def test_a_capture_that_nobody_knows_is_refused(builder: StoreBuilder, of: str) -> None:
    put_batch(builder, 0)
    if of == "batch":
        builder.batch("stopped", 1, rows={"stopped": [row(1, 1, n=1)]}, capture="dust")
    else:
        builder.sink("stopped", ["reports"], capture="dust")

    with pytest.raises(StoreError, match=f"`capture` is {_KNOWN}"):
        Store(builder.root).snapshot()


def test_a_batch_that_names_no_capture_has_its_edges(builder: StoreBuilder) -> None:
    put_batch(builder, 0)

    [batch] = Store(builder.root).snapshot().batches["stopped"]

    assert (batch.capture, batch.edges_come) == ("sets", EdgesCome.WITH_THE_BATCH)


def test_a_batch_file_that_is_damaged_is_named(builder: StoreBuilder) -> None:
    builder.put(f"batches/stopped/{RUN}-0000000000.json", {"committed": "2026-01-01T00:00:00Z"})

    with pytest.raises(StoreError, match=f"{RUN}-0000000000.json` is not as .* no 'files'"):
        Store(builder.root).snapshot()


@pytest.mark.parametrize("gone", ["kind", "label", "inputs"])
def test_a_step_that_lacks_a_part_is_named(builder: StoreBuilder, gone: str) -> None:
    step = {"kind": "source", "label": "reports", "inputs": []}
    del step[gone]
    builder.sink("stopped", ["reports"], graph={"nodes": [step], "sink": 0})

    with pytest.raises(
        StoreError, match=rf"stopped.json. is not as .* no '{gone}' in .graph.nodes"
    ):
        Store(builder.root).snapshot()


@pytest.mark.parametrize("path", ["../x.parquet", "/etc/x.parquet", "edges/../../x.parquet"])
def test_files_outside_the_store_are_refused(builder: StoreBuilder, path: str) -> None:
    builder.put(
        f"batches/stopped/{RUN}-0000000000.json",
        {"committed": "2026-01-01T00:00:00Z", "files": [path]},
    )

    with pytest.raises(StoreError, match="lies outside the store"):
        Store(builder.root).snapshot()


def test_a_stream_is_known_from_its_rows_when_its_file_is_missing(builder: StoreBuilder) -> None:
    put_batch(builder, 0)
    (builder.root / "streams/reports.json").unlink()
    (builder.root / "streams/stopped.json").unlink()

    snapshot = Store(builder.root).snapshot()

    assert {name: each.kind for name, each in snapshot.streams.items()} == {
        "reports": "source",
        "stopped": "sink",
    }
    assert snapshot.readers("reports") == {"stopped"}


def test_a_source_that_the_graph_no_longer_has_is_still_an_input(builder: StoreBuilder) -> None:
    put_batch(builder, 0)
    builder.sink("stopped", ["positions"])

    snapshot = Store(builder.root).snapshot()

    assert snapshot.inputs("stopped") == {"positions", "reports"}


def test_names_with_odd_characters_are_streams_like_others(tmp_path: Path) -> None:
    builder = StoreBuilder(tmp_path)
    builder.sink("a/b c*", ["..", "naïve 车"])
    builder.batch("a/b c*", 0, rows={"a/b c*": [row(1, 1, n=1)], "naïve 车": [row(2, 2, n=1)]})

    snapshot = Store(tmp_path).snapshot()

    assert snapshot.inputs("a/b c*") == {"..", "naïve 车"}
    assert len(snapshot.row_files("naïve 车").paths) == 1


def test_the_batches_it_holds_are_named_in_words(builder: StoreBuilder) -> None:
    put_batch(builder, 3)
    put_batch(builder, 5)
    put_batch(builder, 0, run="aaaaaaaa")
    snapshot = Store(builder.root).snapshot()

    assert snapshot.describe_batches(["stopped"]) == (
        f"batches 3 to 5 of `stopped` (run {RUN}), batch 0 of `stopped` (run aaaaaaaa)"
    )
    assert snapshot.describe_batches([]) == "no batch yet"


def test_batches_listed_in_the_wrong_order_are_not_taken_for_a_gap(
    builder: StoreBuilder, monkeypatch: pytest.MonkeyPatch
) -> None:
    for number in range(3):
        put_batch(builder, number)
    listed: list[set[tuple[str, int]]] = []
    really = reader._list_batches

    def incomplete_at_first(place: Path) -> set[tuple[str, int]]:
        found = really(place)
        listed.append(found if listed else found - {(RUN, 1)})
        return listed[-1]

    monkeypatch.setattr(reader, "_list_batches", incomplete_at_first)

    snapshot = Store(builder.root).snapshot()

    assert numbers(snapshot) == [(RUN, 0), (RUN, 1), (RUN, 2)]
    assert len(listed) == 2
