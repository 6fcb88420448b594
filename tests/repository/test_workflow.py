"""Graphs of many jobs, put in any order, are one graph."""

from __future__ import annotations

import random
from typing import TYPE_CHECKING

import pytest

import clew
from clew.cli import main
from clew.exceptions import RowNotFoundError
from clew.prov import put_reduced
from repository.model import Pairs, backward, edges, forward, identifiers

if TYPE_CHECKING:
    from pathlib import Path

JOBS: dict[str, Pairs] = {
    "hashtags": [("tag/a", "tweet/1"), ("tag/a", "tweet/2"), ("tag/b", "tweet/2")],
    "sum-by-category": [("cat/sport", "tag/a"), ("cat/sport", "tag/b"), ("cat/sport", "list/1")],
}


def build(root: Path, jobs: dict[str, Pairs]) -> clew.Provenance:
    for job, pairs in jobs.items():
        put_reduced(root, job, "r", 0, edges(*pairs))
    return clew.open(root)


@pytest.mark.parametrize("order", [1, -1])
def test_backward_goes_through_the_jobs_in_whichever_order_they_came(
    tmp_path: Path, order: int
) -> None:
    prov = build(tmp_path, dict(list(JOBS.items())[::order]))

    why = prov.backward("sum-by-category", {"entity": "cat/sport"})

    assert identifiers(why.of("entities")) == {"tweet/1", "tweet/2", "list/1"}
    assert why.rows.streams == ("entities",)
    assert why.path == (
        "entities -> hashtags",
        "entities -> sum-by-category",
        "hashtags -> sum-by-category",
    )
    named = {(e.sink.stream, e.source.stream) for e in why.edges}
    assert named == {
        ("sum-by-category", "hashtags"),
        ("sum-by-category", "entities"),
        ("hashtags", "entities"),
    }


def test_forward_goes_through_the_jobs(tmp_path: Path) -> None:
    what = build(tmp_path, JOBS).forward("entities", "tweet/2")

    assert identifiers(what.of("hashtags")) == {"tag/a", "tag/b"}
    assert identifiers(what.of("sum-by-category")) == {"cat/sport"}


def test_a_scope_stops_at_a_job(tmp_path: Path) -> None:
    prov = build(tmp_path, JOBS)

    why = prov.backward("sum-by-category", "cat/sport", scope="hashtags")
    both = prov.backward("sum-by-category", "cat/sport", intermediate=True)

    assert identifiers(why.rows) == {"tag/a", "tag/b"}
    assert {e.source.stream for e in why.edges} == {"hashtags"}
    assert identifiers(both.of("hashtags")) == {"tag/a", "tag/b"}
    assert identifiers(both.of("entities")) == {"tweet/1", "tweet/2", "list/1"}


def test_an_entity_can_be_asked_for_where_it_was_used(tmp_path: Path) -> None:
    prov = build(tmp_path, JOBS)

    assert identifiers(prov.backward("entities", "tag/b").rows) == {"tweet/2"}
    assert identifiers(prov.forward("entities", "tag/b").rows) == {"cat/sport"}
    assert len(prov.backward("entities", "tweet/1")) == 0
    with pytest.raises(RowNotFoundError):
        prov.backward("entities", "tweet/9")


def test_an_entity_that_two_jobs_generated_has_the_inputs_of_both(tmp_path: Path) -> None:
    prov = build(tmp_path, {"one": [("m", "i/1")], "two": [("m", "i/2")], "three": [("o", "m")]})

    why = prov.backward("three", "o")

    assert identifiers(why.rows) == {"i/1", "i/2"}
    assert {e.source.stream for e in why.hops[0]} == {"one", "two"}
    assert identifiers(prov.backward("one", "m").rows) == {"i/1"}


def test_jobs_that_feed_each_other_come_to_an_end(tmp_path: Path) -> None:
    prov = build(tmp_path, {"one": [("x", "y"), ("x", "i")], "two": [("y", "x")]})

    assert identifiers(prov.backward("two", "y").rows) == {"i"}
    assert identifiers(prov.forward("one", "x").rows) == {"x", "y"}


def test_the_command_line_takes_an_identifier(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    build(tmp_path, JOBS)

    for row in ("entity=cat/sport", "cat/sport"):
        assert main(["backward", str(tmp_path), "sum-by-category", row]) == 0
        assert "was made from 3 rows of `entities`" in capsys.readouterr().out
    assert main(["forward", str(tmp_path), "entities", "tweet/1"]) == 0
    assert "1 row of `hashtags` and 1 row of `sum-by-category`" in capsys.readouterr().out


@pytest.mark.parametrize("seed", range(8))
def test_random_workflows_are_answered_as_plain_python_says(tmp_path: Path, seed: int) -> None:
    print("seed", seed)
    chance = random.Random(seed)
    names = [f"e/{n}" for n in range(30)]
    jobs: dict[str, Pairs] = {}
    for number in range(chance.randint(1, 6)):
        ends = [chance.sample(range(30), 2) for _ in range(chance.randint(1, 20))]
        # Later things are derived from earlier ones, by any of the jobs.
        jobs[f"job {number}"] = [(names[max(p)], names[min(p)]) for p in ends]
    puts = [
        (job, batch, jobs[job][batch::3]) for job in chance.sample(sorted(jobs), len(jobs))
        for batch in range(3)
    ]  # fmt: skip
    for job, batch, pairs in sorted(puts, key=lambda _: chance.random()):
        put_reduced(tmp_path, job, "r", batch, edges(*pairs))

    with clew.open(tmp_path) as prov:
        for _ in range(2):  # from files, then from memory
            for job, pairs in jobs.items():
                output = chance.choice(pairs)[0]
                why = prov.backward(job, output)
                if sum(output in {o for o, _ in each} for each in jobs.values()) == 1:
                    assert identifiers(why.rows) == backward(jobs, output)
                assert identifiers(prov.backward("entities", pairs[0][1]).rows) == backward(
                    jobs, pairs[0][1]
                )
                what = prov.forward("entities", pairs[0][1])
                found = {(row.stream, row["entity"]) for row in what.rows}
                assert found == forward(jobs, pairs[0][1])
