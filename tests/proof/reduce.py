"""Reduced provenance: the paper's examples, random jobs against a walk, kills and restarts."""

from __future__ import annotations

import itertools
import random
from typing import TYPE_CHECKING, Any

from clew.prov.asked_for import Settings
from proof.case import Outcome, Setting, check, difference
from recovery.chain import run
from recovery.reducing import POINTS
from reduce import jobs
from reduce.machine import reduce_here
from reduce.test_stream import found, write
from seeds import big_provenance as paper

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from reduce.jobs import Edge

_PARTITIONINGS = ("source", "function", "node", "random")


def outcomes(setting: Setting) -> Iterator[Outcome]:
    yield from _paper()
    count = 30 if setting.quick else 600
    for number in range(count):
        yield from _random(setting.seed + number)
    yield from _in_spark(setting)
    if not setting.quick:
        yield from _kills(setting)


def _paper() -> Iterator[Outcome]:
    for rule in paper.RULES:
        for order in itertools.permutations(rule.before):
            given = paper.derived(order, "job")
            for batch in (1, 2, 3):
                ours = Settings("job", "grouping", local_batch=batch)
                yield _case(f"{rule.figure}, {order}", given, ours, rule.after, batch)
    for publish in (paper.lines, paper.groups):
        for partitions, batch in itertools.product((1, 2, 3), (1, 4, 100)):
            ours = Settings("job", "grouping", "random", partitions, batch)
            given = publish(paper.HASHTAGS, "job")
            yield _case(f"Figures 2 to 4, {publish.__name__}", given, ours, paper.REDUCED, batch)
    yield from _partitioned_execution()
    yield from _early_elimination()


def _partitioned_execution() -> Iterator[Outcome]:
    """Figure 8: split, three paths are missing; whole, all six are there."""
    whole = {(o, i) for o in paper.SPLIT.generated for i in paper.SPLIT.used}
    parts = [paper.groups([part], "job") for part in paper.SPLIT_PARTS]
    split = {("o1", "i1"), ("o1", "i2"), ("o2", "i3")}
    ours = Settings("job", "grouping")
    yield _case("Figure 8, split as groups", list(itertools.chain(*parts)), ours, split)
    for partitioning in _PARTITIONINGS:
        kept = Settings("job", "grouping", partitioning, 2, 1)
        given = paper.lines([paper.SPLIT], "job")
        yield _case(f"Figure 8, {partitioning}", given, kept, whole, 1)


def _early_elimination() -> Iterator[Outcome]:
    """Figure 11: without a window the second output loses its input; each remedy finds it."""
    whole, given = {("o1", "i1"), ("o2", "i1")}, paper.lines([paper.EARLY], "job")
    lost = Settings("job", "window", window=0)
    yield _case("Figure 11, eliminated too early", given, lost, {("o1", "i1")})
    for ours in (
        Settings("job", "window", window=3),
        Settings("job", "grouping"),
        Settings("job", "watermark", delay="1 second"),
    ):
        yield _case(f"Figure 11, {ours.mode}", given, ours, whole, 1)
    yield _case("Figure 11, a group", paper.groups([paper.EARLY], "job"), lost, whole)


def _case(
    name: str, given: Sequence[str], ours: Settings, expected: set[Edge], batch: int = 10**9
) -> Outcome:
    return check(
        f"{name}, {ours}",
        lambda: difference(sorted(expected), sorted(reduce_here(given, ours, batch=batch))),
    )


def _random(seed: int) -> Iterator[Outcome]:
    """Reduce one random job in several ways, each in its own order and cut."""
    chosen = random.Random(seed)
    free: dict[str, Any] = {
        "partitioning": chosen.choice(_PARTITIONINGS),
        "partitions": chosen.randint(1, 4),
        "local_batch": chosen.choice([1, 2, 5, 20, 1000]),
        "global_batch": chosen.choice([1, 3, 10, 50, 1000]),
    }
    batch = chosen.choice([1, 3, 10, 1000])
    size = chosen.randint(1, 30)
    shared = jobs.shared_job(seed, size, recent=8)
    once = jobs.single_use_job(seed, size)
    publish = chosen.choice([jobs.statements, jobs.groups, jobs.documents])
    for mode, more, job, given in (
        ("grouping", {}, shared, jobs.shuffled(publish(shared), seed)),
        ("grouping", {"single_use": True}, once, jobs.shuffled(jobs.groups(once), seed)),
        ("watermark", _delay(shared), shared, _late(shared, chosen)),
        ("watermark", {"single_use": True, "delay": "1 hour"}, once, _late(once, chosen)),
    ):
        ours = Settings("job", mode, **{**free, **more})
        yield _case(f"seed {seed}", given, ours, jobs.expected(job), batch)


def _late(job: list[jobs.Execution], chosen: random.Random) -> list[str]:
    """Publish a job with some disorder, by at most five executions."""
    late = sorted(job, key=lambda each: each.second + chosen.uniform(0, 5))
    return chosen.choice([jobs.statements, jobs.groups])(late)


def _delay(job: list[jobs.Execution]) -> dict[str, str]:
    """Find the least delay that is right: the longest time between two namings, and disorder."""
    last: dict[str, int] = {}
    longest = 0
    for each in job:
        for thing in (*each.used, *each.generated):
            longest = max(longest, each.second - last.get(thing, each.second))
            last[thing] = each.second
    return {"delay": f"{longest + 5} seconds"}


def _in_spark(setting: Setting) -> Iterator[Outcome]:
    """The same through Spark itself, with each partitioning."""
    import clew

    job = jobs.shared_job(setting.seed, 40, recent=8)
    ways: list[tuple[str, str]] = [("watermark", "random"), ("grouping", "lineage")]
    if not setting.quick:
        ways += [(m, p) for m in ("watermark", "grouping") for p in ("source", "function", "node")]
    write(setting.folder / "in", jobs.groups(job), files=2)
    for mode, partitioning in ways:

        def answer(mode: str = mode, partitioning: str = partitioning) -> str:
            store = setting.folder / f"{mode}-{partitioning}"
            lines = setting.spark.readStream.option("maxFilesPerTrigger", 1)
            done = clew.prov.reduce(
                lines.text(str(setting.folder / "in")),
                job="job", store=store, mode=mode, partitioning=partitioning, partitions=2,
                global_batch=10, idle=0, delay=_delay(job)["delay"],
            )  # fmt: skip
            done.awaitTermination()
            return difference(sorted(jobs.expected(job)), found(store))

        yield check(f"in Spark, {mode}, {partitioning}", answer)


def _kills(setting: Setting) -> Iterator[Outcome]:
    """Kill at each point in turn, start again, and compare with what was to be found."""
    folder = setting.folder / "stormy"
    job = jobs.shared_job(setting.seed, 400, recent=6)
    folder.mkdir()
    # A kill at the third time lets two batches through, so many kills need more batches.
    write(folder / "in", jobs.statements(job), files=2 * len(POINTS))
    for step, nth in POINTS:

        def killed(step: str = step, nth: int = nth) -> str:
            said = run(folder, step, str(nth), program="reducing.py")
            return "" if said.startswith(f"killed at {step},") else f"it was not killed: {said}"

        yield check(f"killed at {step}, time {nth}", killed)

    def same() -> str:
        if (said := run(folder, program="reducing.py")) != "finished":
            return f"the last run did not finish: {said}"
        return difference(sorted(jobs.expected(job)), found(folder / "prov"))

    yield check("after all restarts: reduced edges", same)
