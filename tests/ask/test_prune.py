"""What is pruned is a gap, what is kept is as it was, wherever the process dies."""

from __future__ import annotations

import datetime as dt
import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

import clew
from ask.aged import Aged, Id, Pair, ahead, behind, build, second
from clew import steps
from clew.ask.provenance import open_store
from clew.exceptions import QueryError, RowNotFoundError, UnknownStreamError
from clew.model import RowId
from clew.store.layout import read_json
from store.build import RUN, StoreBuilder, at, row

if TYPE_CHECKING:
    from collections.abc import Iterator

    from clew.ask.provenance import Provenance
    from clew.ask.trace import Trace

SEEDS = [6, 8, 11]  # sets, pointers and intervals
TODAY = dt.datetime.now(dt.timezone.utc).date().isoformat()


def pairs_of(trace: Trace) -> set[Pair]:
    return {((e.sink.stream, e.sink.a), (e.source.stream, e.source.a)) for e in trace.edges}


def ask(provenance: Provenance, direction: str, start: Id) -> tuple[set[Pair], bool] | str:
    """Return the edges of an answer and whether it is complete, or that there is no such row."""
    question = provenance.backward if direction == "backward" else provenance.forward
    try:
        trace = question(start[0], RowId(start[0], start[1], 1), intermediate=True)
    except RowNotFoundError as error:
        return str(error)
    return pairs_of(trace), trace.complete or all(not g.is_pruned for g in trace.gaps)


def answers(root: Path, aged: Aged, every: int = 1) -> dict[tuple[str, Id], Any]:
    """Ask about every result and source row, or about every second, third, ..."""
    with open_store(root) as provenance:
        results = sorted(aged.edges)[::every]
        found = {("backward", each): ask(provenance, "backward", each) for each in results}
        for number in range(0, 6, every):
            found["forward", ("r", number)] = ask(provenance, "forward", ("r", number))
    return found


def everything(aged: Aged) -> set[Pair]:
    return {pair for pairs in aged.edges.values() for pair in pairs}


def check(found: dict[tuple[str, Id], Any], aged: Aged, before: int) -> None:
    """Compare answers with the model of what is left, and with that of what was."""
    left, old = aged.left(before), aged.old(before)
    for (direction, start), answer in found.items():
        follow = behind if direction == "backward" else ahead
        if isinstance(answer, str):
            assert direction == "backward"
            assert aged.came[start] in old
            assert f"pruned on {TODAY}" in answer
            continue
        edges, complete = answer
        assert edges == follow(left, start), (direction, start)
        if complete:
            assert edges == follow(everything(aged), start), (direction, start)
        if direction == "backward" and edges == follow(everything(aged), start):
            assert complete, start


@pytest.mark.parametrize("seed", SEEDS)
def test_answers_after_pruning_are_those_of_what_is_left(tmp_path: Path, seed: int) -> None:
    aged = build(tmp_path, seed)
    before = 2 + seed % 9
    check(answers(tmp_path, aged), aged, 0)

    with open_store(tmp_path) as provenance:
        files = files_of(tmp_path)
        foreseen = provenance.prune(second(before), dry_run=True)
        assert files_of(tmp_path) == files
        done = provenance.prune(second(before))
        size = provenance.size()

    assert done.batches == foreseen.batches == len(aged.old(before))
    assert (foreseen.dry_run, done.dry_run) == (True, False)
    check(answers(tmp_path, aged), aged, before)
    assert all(kind != "leftovers" for _, kind in size.parts)
    kept = {result for result, batch in aged.came.items() if batch not in aged.old(before)}
    with open_store(tmp_path) as provenance:
        rows = {(s, each.id.a) for s in ("s", "t") for each in provenance.rows(s, limit=None)}
        # A result that another query made something of is kept with that query as well.
        used = {source for _, source in aged.left(before) if source[0] == "s"}
        assert rows == kept | used
        again = provenance.prune(second(before))
    assert (again.batches, again.files, again.queries) == (0, 0, ())


class Killed(BaseException):
    """The end of a process, as far as a test can play it."""


def files_of(root: Path) -> set[str]:
    return {str(p.relative_to(root)) for p in root.rglob("*") if p.is_file() and p.name != ".lock"}


def kill_at(number: int) -> Any:
    seen = 0

    def listener(step: str, batch: int) -> None:
        nonlocal seen
        seen += 1
        if seen == number:
            raise Killed

    return listener


def test_a_pruning_that_dies_anywhere_leaves_a_correct_store(tmp_path: Path) -> None:
    calm = tmp_path / "calm"
    aged = build(calm, SEEDS[1])
    before = 9
    original = tmp_path / "original"
    shutil.copytree(calm, original)
    with open_store(calm) as provenance:
        provenance.prune(second(before))
    points = 0
    while True:
        points += 1
        stormy = tmp_path / f"stormy-{points}"
        shutil.copytree(original, stormy)
        listener = kill_at(points)
        steps.listen(listener)
        try:
            with open_store(stormy) as provenance:
                provenance.prune(second(before))
            break
        except Killed:
            pass
        finally:
            steps.unlisten(listener)
        for (direction, start), answer in answers(stormy, aged, 4).items():
            if not isinstance(answer, str) and answer[1]:
                follow = behind if direction == "backward" else ahead
                assert answer[0] == follow(everything(aged), start), points
        with open_store(stormy) as provenance:
            provenance.prune(second(before))
        check(answers(stormy, aged, 5), aged, before)
        assert files_of(stormy) == files_of(calm)
    assert points > 6


