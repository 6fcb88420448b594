"""What is left of a job is what a walk over its whole graph finds, in any order and any cut."""

from __future__ import annotations

import random
from collections.abc import Callable

import pytest

from clew.prov.asked_for import Settings
from reduce.jobs import (
    Execution,
    closure,
    documents,
    expected,
    groups,
    shared_job,
    shuffled,
    single_use_job,
    statements,
)
from reduce.machine import reduce_here

Publish = Callable[[list[Execution]], list[str]]
SEEDS = range(30)


def settings(seed: int, **fixed: object) -> Settings:
    chosen = random.Random(seed)
    free = {
        "partitioning": chosen.choice(["source", "function", "node", "random"]),
        "partitions": chosen.randint(1, 3),
        "local_batch": chosen.choice([1, 2, 5, 100]),
        "global_batch": chosen.choice([1, 3, 10, 1000]),
    }
    return Settings("job", **{**free, **fixed})  # type: ignore[arg-type]


def batch(seed: int) -> int:
    return random.Random(seed + 1).choice([1, 3, 7, 1000])


@pytest.mark.parametrize("publish", [statements, groups])
def test_watermark_is_exact_if_nothing_is_named_again_after_the_delay(publish: Publish) -> None:
    for seed in SEEDS:
        print("seed", seed)
        job = shared_job(seed)
        lines = shuffled(publish(job), seed, distance=4)

        found = reduce_here(lines, settings(seed, delay="20 seconds"), batch=batch(seed))

        assert sorted(found) == sorted(expected(job))


@pytest.mark.parametrize("publish", [statements, groups, documents])
def test_grouping_is_exact_in_any_order(publish: Publish) -> None:
    for seed in SEEDS:
        print("seed", seed)
        job = shared_job(seed)

        lines = shuffled(publish(job), seed)
        found = reduce_here(lines, settings(seed, mode="grouping"), batch=batch(seed))

        assert sorted(found) == sorted(expected(job))


@pytest.mark.parametrize("mode", ["grouping", "watermark"])
def test_things_that_are_used_once_may_go_at_once(mode: str) -> None:
    for seed in SEEDS:
        print("seed", seed)
        job = single_use_job(seed)
        ours = settings(seed, mode=mode, single_use=True, delay="1 hour")

        found = reduce_here(shuffled(groups(job), seed), ours, batch=batch(seed))

        assert sorted(found) == sorted(expected(job))


@pytest.mark.parametrize("single_use", [False, True])
def test_a_flushed_graph_leads_to_the_same_inputs(single_use: bool) -> None:
    for seed in SEEDS:
        print("seed", seed)
        job = single_use_job(seed) if single_use else shared_job(seed)
        ours = settings(seed, mode="grouping", flush=True, single_use=single_use)

        found = reduce_here(shuffled(groups(job), seed), ours, batch=batch(seed))

        assert closure(found) == expected(job)


def test_a_window_as_large_as_the_job_is_exact() -> None:
    for seed in SEEDS:
        print("seed", seed)
        job = shared_job(seed)
        ours = settings(seed, mode="window", window=1000, local_batch=1000, partitioning="source")

        found = reduce_here(shuffled(groups(job), seed), ours)

        assert sorted(set(found)) == sorted(expected(job))


def test_duplicates_change_nothing_while_their_things_are_open() -> None:
    for seed in SEEDS:
        print("seed", seed)
        job = shared_job(seed)
        lines = shuffled(groups(job) + statements(job), seed, distance=3)

        found = reduce_here(lines, settings(seed, delay="1 hour"), batch=batch(seed))

        assert sorted(found) == sorted(expected(job))
