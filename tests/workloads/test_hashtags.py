"""The two jobs publish what leads, by hand, to the edges that the text alone says."""

from __future__ import annotations

import json
from collections import Counter
from typing import TYPE_CHECKING, Any

import pytest

import clew
import hashtags as H
from clew.prov import Emitter, put_reduced
from domains.events import write_events
from repository.model import edges, identifiers

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

    from pyspark.sql import SparkSession

# The tweets of the paper's second figure stand in its picture alone; these have its shape: three
# hashtags, of which `c` is counted twice.
TWEETS = ["alpha and again", "bravo charlie", "charlie is last"]


def published(folder: Path) -> list[dict[str, Any]]:
    files = sorted(folder.glob("*.jsonl"))
    return [json.loads(line) for file in files for line in file.read_text().splitlines()]


def reduce(events: Iterable[dict[str, Any]]) -> set[tuple[str, str]]:
    """Eliminate whatever was both generated and used, in plain Python."""
    made: dict[str, set[str]] = {}
    used: set[str] = set()
    executions: dict[str, tuple[set[str], set[str]]] = {}
    for event in events:
        if event["prov"] == "end":
            continue
        ends = executions.setdefault(event["activity"], (set(), set()))
        if event["prov"] == "group":
            ends[0].update(event["used"])
            ends[1].update(event["generated"])
        else:
            ends[event["prov"] == "wasGeneratedBy"].add(event["entity"])
    for inputs, outputs in executions.values():
        used |= inputs
        for output in outputs:
            made.setdefault(output, set()).update(inputs)

    def sources(entity: str) -> set[str]:
        if entity not in made:
            return {entity}
        return set().union(*(sources(each) for each in made[entity]))

    return {(o, i) for o in made if o not in used for i in sources(o)}


def test_counting_publishes_the_edges_of_the_papers_shape(tmp_path: Path) -> None:
    with Emitter(tmp_path, H.COUNT) as emit:
        counts = H.count_hashtags(TWEETS, emit)

    assert counts == {"alpha": 1, "again": 1, "bravo": 1, "charlie": 2}
    assert reduce(published(tmp_path)) == {
        ("tag/alpha", "tweet/0"),
        ("tag/again", "tweet/0"),
        ("tag/bravo", "tweet/1"),
        ("tag/charlie", "tweet/1"),
        ("tag/charlie", "tweet/2"),
    }


@pytest.mark.parametrize("grouped", [True, False])
def test_both_jobs_on_real_text_give_the_edges_that_the_text_says(
    tmp_path: Path, grouped: bool
) -> None:
    lines = H.tweets(300)
    expected = H.expected_edges(lines)
    with Emitter(tmp_path / "1", H.COUNT, grouped=grouped, buffer=100) as emit:
        counts = H.count_hashtags(lines, emit)
    with Emitter(tmp_path / "2", H.SUM, grouped=grouped) as emit:
        sums = H.sum_by_category(counts, emit)

    found = Counter(tag for line in lines for tag in H.hashtags(line))
    assert len(lines) == 300
    assert counts == found
    assert sums == _sums(found)
    assert reduce(published(tmp_path / "1")) == expected[H.COUNT]
    assert reduce(published(tmp_path / "2")) == expected[H.SUM]
    assert {e["node"] for e in published(tmp_path / "1")} == {"worker-0", "worker-1"}


def _sums(counts: Counter[str]) -> dict[str, int]:
    sums: Counter[str] = Counter()
    for tag, number in counts.items():
        sums[H.category(tag)] += number
    return dict(sums)


def test_the_second_job_on_spark_publishes_the_same(spark: SparkSession, tmp_path: Path) -> None:
    counts = Counter(tag for line in H.tweets(100) for tag in H.hashtags(line))
    frame = spark.createDataFrame(list(counts.items()), "hashtag string, `count` long")

    rows = H.sum_by_category_on_spark(frame, Emitter(tmp_path, H.SUM)).collect()

    assert {row["category"]: row["count"] for row in rows} == _sums(counts)
    assert reduce(published(tmp_path)) == H.expected_edges(H.tweets(100))[H.SUM]


def test_the_workflow_is_answered_from_a_category_to_the_lines(tmp_path: Path) -> None:
    lines = H.tweets(200)
    jobs = H.expected_edges(lines)
    for job, pairs in jobs.items():
        put_reduced(tmp_path, job, "r", 0, edges(*sorted(pairs)))

    why = clew.open(tmp_path).backward(H.SUM, "category/flow")

    flow = set(H.CATEGORIES["flow"])
    assert identifiers(why.rows) == {
        f"tweet/{n}" for n, line in enumerate(lines) if flow & set(H.hashtags(line))
    }
    assert len(why.rows) > 5


def test_any_file_of_lines_will_do(tmp_path: Path) -> None:
    (tmp_path / "text").write_text("one two three four\n\ntoo short\n five six seven eight\n")

    assert H.tweets(path=tmp_path / "text") == ["one two three four", "five six seven eight"]


@pytest.mark.parametrize(("grouped", "between"), [(True, 0), (False, 2)])
def test_a_stream_of_any_size_holds_what_it_says(
    tmp_path: Path, grouped: bool, between: int
) -> None:
    written = write_events(tmp_path / "e", 200, grouped=grouped, between=between, seed=3)

    events = published(tmp_path / "e")
    files = sorted((tmp_path / "e").glob("*.jsonl"))
    found = reduce(events)
    assert (written.lines, written.size) == (len(events), sum(p.stat().st_size for p in files))
    assert [e["seq"] for e in events] == list(range(len(events)))
    assert written.reduced == len(found)
    assert {o.split("/")[0] for o, _ in found} == {"tag"}
    statements = [len(e["used"]) + len(e["generated"]) if grouped else 1 for e in events[:-1]]
    assert written.edges == sum(statements)
    pairs = len({x for e in events[:-1] for x in e.get("generated", [e.get("entity")])
                 if x.startswith("hashtags:pair") and x.endswith("/0")})  # fmt: skip
    lines = len({i for _, i in found})
    tags = len({o for o, _ in found})
    assert written.edges == lines + 2 * pairs * (between + 1) + tags
    assert events[-1] == {"prov": "end", "job": "hashtags", "seq": len(events) - 1}
    assert [e["time"] for e in events[:-1]] == sorted(e["time"] for e in events[:-1])


def test_the_same_seed_gives_the_same_stream(tmp_path: Path) -> None:
    for name, seed in (("a", 1), ("b", 1), ("c", 2)):
        write_events(tmp_path / name, 50, seed=seed)

    one, same, other = (published(tmp_path / name) for name in "abc")
    assert one == same != other