def test_a_killed_process_lets_go_of_its_locks(tmp_path: Path) -> None:
    aged = build(tmp_path, 3)
    code = (
        "import os, sys, clew\nfrom clew import steps\n"
        "steps.listen(lambda step, _: os._exit(9) if step == 'pruning noted' else None)\n"
        "clew.open(sys.argv[1]).prune('2026-01-01T00:00:09')"
    )
    source = str(Path(clew.__file__).parents[1])
    done = subprocess.run(
        [sys.executable, "-c", code, str(tmp_path)],
        env={**os.environ, "PYTHONPATH": source},
        check=False,
    )
    assert done.returncode == 9

    with open_store(tmp_path) as provenance:
        finished = provenance.prune(second(9))

    assert finished.files > 0
    check(answers(tmp_path, aged), aged, 9)


def test_a_reader_that_was_open_sees_the_gap(tmp_path: Path) -> None:
    aged = build(tmp_path, 3)
    with open_store(tmp_path) as reader, open_store(tmp_path) as other:
        before = {each: ask(reader, "backward", each) for each in aged.edges}
        other.prune(second(9))
        after = {each: ask(reader, "backward", each) for each in aged.edges}

    assert before != after
    check({("backward", each): answer for each, answer in after.items()}, aged, 9)


@pytest.fixture
def shop(tmp_path: Path) -> Iterator[tuple[StoreBuilder, Provenance]]:
    """A store with four batches, a result in each, at 8 to 11 o'clock."""
    builder = StoreBuilder(tmp_path / "prov")
    builder.source("r")
    builder.sink("s", ["r"], runs=[{"run": RUN, "checkpoint": "/chk"}])
    for n in range(4):
        builder.batch(
            "s",
            n,
            edges=[("s", n, 1, "r", 0, n)],
            rows={
                "s": [row(n, 1, time=at(f"{8 + n:02d}:00:00"), n=n)],
                "r": [row(0, n, segment="f", n=n)],
            },
            offsets=[f'{{"logOffset": {n}}}'],
            watermark_ms=n + 1,
        )
    with open_store(tmp_path / "prov") as provenance:
        yield builder, provenance


def test_the_commit_of_a_pruned_batch_keeps_what_restarts_need(
    shop: tuple[StoreBuilder, Provenance],
) -> None:
    builder, provenance = shop
    path = builder.root / f"batches/s/{RUN}-0000000001.json"
    before = read_json(path)

    done = provenance.prune(second(3))

    after = read_json(path)
    assert {k: v for k, v in after.items() if before.get(k) != v}.keys() == {
        "files",
        "gap",
        "pruned",
    }
    assert (after["files"], after["gap"]) == ([], f"pruned on {TODAY}")
    assert done.batches == 2
    assert not list(builder.root.glob(f"*/s/{RUN}-000000000[01]/**/*.parquet"))
    assert read_json(builder.root / "pruned.json")["prunings"][-1]["queries"][0]["batches"] == 2


def test_forward_names_the_pruned_batches(shop: tuple[StoreBuilder, Provenance]) -> None:
    _, provenance = shop
    provenance.prune(second(3))

    trace = provenance.forward("r", RowId("r", 0, 3))

    assert [str(gap) for gap in trace.gaps] == [
        f"batches 0 to 1 of `s` (run {RUN}): pruned on {TODAY}"
    ]
    assert provenance.backward("s", {"n": 3}).complete
    [stream] = [each for each in provenance.streams() if each.name == "s"]
    assert (stream.batches, stream.edges) == (2, 2)


def test_the_last_batch_of_a_stream_stays_and_that_of_a_batch_query_goes(
    shop: tuple[StoreBuilder, Provenance],
) -> None:
    builder, provenance = shop

    kept = provenance.prune("0 seconds", dry_run=True)
    builder.sink("s", ["r"], runs=[{"run": RUN, "checkpoint": None}])
    gone = provenance.prune("0 seconds", dry_run=True)

    assert (kept.batches, [(h.query, h.batches) for h in kept.kept]) == (3, [("s", 1)])
    assert (gone.batches, gone.kept) == (4, ())


def test_by_event_time_the_latest_result_counts(shop: tuple[StoreBuilder, Provenance]) -> None:
    builder, provenance = shop
    builder.batch("s", 4, rows={"s": [row(4, 1, n=4)]})
    builder.batch("s", 5, rows={"s": [row(5, 1, time=at("07:00:00"), n=5)]})

    done = provenance.prune(at("10:00:00"), by="event", dry_run=True)

    assert done.batches == 2
    assert [(each.batches, each.why) for each in done.kept] == [
        (1, "its results have no event time"),
        (1, "the last batch of a stream stays, since a restart begins there"),
    ]


def test_batches_that_a_live_graph_has_not_taken_in_stay(
    shop: tuple[StoreBuilder, Provenance],
) -> None:
    builder, provenance = shop
    graph = provenance.graph(name="g")
    waiting = provenance.prune(second(3), dry_run=True)
    graph.advance()

    done = provenance.prune(second(3))

    assert waiting.batches == 0
    assert "the live graph g has not taken it in" in waiting.kept[0].why
    assert (done.batches, done.graphs) == (2, ("g",))
    builder.batch("s", 4, edges=[("s", 4, 1, "r", 0, 1)], rows={"s": [row(4, 1, n=4)]})
    later = provenance.graph(name="later")
    assert graph.advance().edges == 1
    assert later.advance().edges == 3
    assert later.status().members[0].gaps == 2


def test_a_row_can_be_erased_although_results_of_it_were_pruned(
    shop: tuple[StoreBuilder, Provenance],
) -> None:
    builder, provenance = shop
    bound = {"micros": 0, "waits": False, "by_arrival": False, "why": []}
    runs = [{"run": RUN, "checkpoint": None}]
    builder.sink("s", ["r"], runs=runs, bounds={"r": bound})
    provenance.prune(second(3))

    erased = provenance.erase("r", RowId("r", 0, 3))

    assert erased.copies == 1
    assert [gap.is_pruned for gap in erased.results.gaps] == [True]


def test_recorded_rows_keep_their_numbers(tmp_path: Path) -> None:
    builder = StoreBuilder(tmp_path)
    builder.source("r")
    streams = {"s": {"node": 1, "time": None, "same_as": None, "first": False}}
    said = {"content": "first", "streams": streams}
    builder.sink("s", ["r"], capture="keys", assertions=said)
    for n in range(3):
        builder.batch("s", n, capture="keys", sink_rows=None)
        file = f"assertions/s/{RUN}-{n:010d}-{n:010d}/s/keys-0.parquet"
        rows = [{**row(10 * n + i, 1), "delay": 0} for i in range(2)]
        builder._put_table(file, keys_table(rows))
        record = {
            "writer": "s",
            "run": RUN,
            "first": n,
            "last": n,
            "committed": f"2026-01-01T00:00:0{n}Z",
        }
        kept = {"s": {"rows": 2, "files": [file], "copies": []}}
        builder.put(f"asserted/s/{RUN}-{n:010d}-{n:010d}.json", {**record, "streams": kept})
    from ask.aged import unfolding

    pairs: set[Pair] = {(("s", 0), ("r", 0)), (("s", 21), ("r", 1))}
    unfolding(builder, 0, 2, "abcdef01", pairs)
    with open_store(tmp_path) as provenance:
        before = list(provenance.assertions("s"))
        done = provenance.prune(second(3))
        after = provenance.assertions("s")

        assert (done.queries[0].rounds, done.queries[0].unfoldings) == (2, 1)
        assert list(after) == [each for each in before if each.id.a >= 20]
        assert (after.total, after.pruned) == (2, 4)
        assert provenance.size().parts["s", "assertions"].rows == 2
    said = read_json(tmp_path / f"unfolded/s/{RUN}-0000000000-abcdef01.json")
    assert (said["edges"], said["pruned"]) == (1, [0, 1])


def keys_table(rows: list[dict[str, Any]]) -> Any:
    import pyarrow as pa

    return pa.table(
        {
            "a": pa.array([each["a"] for each in rows], pa.int64()),
            "b": pa.array([each["b"] for each in rows], pa.int64()),
            "time": pa.array([None for _ in rows], pa.timestamp("us", "UTC")),
            "delay": pa.array([0 for _ in rows], pa.int64()),
        }
    )


def test_what_cannot_be_pruned_is_refused_by_name(shop: tuple[StoreBuilder, Provenance]) -> None:
    _, provenance = shop

    with pytest.raises(QueryError, match="Name the queries that hold its rows: `s`"):
        provenance.prune("1 day", streams="r")
    with pytest.raises(UnknownStreamError):
        provenance.prune("1 day", streams=["x"])
    with pytest.raises(QueryError, match="months and years have no fixed length"):
        provenance.prune("1 month")
    with pytest.raises(QueryError, match="an age is not negative"):
        provenance.prune(dt.timedelta(days=-1))
    assert provenance.prune("1 second", dry_run=True).batches == 3


def test_the_outcome_is_data_and_text(shop: tuple[StoreBuilder, Provenance]) -> None:
    _, provenance = shop

    done = provenance.prune("0 seconds", dry_run=True)

    said = json.loads(json.dumps(done.to_dict()))
    assert (said["batches"], said["queries"][0]["query"], said["kept"][0]["batches"]) == (3, "s", 1)
    assert repr(done).startswith("3 batches would be pruned: ")
